// Lists test: packed arrays and lists of lists, whole, cut, lying about lengths, and too large.
#include "wire/lists.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace baton::wire::test {
namespace {

constexpr ListLimits kLimits{16, 64};

std::string words(std::initializer_list<std::uint32_t> values) {
  return *pack(std::vector<std::uint32_t>(values), 64);
}

template <class T>
class Packed : public testing::Test {};
using Elements = testing::Types<std::uint64_t, std::uint32_t, std::int32_t>;
TYPED_TEST_SUITE(Packed, Elements);

TYPED_TEST(Packed, ArraysRoundTrip) {
  std::mt19937_64 random(5);
  for (std::size_t count = 0; count <= 64; ++count) {
    std::vector<TypeParam> values(count);
    for (TypeParam& value : values) value = static_cast<TypeParam>(random());
    const Result<std::string> frame = pack(values, 64);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->size(), count * sizeof(TypeParam));
    EXPECT_EQ(*unpack<TypeParam>(*frame, 64), values);
  }
}

TYPED_TEST(Packed, OnlyWholeElements) {
  for (std::size_t bytes = 0; bytes < 40; ++bytes) {
    const bool whole = bytes % sizeof(TypeParam) == 0;
    EXPECT_EQ(unpack<TypeParam>(std::string(bytes, 'x'), 64).has_value(), whole) << bytes;
  }
}

TYPED_TEST(Packed, LimitsHoldBothWays) {
  const std::vector<TypeParam> values(5);
  EXPECT_TRUE(pack(values, 5));
  EXPECT_EQ(pack(values, 4).error().code, Errc::invalid_argument);
  EXPECT_TRUE(unpack<TypeParam>(*pack(values, 5), 5));
  EXPECT_EQ(unpack<TypeParam>(*pack(values, 5), 4).error().code, Errc::malformed);
}

TYPED_TEST(Packed, ListsRoundTrip) {
  const TypeParam low = std::numeric_limits<TypeParam>::min();
  const TypeParam high = std::numeric_limits<TypeParam>::max();
  for (const Lists<TypeParam>& lists :
       {Lists<TypeParam>{}, Lists<TypeParam>{{}}, Lists<TypeParam>{{low, high}},
        Lists<TypeParam>{{}, {1, 2, 3}, {}, {high}}}) {
    const Result<std::string> frame = pack_lists(lists, kLimits);
    ASSERT_TRUE(frame) << frame.error().text;
    EXPECT_EQ(*unpack_lists<TypeParam>(*frame, kLimits), lists);
  }
}

TYPED_TEST(Packed, EveryCutOfListsIsAnError) {
  const std::string frame = *pack_lists(Lists<TypeParam>{{1, 2}, {}, {3}}, kLimits);
  for (std::size_t bytes = 1; bytes < frame.size(); ++bytes) {
    EXPECT_FALSE(unpack_lists<TypeParam>(frame.substr(0, bytes), kLimits)) << bytes;
  }
  EXPECT_EQ(*unpack_lists<TypeParam>("", kLimits), Lists<TypeParam>{});
}

// The reference ignores what comes after the last list, so we do.
TEST(Lists, BytesAfterTheLastListAreIgnored) {
  const Lists<std::int32_t> expected{{1}, {}};
  EXPECT_EQ(*unpack_lists<std::int32_t>(words({2, 4, 0, 1}) + "surplus", kLimits), expected);
  EXPECT_EQ(*unpack_lists<std::int32_t>(words({0}) + "surplus", kLimits), Lists<std::int32_t>{});
}

// On purpose unlike the reference, which would answer a list of one element here.
TEST(Lists, AListLongerThanTheFrameIsAnErrorEvenIfTheCutIsWhole) {
  const Result<Lists<std::int32_t>> lists = unpack_lists<std::int32_t>(words({1, 8, 7}), kLimits);
  ASSERT_FALSE(lists);
  EXPECT_EQ(lists.error().text, "expected 8 bytes in list 0, found 4");
}

// Counts and lengths near 2^32 must neither allocate nor overflow.
TEST(Lists, HugeCountsAndLengths) {
  for (const std::uint32_t huge : {0xFFFFFFFFU, 0x80000000U, 0x7FFFFFFFU, 0x40000000U, 17U}) {
    EXPECT_FALSE(unpack_lists<std::int32_t>(words({huge}), kLimits)) << huge;
    EXPECT_FALSE(unpack_lists<std::int32_t>(words({huge, 4, 1}), kLimits)) << huge;
    EXPECT_FALSE(unpack_lists<std::int32_t>(words({1, huge, 1}), kLimits)) << huge;
    EXPECT_FALSE(unpack_lists<std::int32_t>(words({2, huge, huge, 1, 2}), kLimits)) << huge;
    // A limit that would not stop the count: the frame's size must.
    EXPECT_FALSE(unpack_lists<std::int32_t>(words({huge}), {0xFFFFFFFF, 64})) << huge;
  }
}

TEST(Lists, LengthsMustBeWholeElements) {
  const Result<Lists<std::uint64_t>> lists = unpack_lists<std::uint64_t>(words({1, 4, 7}), kLimits);
  ASSERT_FALSE(lists);
  EXPECT_EQ(lists.error().text, "expected whole elements of 8 bytes, found 4 bytes");
}

TEST(Lists, TheElementLimitCountsAllLists) {
  const Lists<std::uint32_t> lists{{1, 2}, {3, 4}};
  const std::string frame = *pack_lists(lists, {2, 4});
  EXPECT_TRUE(unpack_lists<std::uint32_t>(frame, {2, 4}));
  EXPECT_FALSE(unpack_lists<std::uint32_t>(frame, {2, 3}));
  EXPECT_FALSE(unpack_lists<std::uint32_t>(frame, {1, 4}));
  EXPECT_FALSE(pack_lists(lists, {2, 3}));
  EXPECT_FALSE(pack_lists(lists, {1, 4}));
}

}  // namespace
}  // namespace baton::wire::test
