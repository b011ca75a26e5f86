// Topology: which prefill ranks a decode rank talks to, and whether the two sides fit. [spec 7]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "baton/result.hpp"
#include "baton/types.hpp"
#include "core/messages.hpp"

namespace baton::core {

// The number of one prefill rank inside its DP replica, as status messages carry it. [spec 4.6]
std::uint32_t unique_prefill_rank(const Topology& topology);

// What this decode rank compares with the prefill deployment.
struct DecodeShape {
  Topology topology;
  std::uint32_t page_size = 0;
  std::string kv_cache_dtype;  // empty: not compared

  friend bool operator==(const DecodeShape&, const DecodeShape&) = default;
};

struct TargetRank {
  std::uint32_t cp_rank = 0, tp_rank = 0, pp_rank = 0;
  bool is_dummy = false;

  friend bool operator==(const TargetRank&, const TargetRank&) = default;
};

struct RankMap {
  std::vector<TargetRank> targets;      // in sending order
  std::uint32_t required_dst_info_num = 1;          // what each prefill rank waits for
  std::uint32_t required_prefill_response_num = 1;  // what decode counts

  friend bool operator==(const RankMap&, const RankMap&) = default;
};

// Equal ranks only, in this version. The error names the field and both values.
Result<RankMap> map_ranks(const DecodeShape& decode, const PrefillInfo& prefill);

// The prefill DP replica that serves the room. [spec 6.6]
Result<std::uint32_t> choose_dp_rank(RoomId room, std::optional<std::uint32_t> asked,
                                     const PrefillInfo& prefill);

}  // namespace baton::core
