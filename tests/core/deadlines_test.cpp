// One deadline a key, earliest first.
#include "core/deadlines.hpp"

#include <gtest/gtest.h>

namespace {

using baton::Instant;
using Table = baton::core::Deadlines<int>;

Instant at(int seconds) { return Instant{} + std::chrono::seconds(seconds); }

TEST(Deadlines, EmptyTableIsNeverDue) {
  Table table;
  EXPECT_EQ(table.next(), std::nullopt);
  EXPECT_EQ(table.take_due(at(1000)), std::nullopt);
  table.clear(7);  // unknown keys are ignored
}

TEST(Deadlines, EarliestComesFirstAndOnlyWhenDue) {
  Table table;
  table.set(1, at(30));
  table.set(2, at(10));
  EXPECT_EQ(table.next(), at(10));
  EXPECT_EQ(table.take_due(at(9)), std::nullopt);
  EXPECT_EQ(table.take_due(at(10)), 2);
  EXPECT_EQ(table.take_due(at(29)), std::nullopt);
  EXPECT_EQ(table.take_due(at(100)), 1);
  EXPECT_EQ(table.take_due(at(100)), std::nullopt);
}

TEST(Deadlines, SettingAgainReplaces) {
  Table table;
  table.set(1, at(10));
  table.set(1, at(20));
  EXPECT_EQ(table.next(), at(20));
  EXPECT_EQ(table.take_due(at(20)), 1);
  EXPECT_EQ(table, Table{});
}

TEST(Deadlines, ClearForgetsOneKey) {
  Table table;
  table.set(1, at(10));
  table.set(2, at(10));
  table.clear(1);
  EXPECT_EQ(table.take_due(at(10)), 2);
  EXPECT_EQ(table.next(), std::nullopt);
}

TEST(Deadlines, SameInstantGoesByKey) {
  Table table;
  for (const int key : {3, 1, 2}) table.set(key, at(10));
  EXPECT_EQ(table.take_due(at(10)), 1);
  EXPECT_EQ(table.take_due(at(10)), 2);
  EXPECT_EQ(table.take_due(at(10)), 3);
}

TEST(Deadlines, IsAValue) {
  Table table;
  table.set(1, at(10));
  Table copy = table;
  EXPECT_EQ(copy, table);
  copy.clear(1);
  EXPECT_NE(copy, table);
  EXPECT_EQ(table.next(), at(10));
}

}  // namespace
