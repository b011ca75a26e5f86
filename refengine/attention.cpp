// Attention of one token over unpacked keys and values.
#include "refengine/attention.hpp"

#include <algorithm>

#include "refengine/check.hpp"
#include "refengine/math.hpp"

namespace baton::refengine {

AttentionKeys::AttentionKeys(const ModelConfig& config, std::size_t keys_count)
    : query_heads_(config.query_heads),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      keys_count_(keys_count),
      keys_(keys_count * config.kv_width()),
      values_(keys_.size()),
      scores_(keys_count) {}

void AttentionKeys::gather(const KvPool& pool, std::size_t layer,
                           std::span<const PageIndex> pages) {
  for (std::size_t position = 0; position < keys_count_; ++position) {
    const std::uint16_t* k = pool.token(layer, KvPart::k, pages, position);
    const std::uint16_t* v = pool.token(layer, KvPart::v, pages, position);
    for (std::size_t h = 0; h < kv_heads_; ++h) {
      const std::size_t to = (h * keys_count_ + position) * head_dim_;
      for (std::size_t i = 0; i < head_dim_; ++i) {
        keys_[to + i] = from_bf16(k[h * head_dim_ + i]);
        values_[to + i] = from_bf16(v[h * head_dim_ + i]);
      }
    }
  }
}

void AttentionKeys::attend(std::span<const float> query, std::size_t visible,
                           std::span<float> out) {
  REFENGINE_CHECK(visible <= keys_count_);
  const std::size_t group = query_heads_ / kv_heads_;
  for (std::size_t h = 0; h < query_heads_; ++h) {
    const std::span<const float> q = query.subspan(h * head_dim_, head_dim_);
    const std::size_t base = h / group * keys_count_ * head_dim_;
    for (std::size_t j = 0; j < visible; ++j) {
      scores_[j] = dot(q, std::span<const float>(keys_).subspan(base + j * head_dim_, head_dim_));
    }
    const auto end = scores_.begin() + static_cast<std::ptrdiff_t>(visible);
    const float highest = *std::max_element(scores_.begin(), end);
    exponentials(std::span(scores_).first(visible), highest);
    float denominator = 0.0F;
    for (std::size_t j = 0; j < visible; ++j) denominator += scores_[j];
    const std::span<float> sums = out.subspan(h * head_dim_, head_dim_);
    weighted_sum({values_.data() + base, visible, head_dim_}, scores_.data(), sums.data());
    for (float& sum : sums) sum /= denominator;
  }
}

}  // namespace baton::refengine
