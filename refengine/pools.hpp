// KvPool: paged K and V of all layers in one piece of memory; PageAllocator: who has which page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "baton/types.hpp"
#include "refengine/weights.hpp"

namespace baton::refengine {

enum class KvPart : std::uint8_t { k, v };

// Extents of a pool. A page holds `page_size` tokens; a token has `heads * head_dim` bf16 values.
struct PoolShape {
  std::size_t layers = 0;
  std::size_t pages = 0;
  std::size_t page_size = 0;
  std::size_t heads = 0;
  std::size_t head_dim = 0;

  std::size_t token_values() const { return heads * head_dim; }
  std::size_t token_bytes() const { return token_values() * sizeof(std::uint16_t); }
  std::size_t page_bytes() const { return page_size * token_bytes(); }
  std::size_t buffer_bytes() const { return pages * page_bytes(); }  // K or V of one layer
  std::size_t total_bytes() const { return 2 * layers * buffer_bytes(); }
  std::size_t pages_for(std::size_t tokens) const { return (tokens + page_size - 1) / page_size; }
};

PoolShape pool_shape(const ModelConfig& config, std::size_t pages, std::size_t page_size);

// A view: the caller owns the memory, `[layer][K|V][page][slot][kv_head][head_dim]`, and keeps it
// mapped for the life of the pool. `memory` holds at least shape.total_bytes(), aligned to 2.
class KvPool {
 public:
  KvPool(const PoolShape& shape, std::span<std::byte> memory);

  const PoolShape& shape() const { return shape_; }

  // The bf16 values of one token in one layer: position `token` of the request that has `pages`.
  std::uint16_t* token(std::size_t layer, KvPart part, std::span<const PageIndex> pages,
                       std::size_t token) const;

  // K of all layers, then V of all layers, as spec 1.5 wants them in KvArgs::kv.
  std::vector<KvBuffer> buffers() const;

 private:
  std::byte* buffer(std::size_t layer, KvPart part) const;

  PoolShape shape_;
  std::byte* data_ = nullptr;
};

// Hands out pages in short runs from scattered places, so that grouping contiguous pages meets
// both runs and gaps. Freed pages go to the back of the queue.
class PageAllocator {
 public:
  explicit PageAllocator(std::size_t pages_count, std::uint64_t seed = 1);

  // nullopt: not enough free pages; nothing is taken.
  std::optional<std::vector<PageIndex>> take(std::size_t count);
  // Every page must have been taken and not given back since.
  void give_back(std::span<const PageIndex> pages);
  std::size_t free_count() const { return free_.size(); }

 private:
  std::deque<PageIndex> free_;
  std::vector<bool> taken_;
};

}  // namespace baton::refengine
