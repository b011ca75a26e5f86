// Choosing the next token: greedy, or top-k with a temperature and a seeded, positional die.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace baton::refengine {

// A well-mixed number from two (splitmix64 steps); the only source of "randomness" here.
std::uint64_t hash_pair(std::uint64_t a, std::uint64_t b);

struct SamplingParams {
  float temperature = 0.0F;  // 0: greedy
  std::uint32_t top_k = 0;   // 0: the whole vocabulary
  std::uint64_t seed = 0;

  friend bool operator==(const SamplingParams&, const SamplingParams&) = default;
};

struct Candidate {
  std::int32_t token = 0;
  float value = 0.0F;
};

// The `count` highest values, best first; equal values in the order of their ids.
std::vector<Candidate> top_candidates(std::span<const float> values, std::size_t count);

// log(sum(exp(logits))), summed in index order.
float log_sum_exp(std::span<const float> logits);

// `position` is that of the token to choose. The die is a hash of (seed, position), so that the
// choice is the same in whichever process it is made.
std::int32_t sample(std::span<const float> logits, const SamplingParams& params,
                    std::uint64_t position);

}  // namespace baton::refengine
