// Addresses inside the KV pool, and the free list.
#include "refengine/pools.hpp"

#include <algorithm>

#include "refengine/check.hpp"
#include "refengine/sampler.hpp"

namespace baton::refengine {

PoolShape pool_shape(const ModelConfig& config, std::size_t pages, std::size_t page_size) {
  return {config.layers, pages, page_size, config.kv_heads, config.head_dim};
}

KvPool::KvPool(const PoolShape& shape, std::span<std::byte> memory)
    : shape_(shape), data_(memory.data()) {
  REFENGINE_CHECK(memory.size() >= shape.total_bytes());
  REFENGINE_CHECK(reinterpret_cast<std::uintptr_t>(data_) % alignof(std::uint16_t) == 0);
}

std::byte* KvPool::buffer(std::size_t layer, KvPart part) const {
  const std::size_t index = 2 * layer + (part == KvPart::v ? 1 : 0);
  return data_ + index * shape_.buffer_bytes();
}

std::uint16_t* KvPool::token(std::size_t layer, KvPart part, std::span<const PageIndex> pages,
                             std::size_t token) const {
  const std::size_t place = token / shape_.page_size;
  REFENGINE_CHECK(place < pages.size());
  const auto page = static_cast<std::size_t>(pages[place]);
  REFENGINE_CHECK(page < shape_.pages);
  std::byte* at = buffer(layer, part) + page * shape_.page_bytes() +
                  token % shape_.page_size * shape_.token_bytes();
  return reinterpret_cast<std::uint16_t*>(at);
}

std::vector<KvBuffer> KvPool::buffers() const {
  std::vector<KvBuffer> result;
  for (const KvPart part : {KvPart::k, KvPart::v}) {
    for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
      result.push_back({reinterpret_cast<std::uintptr_t>(buffer(layer, part)),
                        shape_.buffer_bytes(), shape_.page_bytes()});
    }
  }
  return result;
}

PageAllocator::PageAllocator(std::size_t pages_count, std::uint64_t seed) : taken_(pages_count) {
  std::vector<std::vector<PageIndex>> runs;
  for (std::size_t page = 0; page < pages_count;) {
    const std::size_t length = 1 + hash_pair(seed, page) % 4;
    std::vector<PageIndex>& run = runs.emplace_back();
    for (; run.size() < length && page < pages_count; ++page) {
      run.push_back(static_cast<PageIndex>(page));
    }
  }
  for (std::size_t i = runs.size(); i > 1; --i) {
    std::swap(runs[i - 1], runs[hash_pair(seed + 1, i) % i]);
  }
  for (const std::vector<PageIndex>& run : runs) free_.insert(free_.end(), run.begin(), run.end());
}

std::optional<std::vector<PageIndex>> PageAllocator::take(std::size_t count) {
  if (count > free_.size()) return std::nullopt;
  const auto end = free_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<PageIndex> pages(free_.begin(), end);
  free_.erase(free_.begin(), end);
  for (const PageIndex page : pages) taken_[static_cast<std::size_t>(page)] = true;
  return pages;
}

void PageAllocator::give_back(std::span<const PageIndex> pages) {
  for (const PageIndex page : pages) {
    REFENGINE_CHECK(page >= 0);
    REFENGINE_CHECK(static_cast<std::size_t>(page) < taken_.size());
    REFENGINE_CHECK(taken_[static_cast<std::size_t>(page)]);
    taken_[static_cast<std::size_t>(page)] = false;
    free_.push_back(page);
  }
}

}  // namespace baton::refengine
