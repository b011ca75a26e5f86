// Outbox: order, both limits, expiry.
#include "net/outbox.hpp"

#include <gtest/gtest.h>

namespace baton::net {
namespace {

constexpr Instant at(int ms) { return Instant(std::chrono::milliseconds(ms)); }

TEST(Outbox, KeepsOrderAndCountsBytes) {
  Outbox outbox({10, 100});
  EXPECT_TRUE(outbox.push({"ab", ""}, at(1)));
  EXPECT_TRUE(outbox.push({"cde"}, at(2)));
  EXPECT_EQ(outbox.size(), 2u);
  EXPECT_EQ(outbox.bytes(), 5u);
  EXPECT_EQ(outbox.front(), (Frames{"ab", ""}));
  EXPECT_EQ(outbox.pop(), (Frames{"ab", ""}));
  EXPECT_EQ(outbox.pop(), Frames{"cde"});
  EXPECT_TRUE(outbox.empty());
  EXPECT_EQ(outbox.bytes(), 0u);
  EXPECT_EQ(outbox.next_deadline(), std::nullopt);
}

TEST(Outbox, RefusesBeyondEitherLimitAndLeavesTheMessageAlone) {
  Outbox outbox({2, 10});
  EXPECT_TRUE(outbox.push({"12345"}, at(1)));
  Frames big{"123456"};
  EXPECT_FALSE(outbox.push(std::move(big), at(2)));
  EXPECT_EQ(big, Frames{"123456"});
  EXPECT_TRUE(outbox.push({"12345"}, at(3)));
  EXPECT_FALSE(outbox.push({""}, at(4)));
}

// A single message larger than the byte limit must still be able to leave at once.
TEST(Outbox, EmptyTakesAnyOneMessage) {
  Outbox outbox({1, 4});
  EXPECT_TRUE(outbox.push({"123456789"}, at(1)));
  EXPECT_FALSE(outbox.push({""}, at(2)));
}

TEST(Outbox, ExpiresOldestFirst) {
  Outbox outbox({10, 100});
  outbox.push({"a"}, at(10));
  outbox.push({"b"}, at(20));
  outbox.push({"c"}, at(30));
  EXPECT_EQ(outbox.next_deadline(), at(10));
  EXPECT_TRUE(outbox.pop_expired(at(9)).empty());
  EXPECT_EQ(outbox.pop_expired(at(20)), (std::vector<Frames>{{"a"}, {"b"}}));
  EXPECT_EQ(outbox.next_deadline(), at(30));
  EXPECT_EQ(outbox.bytes(), 1u);
}

}  // namespace
}  // namespace baton::net
