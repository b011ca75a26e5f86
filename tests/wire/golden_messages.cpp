// Translates the reference's field names into core messages.
#include "wire/golden_messages.hpp"

#include <stdexcept>

namespace baton::wire::test {

namespace {

using nlohmann::json;

template <class T>
std::optional<T> optional_value(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  return found->get<T>();
}

template <class T>
T value_or_default(const json& object, const char* key) {
  return optional_value<T>(object, key).value_or(T{});
}

std::vector<PageIndex> pages(const json& object, const char* key) {
  // The recording's own form of a long list has this name in `config`.
  if (!object.contains(key) || object.at(key).is_null()) return {};
  const json& list = object.at(key);
  if (list.is_object() && list.contains("arith")) {
    return golden_numbers({{"i32_sequence", list.at("arith")}});
  }
  return golden_numbers(list);
}

Endpoint decode_endpoint(const json& config) {
  return {config.at("local_ip"), config.at("rank_port")};
}

Registration registration_to_send(const json& config) {
  const json& kv = config.at("kv_args");
  Registration registration;
  registration.endpoint = decode_endpoint(config);
  registration.session_id = config.at("session_id");
  registration.kv_ptrs = kv.at("kv_data_ptrs").get<std::vector<std::uint64_t>>();
  registration.aux_ptrs = kv.at("aux_data_ptrs").get<std::vector<std::uint64_t>>();
  registration.state_ptrs = kv.at("state_data_ptrs");
  registration.engine_rank = config.at("engine_rank");
  registration.attn_tp_size = config.at("attn_tp_size");
  registration.kv_item_bytes_all = kv.at("kv_item_lens").get<std::vector<std::uint64_t>>();
  registration.kv_item_bytes =
      registration.kv_item_bytes_all.empty() ? 0 : registration.kv_item_bytes_all.front();
  registration.state_item_bytes = kv.at("state_item_lens");
  registration.state_dims = kv.at("state_dim_per_tensor");
  registration.kv_layer_ids = kv.at("kv_layer_ids").get<std::vector<std::uint32_t>>();
  registration.state_layer_ids = kv.at("state_layer_ids");
  registration.dcp_size = config.at("dcp_size");
  registration.dcp_rank = config.at("dcp_rank");
  if (config.contains("staging")) {
    const json& staging = config.at("staging");
    registration.staging_base = staging.at("base_ptr");
    registration.staging_bytes = staging.at("total_size");
    registration.staging_slot_layer_ids =
        staging.at("slot_layer_ids").get<std::vector<std::uint64_t>>();
  }
  return registration;
}

Metadata metadata_to_send(const json& config) {
  const json& given = config.at("metadata");
  Metadata metadata;
  metadata.room = {given.at("bootstrap_room")};
  metadata.endpoint = decode_endpoint(config);
  metadata.session_id = config.at("session_id");
  metadata.required_dst_info_num = config.at("required_dst_info_num");
  metadata.decode_prefix_tokens = optional_value<std::uint64_t>(given, "decode_prefix_len");
  metadata.is_dummy = config.at("is_dummy");
  if (metadata.is_dummy) return metadata;  // a dummy is told nothing but its size
  metadata.kv_pages = pages(given, "kv_indices");
  metadata.aux_index = optional_value<std::uint32_t>(given, "aux_index");
  metadata.state_slots =
      value_or_default<std::vector<std::vector<std::int32_t>>>(given, "state_indices");
  metadata.device_kv_pages = pages(given, "device_kv_indices");
  return metadata;
}

std::uint32_t unique_rank(const json& config) {
  const std::uint32_t cp_size = config.value("attn_cp_size", 1U);
  return config.at("attn_tp_rank").get<std::uint32_t>() *
             (config.at("pp_size").get<std::uint32_t>() * cp_size) +
         config.at("pp_rank").get<std::uint32_t>() * cp_size + config.value("attn_cp_rank", 0U);
}

RoomId room_of_frames(const json& frames) { return {std::stoull(unhex(frames).at(1))}; }

AbortAck ack_to_send(const GoldenEntry& entry) {
  AbortAck ack;
  ack.room = entry.config.contains("abort_frames") ? room_of_frames(entry.config["abort_frames"])
                                                   : RoomId{entry.parsed.at("room")};
  if (entry.config.at("deferred_release")) ack.prefill_rank = 0;  // the recorded manager's rank
  return ack;
}

AuxData aux_received(const json& parsed) {
  const json hex = {parsed.at("data_hex")};
  return {RoomId{parsed.at("room")}, parsed.at("buffer_index"), parsed.at("aux_index"),
          unhex(hex).front()};
}

// Chunk number and sizes come from the prefetch plan, which is not the codec's: taken from the
// frames' own parse.
StagingRequest staging_request(const json& parsed) {
  return {RoomId{parsed.at("room")}, parsed.at("chunk_idx"), parsed.at("chunk_num_pages"),
          parsed.at("session"), optional_value<std::uint32_t>(parsed, "requester_pp_rank")};
}

StagingReply staging_reply(const json& parsed) {
  return {RoomId{parsed.at("room")}, parsed.at("chunk_idx"), parsed.at("offset"),
          parsed.at("round"),        parsed.at("end"),       parsed.at("session")};
}

ChunkReady chunk_ready(const json& values, std::uint32_t rank) {
  return {RoomId{values.at("room")}, values.at("chunk_idx"), values.at("page_start"),
          values.at("num_pages"),    values.at("writer_id"), rank};
}

Registration registration_received(const json& parsed) {
  Registration registration;
  registration.endpoint = {parsed.at("endpoint"), parsed.at("dst_port")};
  registration.session_id = parsed.at("mooncake_session_id");
  registration.kv_ptrs = parsed.at("dst_kv_ptrs").get<std::vector<std::uint64_t>>();
  registration.aux_ptrs = parsed.at("dst_aux_ptrs").get<std::vector<std::uint64_t>>();
  registration.state_ptrs = parsed.at("dst_state_data_ptrs");
  registration.engine_rank = parsed.at("dst_tp_rank");
  registration.attn_tp_size = parsed.at("dst_attn_tp_size");
  registration.kv_item_bytes = parsed.at("dst_kv_item_len");
  registration.state_item_bytes = parsed.at("dst_state_item_lens");
  registration.state_dims = parsed.at("dst_state_dim_per_tensor");
  registration.kv_layer_ids = parsed.at("dst_kv_layer_ids").get<std::vector<std::uint32_t>>();
  registration.state_layer_ids = parsed.at("dst_state_layer_ids");
  registration.staging_base = parsed.at("staging_base_ptr");
  registration.staging_bytes = parsed.at("staging_total_size");
  if (!parsed.at("staging").is_null()) {
    registration.staging_slot_layer_ids =
        parsed.at("staging").at("slot_layer_ids").get<std::vector<std::uint64_t>>();
  }
  registration.dcp_size = parsed.at("dst_dcp_size");
  registration.dcp_rank = parsed.at("dst_dcp_rank");
  registration.kv_item_bytes_all = parsed.at("dst_kv_item_lens").get<std::vector<std::uint64_t>>();
  return registration;
}

Metadata metadata_received(const json& parsed) {
  Metadata metadata;
  metadata.room = {parsed.at("room")};
  metadata.endpoint = {parsed.at("endpoint"), parsed.at("dst_port")};
  metadata.session_id = parsed.at("mooncake_session_id");
  metadata.kv_pages = pages(parsed, "dst_kv_indices");
  metadata.aux_index = optional_value<std::uint32_t>(parsed, "dst_aux_index");
  metadata.state_slots = parsed.at("dst_state_indices");
  metadata.required_dst_info_num = parsed.at("required_dst_info_num");
  metadata.is_dummy = parsed.at("is_dummy");
  metadata.decode_prefix_tokens = optional_value<std::uint64_t>(parsed, "decode_prefix_len");
  metadata.device_kv_pages = pages(parsed, "dst_device_kv_indices");
  return metadata;
}

Status status_received(const json& parsed) {
  return {RoomId{parsed.at("bootstrap_room")}, parsed.at("status"), parsed.at("prefill_rank"),
          value_or_default<std::string>(parsed, "failure_reason")};
}

}  // namespace

Message message_to_send(const GoldenEntry& entry) {
  const json& config = entry.config;
  if (entry.kind == "registration") return registration_to_send(config);
  if (entry.kind == "metadata") return metadata_to_send(config);
  if (entry.kind == "ABORT") {
    return Abort{RoomId{config.at("room")}, decode_endpoint(config), std::nullopt};
  }
  if (entry.kind == "KV_STATUS") {
    return Status{RoomId{config.at("room")}, config.at("status_emitted"), unique_rank(config),
                  value_or_default<std::string>(config, "failure_reason")};
  }
  if (entry.kind == "ABORT_ACK") return ack_to_send(entry);
  if (entry.kind == "CHUNK_READY") return chunk_ready(config, unique_rank(config));
  if (entry.kind == "AUX_DATA") {
    AuxData aux = aux_received(entry.parsed);  // for the payload, which is memory in the recording
    aux.room = {config.at("room")};
    aux.buffer_index = config.at("buffer_index");
    aux.aux_index = config.at("dst_aux_index");
    return aux;
  }
  if (entry.kind == "STAGING_REQ") {
    StagingRequest request = staging_request(entry.parsed);
    request.room = {config.at("room")};
    request.session_id = config.at("session");
    request.pp_rank = config.at("requester_pp_rank");
    return request;
  }
  if (entry.kind == "STAGING_RSP") {
    StagingReply reply = staging_reply(entry.parsed);  // for what the allocator decided
    reply.room = room_of_frames(config.at("request_frames"));
    return reply;
  }
  if (entry.kind == "WATERMARK") {
    return Watermark{entry.parsed.at("round"), entry.parsed.at("tail"), config.at("session")};
  }
  throw std::invalid_argument("no message to send for a golden " + entry.kind);
}

std::optional<Message> message_received(const GoldenEntry& entry) {
  const json& parsed = entry.parsed;
  if (parsed.is_null() || parsed.contains("parser_exception")) return std::nullopt;
  const std::string& kind = entry.kind;
  if (kind.starts_with("registration")) return registration_received(parsed);
  if (kind.starts_with("metadata")) return metadata_received(parsed);
  if (kind.starts_with("KV_STATUS")) return status_received(parsed);
  if (kind == "CHUNK_READY") return chunk_ready(parsed, parsed.at("prefill_rank"));
  if (kind == "AUX_DATA") return aux_received(parsed);
  if (kind == "STAGING_REQ") return staging_request(parsed);
  if (kind == "STAGING_RSP") return staging_reply(parsed);
  if (kind == "ABORT") {
    return Abort{RoomId{parsed.at("room")},
                 Endpoint{parsed.at("decode_ip"), parsed.at("decode_port")}, std::nullopt};
  }
  if (kind == "ABORT_ACK") {
    return AbortAck{RoomId{parsed.at("room")},
                    optional_value<std::uint32_t>(parsed, "prefill_rank"), std::nullopt};
  }
  if (kind == "WATERMARK") {
    return Watermark{parsed.at("round"), parsed.at("tail"), parsed.at("session")};
  }
  throw std::invalid_argument("no message received for a golden " + kind);
}

}  // namespace baton::wire::test
