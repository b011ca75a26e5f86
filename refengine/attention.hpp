// AttentionKeys: the keys and values of one layer, unpacked from the pool, and attention over them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "refengine/pools.hpp"
#include "refengine/weights.hpp"

namespace baton::refengine {

// Unpacking first means that attention never sees a page: its order of additions cannot depend on
// the page size or on where the pages lie.
class AttentionKeys {
 public:
  AttentionKeys(const ModelConfig& config, std::size_t keys_count);

  // Reads positions [0, keys_count) of a layer.
  void gather(const KvPool& pool, std::size_t layer, std::span<const PageIndex> pages);

  // One query token (scaled, all heads) over the first `visible` positions. Scores by the 8-lane
  // tree; softmax denominator and weighted sum of values in the order of positions.
  void attend(std::span<const float> query, std::size_t visible, std::span<float> out);

 private:
  std::size_t query_heads_, kv_heads_, head_dim_, keys_count_;
  std::vector<float> keys_, values_;  // [kv_head][position][head_dim]
  std::vector<float> scores_;
};

}  // namespace baton::refengine
