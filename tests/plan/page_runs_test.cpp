// coalesce: the specification's example, the edges of blocks, and random lists against an oracle.
#include "plan/page_runs.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace baton::plan {
namespace {

using Pages = std::vector<PageIndex>;
using Runs = std::vector<PageRun>;

constexpr PageIndex kLargest = std::numeric_limits<PageIndex>::max();
constexpr PageIndex kSmallest = std::numeric_limits<PageIndex>::min();

Runs coalesced(const Pages& source, const Pages& target) {
  Runs runs;
  coalesce(source, target, runs);
  return runs;
}

// Page by page, in wide arithmetic: what coalesce must equal.
Runs oracle(const Pages& source, const Pages& target) {
  Runs runs;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool goes_on = i > 0 && std::int64_t{source[i]} - source[i - 1] == 1 &&
                         std::int64_t{target[i]} - target[i - 1] == 1;
    if (goes_on) {
      ++runs.back().count;
    } else {
      runs.push_back({source[i], target[i], 1});
    }
  }
  return runs;
}

Pages counting_from(PageIndex first, std::size_t count) {
  Pages pages(count);
  for (std::size_t i = 0; i < count; ++i) pages[i] = first + static_cast<PageIndex>(i);
  return pages;
}

TEST(PageRuns, SplitsBothSidesAtTheSamePlace) {  // [spec 4.11.0]
  EXPECT_EQ(coalesced({10, 11, 20}, {5, 6, 7}), (Runs{{10, 5, 2}, {20, 7, 1}}));
}

TEST(PageRuns, NothingGivesNothing) { EXPECT_EQ(coalesced({}, {}), Runs{}); }

TEST(PageRuns, OneSideAloneBreaksARun) {
  EXPECT_EQ(coalesced({1, 2, 3}, {7, 8, 10}), (Runs{{1, 7, 2}, {3, 10, 1}}));
  EXPECT_EQ(coalesced({1, 3, 4}, {7, 8, 9}), (Runs{{1, 7, 1}, {3, 8, 2}}));
}

TEST(PageRuns, RepeatedAndFallingIndicesAreRunsOfOne) {
  EXPECT_EQ(coalesced({4, 4, 3}, {9, 9, 8}), (Runs{{4, 9, 1}, {4, 9, 1}, {3, 8, 1}}));
}

TEST(PageRuns, AppendsBehindWhatIsThere) {
  Runs runs = {{1, 1, 1}};
  coalesce(Pages{2}, Pages{2}, runs);
  EXPECT_EQ(runs, (Runs{{1, 1, 1}, {2, 2, 1}}));
}

TEST(PageRuns, AWrapIsNoStep) {
  EXPECT_EQ(coalesced({kLargest, kSmallest}, {0, 1}), (Runs{{kLargest, 0, 1}, {kSmallest, 1, 1}}));
  EXPECT_EQ(coalesced({0, 1}, {kLargest, kSmallest}), (Runs{{0, kLargest, 1}, {1, kSmallest, 1}}));
}

TEST(PageRuns, NegativeIndicesPassUnjudged) {
  EXPECT_EQ(coalesced({-2, -1, 0, 1}, {3, 4, 5, 6}), (Runs{{-2, 3, 4}}));
}

// Every length around the block size, with one break at every place on either side.
TEST(PageRuns, FindsASingleBreakAnywhere) {
  for (std::size_t count = 1; count <= 70; ++count) {
    for (std::size_t at = 0; at <= count; ++at) {
      Pages source = counting_from(100, count);
      Pages target = counting_from(7, count);
      for (std::size_t i = at; i < count; ++i) source[i] += 1000;
      ASSERT_EQ(coalesced(source, target), oracle(source, target)) << count << " at " << at;
      ASSERT_EQ(coalesced(target, source), oracle(target, source)) << count << " at " << at;
    }
  }
}

TEST(PageRuns, EqualsTheOracleOnRandomLists) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    const std::size_t count = random() % 200;
    const std::uint64_t breaks_one_in = 1 + random() % 40;
    Pages source, target;
    const auto next = [&](const Pages& pages) {
      const bool goes_on = !pages.empty() && pages.back() != kLargest && random() % breaks_one_in;
      return goes_on ? pages.back() + 1 : static_cast<PageIndex>(random() & 0xffffffff);
    };
    for (std::size_t i = 0; i < count; ++i) {
      source.push_back(next(source));
      target.push_back(next(target));
    }
    ASSERT_EQ(coalesced(source, target), oracle(source, target)) << "seed " << seed;
  }
}

TEST(PageRunsDeathTest, UnequalLengthsAreABrokenInvariant) {
  EXPECT_DEATH(coalesced({1, 2}, {1}), "source.size\\(\\) == target.size\\(\\)");
}

}  // namespace
}  // namespace baton::plan
