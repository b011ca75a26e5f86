// Semantic messages between prefill, decode and the bootstrap server; wire/ turns them into frames.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/address.hpp"
#include "baton/types.hpp"

namespace baton {

// decode -> prefill, once per connection: where decode's memory lies. [spec 5.2]
struct Registration {
  Endpoint endpoint;        // decode's control socket
  std::string session_id;   // descriptor of decode's transfer engine
  std::vector<std::uint64_t> kv_ptrs;
  std::vector<std::uint64_t> aux_ptrs;
  std::vector<std::vector<std::uint64_t>> state_ptrs;
  std::uint32_t engine_rank = 0;   // decode's TP rank
  std::uint32_t attn_tp_size = 1;
  std::uint64_t kv_item_bytes = 0;  // of the first KV entry, 0 if there is none
  std::vector<std::vector<std::uint32_t>> state_item_bytes;
  std::vector<std::vector<std::uint32_t>> state_dims;
  std::vector<std::uint32_t> kv_layer_ids;
  std::vector<std::vector<std::uint32_t>> state_layer_ids;
  std::uint64_t staging_base = 0;
  std::uint64_t staging_bytes = 0;
  std::uint32_t dcp_size = 1;
  std::uint32_t dcp_rank = 0;
  std::vector<std::uint64_t> staging_slot_layer_ids;
  std::vector<std::uint64_t> kv_item_bytes_all;  // one per KV entry; empty from older peers

  friend bool operator==(const Registration&, const Registration&) = default;
};

// decode -> prefill, once per request and peer: which pages to write. [spec 5.3]
struct Metadata {
  RoomId room;
  Endpoint endpoint;
  std::string session_id;
  std::vector<PageIndex> kv_pages;
  std::optional<std::uint32_t> aux_index;  // nullopt only for a dummy
  std::vector<std::vector<std::int32_t>> state_slots;
  std::uint32_t required_dst_info_num = 1;
  std::optional<std::uint64_t> decode_prefix_tokens;  // sent as 0 when absent
  std::vector<PageIndex> device_kv_pages;
  bool is_dummy = false;

  friend bool operator==(const Metadata&, const Metadata&) = default;
};

// prefill -> decode: how the room ended on that rank. [spec 5.4]
struct Status {
  RoomId room;
  std::uint32_t status = 0;  // 4 Success, 0 Failed; others are for the core to refuse
  std::uint32_t prefill_rank = 0;
  std::string reason;

  friend bool operator==(const Status&, const Status&) = default;
};

// prefill -> decode: a staged chunk has landed. [spec 5.5]
struct ChunkReady {
  RoomId room;
  std::uint32_t chunk_index = 0;
  std::uint32_t page_start = 0;
  std::uint32_t pages_count = 0;
  std::string writer_id;
  std::uint32_t prefill_rank = 0;

  friend bool operator==(const ChunkReady&, const ChunkReady&) = default;
};

// decode -> prefill: stop, and say when nothing is in flight any more. [spec 5.6]
struct Abort {
  RoomId room;
  std::optional<Endpoint> return_address;
  std::optional<std::uint64_t> generation;

  friend bool operator==(const Abort&, const Abort&) = default;
};

// prefill -> decode. Plain (room only), R1 (rank) or R2 (rank and generation). [spec 5.6]
struct AbortAck {
  RoomId room;
  std::optional<std::uint32_t> prefill_rank;
  std::optional<std::uint64_t> generation;

  friend bool operator==(const AbortAck&, const AbortAck&) = default;
};

// prefill -> decode: one aux array's row, by message instead of by write. [spec 5.7]
struct AuxData {
  RoomId room;
  std::uint32_t buffer_index = 0;
  std::uint32_t aux_index = 0;
  std::string payload;

  friend bool operator==(const AuxData&, const AuxData&) = default;
};

// prefill -> decode: reserve staging space for a chunk. [spec 5.8]
struct StagingRequest {
  RoomId room;
  std::uint32_t chunk_index = 0;
  std::uint32_t chunk_pages = 0;
  std::string session_id;
  std::optional<std::uint32_t> pp_rank;

  friend bool operator==(const StagingRequest&, const StagingRequest&) = default;
};

// decode -> prefill: where it may be written; offset -2 means it can never fit. [spec 5.8]
struct StagingReply {
  RoomId room;
  std::uint32_t chunk_index = 0;
  std::int64_t offset_bytes = -1;
  std::int64_t round = 0;
  std::int64_t end_bytes = -1;
  std::string session_id;

  friend bool operator==(const StagingReply&, const StagingReply&) = default;
};

// decode -> prefill: everything of earlier rounds up to here is free again. [spec 5.9]
struct Watermark {
  std::int64_t round = 0;
  std::int64_t tail_bytes = 0;
  std::string session_id;

  friend bool operator==(const Watermark&, const Watermark&) = default;
};

using Message = std::variant<Registration, Metadata, Status, ChunkReady, Abort, AbortAck, AuxData,
                             StagingRequest, StagingReply, Watermark>;

// Bootstrap server -> decode: the shape of the prefill deployment. [spec 6.3]
struct PrefillInfo {
  std::uint32_t attn_tp_size = 1;
  std::uint32_t attn_cp_size = 1;
  std::uint32_t dp_size = 1;
  std::uint32_t pp_size = 1;
  std::optional<std::uint32_t> page_size;
  std::optional<std::string> kv_cache_dtype;
  bool follow_bootstrap_room = true;
  bool enable_dsa_cache_layer_split = false;
  std::optional<std::string> dsv41_spec_layout;  // opaque JSON text, compared for equality
  std::string decode_allocation_policy = "early";
  std::optional<std::uint32_t> prefill_http_port;

  friend bool operator==(const PrefillInfo&, const PrefillInfo&) = default;
};

// One prefill rank, as the bootstrap server knows it.
struct RouteKey {
  std::string bootstrap_address;
  std::uint32_t dp_rank = 0, cp_rank = 0, tp_rank = 0, pp_rank = 0;

  friend auto operator<=>(const RouteKey&, const RouteKey&) = default;
};

// prefill -> bootstrap server: one rank registers. [spec 6.2]
struct RankRegistration {
  Topology topology;
  Endpoint endpoint;  // the rank's control socket
  std::uint32_t page_size = 0;
  std::optional<std::string> kv_cache_dtype;
  std::optional<std::string> dsv41_spec_layout;
  std::string load_balance_method = "follow_bootstrap_room";
  bool enable_dsa_cache_layer_split = false;
  std::optional<std::uint32_t> prefill_http_port;

  friend bool operator==(const RankRegistration&, const RankRegistration&) = default;
};

}  // namespace baton
