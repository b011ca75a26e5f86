// RateLimit in virtual time.
#include "obs/rate_limit.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace baton::obs {
namespace {

using std::chrono::seconds;

constexpr std::optional<std::uint64_t> kHeldBack;
const Instant kStart{};

TEST(RateLimit, AdmitsOncePerInterval) {
  RateLimit limit(seconds(60), 8);
  EXPECT_EQ(limit.admit("a", kStart), 0U);
  EXPECT_EQ(limit.admit("a", kStart + seconds(59)), kHeldBack);
  EXPECT_EQ(limit.admit("a", kStart + seconds(60)), 1U);
  EXPECT_EQ(limit.admit("a", kStart + seconds(120)), 0U);
}

TEST(RateLimit, KeysDoNotDisturbEachOther) {
  RateLimit limit(seconds(60), 8);
  EXPECT_EQ(limit.admit("a", kStart), 0U);
  EXPECT_EQ(limit.admit("b", kStart), 0U);
  EXPECT_EQ(limit.admit("a", kStart), kHeldBack);
}

TEST(RateLimit, WhenFullNewKeysShareOneEntry) {
  RateLimit limit(seconds(60), 2);
  EXPECT_EQ(limit.admit("a", kStart), 0U);
  EXPECT_EQ(limit.admit("b", kStart), 0U);
  EXPECT_EQ(limit.admit("c", kStart), 0U);
  EXPECT_EQ(limit.admit("d", kStart), kHeldBack);
  EXPECT_EQ(limit.admit("e", kStart), kHeldBack);
}

TEST(RateLimit, OldKeysMakeRoom) {
  RateLimit limit(seconds(60), 2);
  EXPECT_EQ(limit.admit("a", kStart), 0U);
  EXPECT_EQ(limit.admit("b", kStart + seconds(30)), 0U);
  EXPECT_EQ(limit.admit("c", kStart + seconds(61)), 0U);  // takes a's place
  EXPECT_EQ(limit.admit("d", kStart + seconds(61)), 0U);  // b is recent: the shared entry
  EXPECT_EQ(limit.admit("e", kStart + seconds(61)), kHeldBack);
  EXPECT_EQ(limit.admit("c", kStart + seconds(62)), kHeldBack);
}

}  // namespace
}  // namespace baton::obs
