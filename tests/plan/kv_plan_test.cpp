// pair_buffers and append_writes: the specification's rules, every refusal, every bound.
#include "plan/kv_plan.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace baton::plan {
namespace {

using Sizes = std::vector<std::uint64_t>;
using Ids = std::vector<std::uint32_t>;
using Runs = std::vector<PageRun>;
using Writes = std::vector<WriteRun>;

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

// Buffers of four items of ten bytes at 1000, 2000, ...
std::vector<KvBuffer> buffers(std::size_t count) {
  std::vector<KvBuffer> result;
  for (std::size_t i = 1; i <= count; ++i) result.push_back({i * 1000, 40, 10});
  return result;
}

Sizes addresses(std::size_t count) {
  Sizes result;
  for (std::size_t i = 1; i <= count; ++i) result.push_back(i * 100000);
  return result;
}

// The peer's positions that the local entries were paired with, or the error's text.
std::string partners(const Ids& local, std::size_t local_count, const Ids& remote,
                     std::size_t remote_count) {
  const std::vector<KvBuffer> ours = buffers(local_count);
  const Sizes theirs = addresses(remote_count);
  const auto pairs = pair_buffers("KV", ours, local, {theirs, {}, remote});
  if (!pairs) return pairs.error().text;
  std::string text;
  for (std::size_t i = 0; i < pairs->size(); ++i) {
    EXPECT_EQ((*pairs)[i].source_address, ours[i].address);
    text += std::to_string((*pairs)[i].target_address / 100000 - 1) + " ";
  }
  return text;
}

// --- pairing ------------------------------------------------------------------------------------

TEST(PairBuffers, PairsByPositionWithoutIds) {  // [spec 4.11.1]
  EXPECT_EQ(partners({}, 4, {}, 4), "0 1 2 3 ");
}

TEST(PairBuffers, CopiesSizesFromTheLocalSide) {
  const std::vector<KvBuffer> local = {{1000, 40, 10}};
  const auto pairs = pair_buffers("KV", local, {}, {addresses(1), Sizes{10}, {}});
  ASSERT_TRUE(pairs);
  EXPECT_EQ(*pairs, (std::vector<BufferPair>{{1000, 100000, 10, 4}}));
}

TEST(PairBuffers, PairsByIdWithTheNextUnusedEntry) {  // [spec 4.11.2]
  // K and V of layers 3 and 4 here; the peer holds layers 2 to 5.
  EXPECT_EQ(partners({3, 4, 3, 4}, 4, {2, 3, 4, 5, 2, 3, 4, 5}, 8), "1 2 5 6 ");
  EXPECT_EQ(partners({7, 7, 7}, 3, {7, 7, 7}, 3), "0 1 2 ");
  EXPECT_EQ(partners({1, 0}, 2, {0, 1}, 2), "1 0 ");
}

TEST(PairBuffers, IdsOnOneSideOnlyAreIgnored) {  // [spec 4.11.2]
  EXPECT_EQ(partners({5, 6}, 2, {}, 2), "0 1 ");
  EXPECT_EQ(partners({}, 2, {5, 6}, 2), "0 1 ");
}

TEST(PairBuffers, NothingHereNeedsNothingThere) {
  EXPECT_EQ(partners({}, 0, {}, 0), "");
  EXPECT_EQ(partners({}, 0, {4, 5}, 2), "");
}

TEST(PairBuffers, NamesBothCounts) {
  EXPECT_EQ(partners({}, 12, {}, 10),
            "local has 12 KV entries, peer has 10: without layer ids on both sides the counts must "
            "be equal");
  EXPECT_EQ(partners({}, 0, {}, 2),
            "local has 0 KV entries, peer has 2: without layer ids on both sides the counts must "
            "be equal");
}

TEST(PairBuffers, NamesTheMissingLayer) {
  EXPECT_EQ(partners({3, 9}, 2, {3, 4}, 2),
            "local has 2 KV entries, peer has 2: the peer has no unused entry of layer 9 for local "
            "entry 1");
  EXPECT_EQ(partners({3, 3}, 2, {3, 4}, 2),
            "local has 2 KV entries, peer has 2: the peer has no unused entry of layer 3 for local "
            "entry 1");
}

TEST(PairBuffers, ListsMustDescribeAllEntries) {
  EXPECT_EQ(partners({3}, 2, {3, 4}, 2), "local published 1 layer ids for 2 KV entries");
  EXPECT_EQ(partners({3, 4}, 2, {3}, 2), "peer published 1 layer ids for 2 KV entries");
  const auto pairs = pair_buffers("aux", buffers(2), {}, {addresses(2), Sizes{10}, {}});
  ASSERT_FALSE(pairs);
  EXPECT_EQ(pairs.error(),
            (Error{Errc::malformed, "peer published 1 item sizes for 2 aux entries"}));
}

TEST(PairBuffers, ItemSizesMustAgree) {
  const auto pairs = pair_buffers("KV", buffers(2), {}, {addresses(2), Sizes{10, 12}, {}});
  ASSERT_FALSE(pairs);
  EXPECT_EQ(pairs.error(), (Error{Errc::incompatible,
                                  "KV entry 1: local items have 10 bytes, the peer's entry 1 has "
                                  "12"}));
}

TEST(PairBuffers, ItemSizesAreComparedWithThePartner) {
  const std::vector<KvBuffer> local = {{1000, 40, 10}, {2000, 80, 20}};
  EXPECT_TRUE(pair_buffers("KV", local, Ids{0, 1}, {addresses(2), Sizes{20, 10}, Ids{1, 0}}));
  EXPECT_FALSE(pair_buffers("KV", local, Ids{0, 1}, {addresses(2), Sizes{10, 20}, Ids{1, 0}}));
}

TEST(PairBuffers, ALocalItemOfNoBytesIsRefused) {
  const std::vector<KvBuffer> local = {{1000, 40, 0}};
  const auto pairs = pair_buffers("KV", local, {}, {addresses(1), {}, {}});
  ASSERT_FALSE(pairs);
  EXPECT_EQ(pairs.error(), (Error{Errc::invalid_argument, "KV entry 0: local item_bytes is 0"}));
}

// --- writes -------------------------------------------------------------------------------------

Writes writes_of(const std::vector<BufferPair>& pairs, const Runs& runs) {
  Writes writes;
  const Result<void> done = append_writes(pairs, runs, writes);
  EXPECT_TRUE(done) << done.error().text;
  return writes;
}

// The error's text; also proves that nothing was appended.
std::string refusal(const std::vector<BufferPair>& pairs, const Runs& runs) {
  const Writes before = {{1, 2, 3}};
  Writes writes = before;
  const Result<void> done = append_writes(pairs, runs, writes);
  EXPECT_FALSE(done);
  EXPECT_EQ(writes, before);
  EXPECT_EQ(done.error().code, Errc::invalid_argument);
  return done.error().text;
}

TEST(AppendWrites, OneWritePerPairAndRun) {  // [spec 4.11.0]
  EXPECT_EQ(writes_of({{1000, 5000, 10, 30}, {2000, 9000, 4, 30}}, {{10, 5, 2}, {20, 7, 1}}),
            (Writes{{1100, 5050, 20}, {1200, 5070, 10}, {2040, 9020, 8}, {2080, 9028, 4}}));
}

TEST(AppendWrites, ARowIsARunOfOne) {  // [spec 4.12]
  EXPECT_EQ(writes_of({{1000, 5000, 64, 8}}, {{3, 1, 1}}), (Writes{{1192, 5064, 64}}));
}

TEST(AppendWrites, RunsThatContinueEachOtherJoin) {
  EXPECT_EQ(writes_of({{1000, 5000, 10, 30}}, {{1, 4, 2}, {3, 6, 2}, {5, 9, 1}, {6, 9, 1}}),
            (Writes{{1010, 5040, 40}, {1050, 5090, 10}, {1060, 5090, 10}}));
}

TEST(AppendWrites, PairsNeverShareAWrite) {
  // Two adjacent buffers may be two regions, and no engine writes across a region's end.
  EXPECT_EQ(writes_of({{1000, 5000, 10, 2}, {1020, 5020, 10, 2}}, {{0, 0, 2}}),
            (Writes{{1000, 5000, 20}, {1020, 5020, 20}}));
}

TEST(AppendWrites, AppendsBehindWhatIsThereWithoutJoiningIt) {
  Writes writes = {{990, 4990, 10}};
  const std::vector<BufferPair> pairs = {{1000, 5000, 10, 2}};
  ASSERT_TRUE(append_writes(pairs, Runs{{0, 0, 1}}, writes));
  EXPECT_EQ(writes, (Writes{{990, 4990, 10}, {1000, 5000, 10}}));
}

TEST(AppendWrites, NothingToDoIsNoError) {
  EXPECT_EQ(writes_of({}, {{0, 0, 1}}), Writes{});
  EXPECT_EQ(writes_of({{1000, 5000, 10, 2}}, {}), Writes{});
  EXPECT_EQ(writes_of({{1000, 5000, 10, 2}}, {{-1, 99, 0}}), Writes{});
}

TEST(AppendWrites, NegativeIndicesAreRefused) {
  EXPECT_EQ(refusal({{1000, 5000, 10, 4}}, {{0, 0, 1}, {-1, 0, 1}}),
            "source item -1 is negative: indices start at 0");
  EXPECT_EQ(refusal({{1000, 5000, 10, 4}}, {{0, -7, 1}}),
            "target item -7 is negative: indices start at 0");
}

TEST(AppendWrites, SourceItemsMustExist) {
  EXPECT_EQ(refusal({{1000, 5000, 10, 4}}, {{4, 0, 1}}),
            "source item 4 does not exist: 4 items are registered");
  EXPECT_EQ(refusal({{1000, 5000, 10, 4}}, {{2, 0, 3}}),
            "source item 4 does not exist: 4 items are registered");
  EXPECT_EQ(writes_of({{1000, 5000, 10, 4}}, {{3, 0, 1}}), (Writes{{1030, 5000, 10}}));
}

TEST(AppendWrites, ALaterPairThatFailsKeepsTheEarlierOnesOut) {
  EXPECT_EQ(refusal({{1000, 5000, 10, 9}, {2000, 6000, 10, 4}}, {{5, 0, 1}}),
            "source item 5 does not exist: 4 items are registered");
}

TEST(AppendWrites, AddressesMustNotOverflow) {
  EXPECT_EQ(refusal({{1000, kLargest - 29, 10, 9}}, {{0, 2, 1}}),
            "target address 18446744073709551586 + 3 items of 10 bytes exceeds the largest "
            "address, 18446744073709551615");
  EXPECT_EQ(refusal({{1000, 5000, kLargest / 2, 9}}, {{0, 2, 1}}),
            "target address 5000 + 3 items of 9223372036854775807 bytes exceeds the largest "
            "address, 18446744073709551615");
  EXPECT_EQ(refusal({{kLargest - 5, 0, 10, 9}}, {{0, 0, 1}}),
            "source address 18446744073709551610 + 1 items of 10 bytes exceeds the largest "
            "address, 18446744073709551615");
  EXPECT_EQ(writes_of({{1000, kLargest - 30, 10, 9}}, {{0, 2, 1}}),
            (Writes{{1000, kLargest - 10, 10}}));
}

TEST(AppendWrites, TheLargestIndexAndCountDoNotWrap) {
  constexpr PageIndex last = std::numeric_limits<PageIndex>::max();
  constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t items = std::uint64_t{last} + most;
  EXPECT_EQ(writes_of({{16, 32, 4, items}}, {{last, last, most}}),
            (Writes{{16 + 4 * std::uint64_t{last}, 32 + 4 * std::uint64_t{last},
                     4 * std::uint64_t{most}}}));
  EXPECT_EQ(refusal({{16, 32, 4, items - 1}}, {{last, last, most}}),
            "source item 6442450941 does not exist: 6442450941 items are registered");
}

}  // namespace
}  // namespace baton::plan
