// Greedy and seeded sampling.
#include "refengine/sampler.hpp"

#include <algorithm>

#include "refengine/check.hpp"
#include "refengine/math.hpp"

namespace baton::refengine {

std::uint64_t hash_pair(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15U + b;
  for (int round = 0; round < 2; ++round) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    x ^= x >> 31U;
  }
  return x;
}

std::vector<Candidate> top_candidates(std::span<const float> values, std::size_t count) {
  std::vector<Candidate> all;
  all.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    all.push_back({static_cast<std::int32_t>(i), values[i]});
  }
  const std::size_t kept = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                    [](const Candidate& a, const Candidate& b) {
                      return a.value != b.value ? a.value > b.value : a.token < b.token;
                    });
  all.resize(kept);
  return all;
}

float log_sum_exp(std::span<const float> logits) {
  const float highest = *std::max_element(logits.begin(), logits.end());
  float sum = 0.0F;
  for (const float logit : logits) sum += exponential(logit - highest);
  return highest + logarithm(sum);
}

std::int32_t sample(std::span<const float> logits, const SamplingParams& params,
                    std::uint64_t position) {
  REFENGINE_CHECK(!logits.empty());
  const bool greedy = !(params.temperature > 0.0F);
  const std::size_t wanted = params.top_k == 0 ? logits.size() : params.top_k;
  std::vector<Candidate> candidates = top_candidates(logits, greedy ? 1 : wanted);
  if (greedy) return candidates.front().token;
  const float highest = candidates.front().value;
  float total = 0.0F;
  for (Candidate& candidate : candidates) {
    candidate.value = exponential((candidate.value - highest) / params.temperature);
    total += candidate.value;
  }
  // 24 bits fill a float's mantissa exactly: the die is in [0, 1) and never rounds to 1.
  const float die =
      static_cast<float>(hash_pair(params.seed, position) >> 40U) * (1.0F / 16777216.0F);
  const float target = die * total;
  float passed = 0.0F;
  for (const Candidate& candidate : candidates) {
    passed += candidate.value;
    if (passed > target) return candidate.token;
  }
  return candidates.back().token;
}

}  // namespace baton::refengine
