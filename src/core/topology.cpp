// The rank mapping and the compatibility check of two deployments.
#include "core/topology.hpp"

#include <optional>

namespace baton::core {

namespace {

Error differs(const std::string& field, const std::string& prefill, const std::string& decode) {
  return {Errc::incompatible, field + " is " + prefill + " on prefill and " + decode +
                                  " on decode; both sides must be started with the same value"};
}

Error differs(const std::string& field, std::uint32_t prefill, std::uint32_t decode) {
  return differs(field, std::to_string(prefill), std::to_string(decode));
}

}  // namespace

std::uint32_t unique_prefill_rank(const Topology& topology) {
  return topology.attn_tp_rank * (topology.pp_size * topology.attn_cp_size) +
         topology.pp_rank * topology.attn_cp_size + topology.attn_cp_rank;
}

Result<RankMap> map_ranks(const DecodeShape& decode, const PrefillInfo& prefill) {
  const Topology& own = decode.topology;
  if (prefill.page_size && *prefill.page_size != decode.page_size) {
    return differs("page_size", *prefill.page_size, decode.page_size);
  }
  if (prefill.kv_cache_dtype && !decode.kv_cache_dtype.empty() &&
      *prefill.kv_cache_dtype != decode.kv_cache_dtype) {
    return differs("kv_cache_dtype", *prefill.kv_cache_dtype, decode.kv_cache_dtype);
  }
  if (prefill.attn_tp_size != own.attn_tp_size) {
    return differs("attn_tp_size", prefill.attn_tp_size, own.attn_tp_size);
  }
  if (prefill.attn_cp_size != own.attn_cp_size || prefill.attn_cp_size != 1) {
    return differs("attn_cp_size (only 1 is supported)", prefill.attn_cp_size, own.attn_cp_size);
  }
  if (prefill.pp_size != own.pp_size) return differs("pp_size", prefill.pp_size, own.pp_size);
  RankMap map;
  map.targets.push_back({0, own.attn_tp_rank % own.attn_tp_size, own.pp_rank, false});
  return map;
}

Result<std::uint32_t> choose_dp_rank(RoomId room, std::optional<std::uint32_t> asked,
                                     const PrefillInfo& prefill) {
  if (asked) {
    if (*asked < prefill.dp_size) return *asked;
    return Error{Errc::invalid_argument, "prefill dp rank " + std::to_string(*asked) +
                                             " was asked for, but prefill has dp_size " +
                                             std::to_string(prefill.dp_size)};
  }
  if (prefill.dp_size <= 1) return 0U;
  if (prefill.follow_bootstrap_room) {
    return static_cast<std::uint32_t>(room.value % prefill.dp_size);
  }
  return Error{Errc::invalid_argument,
               "prefill has dp_size " + std::to_string(prefill.dp_size) +
                   " and does not follow the room number: name the dp rank in open()"};
}

}  // namespace baton::core
