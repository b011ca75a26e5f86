// Greedy, top-k, and the positional die.
#include "refengine/sampler.hpp"

#include <gtest/gtest.h>

#include <set>

namespace baton::refengine {
namespace {

const std::vector<float> kLogits = {0.5F, 2.0F, 1.0F, 2.0F, -3.0F};

TEST(Sampler, GreedyTakesTheFirstOfTheBest) { EXPECT_EQ(sample(kLogits, {}, 0), 1); }

TEST(Sampler, TopKKeepsToTheBest) {
  std::set<std::int32_t> seen;
  for (std::uint64_t position = 0; position < 500; ++position) {
    seen.insert(sample(kLogits, {1.0F, 3, 9}, position));
  }
  EXPECT_EQ(seen, (std::set<std::int32_t>{1, 2, 3}));
}

TEST(Sampler, DependsOnSeedAndPositionOnly) {
  std::set<std::vector<std::int32_t>> streams;
  for (const std::uint64_t seed : {1, 2, 3}) {
    std::vector<std::int32_t> stream;
    for (std::uint64_t position = 0; position < 50; ++position) {
      stream.push_back(sample(kLogits, {1.0F, 0, seed}, position));
      EXPECT_EQ(stream.back(), sample(kLogits, {1.0F, 0, seed}, position));
    }
    streams.insert(stream);
  }
  EXPECT_EQ(streams.size(), 3U);
}

TEST(Sampler, FrequenciesFollowTheProbabilities) {
  std::vector<int> counts(2);
  for (std::uint64_t position = 0; position < 20000; ++position) {
    ++counts[static_cast<std::size_t>(
        sample(std::vector<float>{1.0F, 0.0F}, {1.0F, 0, 5}, position))];
  }
  EXPECT_NEAR(counts[0] / 20000.0, 0.7311, 0.02);  // e / (e + 1)
}

TEST(Sampler, TopCandidatesBreakTiesById) {
  const std::vector<Candidate> top = top_candidates(kLogits, 3);
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0].token, 1);
  EXPECT_EQ(top[1].token, 3);
  EXPECT_EQ(top[2].token, 2);
  EXPECT_EQ(top_candidates(kLogits, 99).size(), kLogits.size());
}

}  // namespace
}  // namespace baton::refengine
