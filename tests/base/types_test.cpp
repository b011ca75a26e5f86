// The public vocabulary: names, orders that the protocol relies on, hashing, Result.
#include "baton/types.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <unordered_set>

#include "base/assert.hpp"
#include "base/overloaded.hpp"
#include "baton/engine.hpp"
#include "baton/result.hpp"

namespace baton {
namespace {

// MIN over ranks must give "Failed if any failed, Success only if all succeeded". [spec 1.1]
static_assert(KvPoll::failed < KvPoll::bootstrapping);
static_assert(KvPoll::bootstrapping < KvPoll::waiting_for_input);
static_assert(KvPoll::waiting_for_input < KvPoll::transferring);
static_assert(KvPoll::transferring < KvPoll::success);
static_assert(is_terminal(KvPoll::failed) && is_terminal(KvPoll::success));
static_assert(!is_terminal(KvPoll::transferring));

TEST(Types, StatusNamesAreTheReferences) {
  EXPECT_EQ(to_string(KvPoll::failed), "Failed");
  EXPECT_EQ(to_string(KvPoll::success), "Success");
}

TEST(Types, EveryFailureCodeAndOutcomeHasAName) {
  for (int code = 0; code <= static_cast<int>(FailureCode::unknown); ++code) {
    EXPECT_NE(to_string(static_cast<FailureCode>(code)), "");
  }
  for (int outcome = 0; outcome <= static_cast<int>(Outcome::settled); ++outcome) {
    EXPECT_NE(to_string(static_cast<Outcome>(outcome)), "");
  }
}

TEST(Types, StateKindsRoundTrip) {  // [spec 1.2]
  for (int kind = 0; kind <= static_cast<int>(StateKind::block_scale_swa); ++kind) {
    const auto value = static_cast<StateKind>(kind);
    EXPECT_EQ(parse_state_kind(to_string(value)), value);
  }
  EXPECT_EQ(to_string(StateKind::mamba), "mamba");
  EXPECT_EQ(parse_state_kind("mambo"), std::nullopt);
}

TEST(Types, StrongIdsCompareAndHash) {
  EXPECT_LT(RoomId{1}, RoomId{2});
  const std::unordered_set<RoomId> rooms = {RoomId{1}, RoomId{1}, RoomId{2}};
  EXPECT_EQ(rooms.size(), 2U);
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = 3;
  const Result<int> bad = Error{Errc::limit, "too many"};
  EXPECT_TRUE(good.has_value());
  EXPECT_EQ(*good, 3);
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.error(), (Error{Errc::limit, "too many"}));
  EXPECT_NE(good, bad);
}

TEST(Result, MovesItsValueOut) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> value = *std::move(result);
  EXPECT_EQ(*value, 5);
}

TEST(Result, VoidIsSuccessUntilAnErrorSaysOtherwise) {
  EXPECT_TRUE(Result<void>());
  EXPECT_FALSE(Result<void>(Error{Errc::io, ""}));
}

TEST(Overloaded, PicksTheMatchingFunction) {
  const auto name = overloaded{[](int) { return "int"; }, [](double) { return "double"; }};
  EXPECT_STREQ(std::visit(name, std::variant<int, double>(1.0)), "double");
}

TEST(AssertDeathTest, NamesTheConditionAndThePlace) {
  EXPECT_DEATH(BATON_ASSERT(1 + 1 == 3), "broken invariant: 1 \\+ 1 == 3 \\(.*types_test.cpp:");
  EXPECT_DEATH(BATON_UNREACHABLE(), "unreachable");
  BATON_ASSERT(true);
}

}  // namespace
}  // namespace baton
