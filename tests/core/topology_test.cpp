// Which ranks talk to each other, and which deployments fit.
#include "core/topology.hpp"

#include <gtest/gtest.h>

namespace {

using namespace baton;
using namespace baton::core;

DecodeShape decode(std::uint32_t tp_size, std::uint32_t tp_rank) {
  DecodeShape shape;
  shape.topology.attn_tp_size = tp_size;
  shape.topology.attn_tp_rank = tp_rank;
  shape.page_size = 16;
  shape.kv_cache_dtype = "bfloat16";
  return shape;
}

PrefillInfo prefill(std::uint32_t tp_size) {
  PrefillInfo info;
  info.attn_tp_size = tp_size;
  info.page_size = 16;
  info.kv_cache_dtype = "bfloat16";
  return info;
}

std::string refusal(const DecodeShape& shape, const PrefillInfo& info) {
  const Result<RankMap> map = map_ranks(shape, info);
  if (map) return "accepted";
  EXPECT_EQ(map.error().code, Errc::incompatible);
  return map.error().text;
}

const std::string kRemedy = "; both sides must be started with the same value";

// The example of [spec 4.6]: tp 2, pp 1 of 3, cp 3 of 4.
TEST(Topology, UniquePrefillRank) {
  Topology rank;
  rank.attn_tp_size = 4;
  rank.attn_tp_rank = 2;
  rank.pp_size = 3;
  rank.pp_rank = 1;
  rank.attn_cp_size = 4;
  rank.attn_cp_rank = 3;
  EXPECT_EQ(unique_prefill_rank(rank), 31U);
  EXPECT_EQ(unique_prefill_rank(Topology{}), 0U);
}

// The first row of [spec 7.7].
TEST(Topology, EqualRanksTalkOneToOne) {
  const Result<RankMap> map = map_ranks(decode(4, 2), prefill(4));
  ASSERT_TRUE(map);
  EXPECT_EQ(*map, (RankMap{{{0, 2, 0, false}}, 1, 1}));
}

TEST(Topology, EqualPipelineStagesTalkOneToOne) {
  DecodeShape shape = decode(2, 0);
  shape.topology.pp_size = 2;
  shape.topology.pp_rank = 1;
  PrefillInfo info = prefill(2);
  info.pp_size = 2;
  const Result<RankMap> map = map_ranks(shape, info);
  ASSERT_TRUE(map);
  EXPECT_EQ(*map, (RankMap{{{0, 0, 1, false}}, 1, 1}));
}

TEST(Topology, MismatchesNameTheFieldAndBothValues) {
  PrefillInfo info = prefill(4);
  EXPECT_EQ(refusal(decode(2, 1), info), "attn_tp_size is 4 on prefill and 2 on decode" + kRemedy);
  info.page_size = 64;
  EXPECT_EQ(refusal(decode(4, 1), info), "page_size is 64 on prefill and 16 on decode" + kRemedy);
  info = prefill(4);
  info.kv_cache_dtype = "fp8_e4m3";
  EXPECT_EQ(refusal(decode(4, 1), info),
            "kv_cache_dtype is fp8_e4m3 on prefill and bfloat16 on decode" + kRemedy);
  info = prefill(4);
  info.pp_size = 2;
  EXPECT_EQ(refusal(decode(4, 1), info), "pp_size is 2 on prefill and 1 on decode" + kRemedy);
  info = prefill(4);
  info.attn_cp_size = 2;
  EXPECT_EQ(refusal(decode(4, 1), info),
            "attn_cp_size (only 1 is supported) is 2 on prefill and 1 on decode" + kRemedy);
}

// Context parallelism is not supported, not even when both sides agree.
TEST(Topology, RefusesEqualContextParallelism) {
  DecodeShape shape = decode(4, 1);
  shape.topology.attn_cp_size = 2;
  PrefillInfo info = prefill(4);
  info.attn_cp_size = 2;
  EXPECT_NE(refusal(shape, info), "accepted");
}

TEST(Topology, UnnamedFieldsAreNotCompared) {
  PrefillInfo info = prefill(1);
  info.page_size.reset();
  info.kv_cache_dtype.reset();
  EXPECT_EQ(refusal(decode(1, 0), info), "accepted");
  DecodeShape shape = decode(1, 0);
  shape.kv_cache_dtype.clear();
  EXPECT_EQ(refusal(shape, prefill(1)), "accepted");
}

TEST(Topology, DpRankFollowsTheRoomNumber) {
  PrefillInfo info = prefill(1);
  EXPECT_EQ(choose_dp_rank(RoomId{7}, std::nullopt, info), Result<std::uint32_t>(0U));
  info.dp_size = 4;
  EXPECT_EQ(choose_dp_rank(RoomId{7}, std::nullopt, info), Result<std::uint32_t>(3U));
  const RoomId large{(std::uint64_t{1} << 63) - 1};
  EXPECT_EQ(choose_dp_rank(large, std::nullopt, info), Result<std::uint32_t>(3U));
}

TEST(Topology, DpRankIsTheCallersIfGiven) {
  PrefillInfo info = prefill(1);
  info.dp_size = 4;
  EXPECT_EQ(choose_dp_rank(RoomId{7}, 2, info), Result<std::uint32_t>(2U));
  info.follow_bootstrap_room = false;
  EXPECT_EQ(choose_dp_rank(RoomId{7}, 2, info), Result<std::uint32_t>(2U));
  EXPECT_EQ(choose_dp_rank(RoomId{7}, 4, info).error().code, Errc::invalid_argument);
  EXPECT_EQ(choose_dp_rank(RoomId{7}, std::nullopt, info).error().code, Errc::invalid_argument);
}

}  // namespace
