// The Mooncake dialect: which message the frames are, and the frames of registration and metadata.
#include "wire/mooncake.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "base/overloaded.hpp"
#include "wire/dialect.hpp"
#include "wire/frame_reader.hpp"
#include "wire/frame_writer.hpp"
#include "wire/limits.hpp"
#include "wire/shared.hpp"

namespace baton::wire {

namespace {

constexpr DecimalRange kU32{0, std::numeric_limits<std::uint32_t>::max()};
constexpr DecimalRange kPositiveU32{1, std::numeric_limits<std::uint32_t>::max()};
constexpr ListLimits kBufferLists{kComponentsMax, kBuffersMax};
constexpr ListLimits kSlotLists{kComponentsMax, kPagesMax};
constexpr std::size_t kStagingBaseBytes = 8;

// Staging is registered when either number is not zero. [spec 1.7]
bool has_staging(const Registration& registration) {
  return registration.staging_base != 0 || registration.staging_bytes != 0;
}

// Frames 14 and 15: both empty without staging.
void write_staging_area(FrameWriter& out, const Registration& registration) {
  if (!has_staging(registration)) {
    out.empty();
    out.empty();
    return;
  }
  out.array("staging_base", std::vector<std::uint64_t>{registration.staging_base}, 1);
  out.decimal("staging_bytes", registration.staging_bytes);
}

// Frame 18 means nothing without staging: the parser would not read it.
void write_staging_layers(FrameWriter& out, const Registration& registration) {
  if (!has_staging(registration) && !registration.staging_slot_layer_ids.empty()) {
    out.fail("staging_slot_layer_ids",
             "expected none without a staging area, found " +
                 std::to_string(registration.staging_slot_layer_ids.size()));
  }
  out.array("staging_slot_layer_ids", registration.staging_slot_layer_ids, kBuffersMax);
}

void read_staging(FrameReader& in, Registration& registration) {
  // A base of any other size means that there is none. [spec 5.2]
  if (in.has(14) && in.bytes({14, "staging_base"}).size() == kStagingBaseBytes) {
    const auto base = in.array<std::uint64_t>({14, "staging_base"}, 1);
    if (!base.empty()) registration.staging_base = base.front();
  }
  if (in.has(15)) registration.staging_bytes = in.decimal({15, "staging_bytes"});
  if (has_staging(registration) && in.has(18)) {
    registration.staging_slot_layer_ids =
        in.array<std::uint64_t>({18, "staging_slot_layer_ids"}, kBuffersMax);
  }
}

}  // namespace

Result<Frames> encode_registration(const Registration& registration) {
  FrameWriter out("registration", 20);
  out.bytes(kRegistrationTag);
  out.endpoint(registration.endpoint);
  out.name("session_id", registration.session_id, Emptiness::refused);
  out.array("kv_ptrs", registration.kv_ptrs, kBuffersMax);
  out.array("aux_ptrs", registration.aux_ptrs, kBuffersMax);
  out.lists("state_ptrs", registration.state_ptrs, kBufferLists);
  out.decimal("engine_rank", registration.engine_rank, kU32);
  out.decimal("attn_tp_size", registration.attn_tp_size, kPositiveU32);
  out.decimal("kv_item_bytes", registration.kv_item_bytes);
  out.lists("state_item_bytes", registration.state_item_bytes, kBufferLists);
  out.lists("state_dims", registration.state_dims, kBufferLists);
  out.array("kv_layer_ids", registration.kv_layer_ids, kBuffersMax);
  out.lists("state_layer_ids", registration.state_layer_ids, kBufferLists);
  write_staging_area(out, registration);
  out.decimal("dcp_size", registration.dcp_size, kPositiveU32);
  out.decimal("dcp_rank", registration.dcp_rank, kU32);
  write_staging_layers(out, registration);
  out.array("kv_item_bytes_all", registration.kv_item_bytes_all, kBuffersMax);
  return out.finish();
}

Result<Message> decode_registration(const Frames& frames) {
  FrameReader in("registration", frames, 10);
  Registration registration;
  registration.endpoint = in.endpoint(1);
  registration.session_id = in.name({3, "session_id"}, Emptiness::refused);
  registration.kv_ptrs = in.array<std::uint64_t>({4, "kv_ptrs"}, kBuffersMax);
  registration.aux_ptrs = in.array<std::uint64_t>({5, "aux_ptrs"}, kBuffersMax);
  registration.state_ptrs = in.lists<std::uint64_t>({6, "state_ptrs"}, kBufferLists);
  registration.engine_rank = in.u32({7, "engine_rank"});
  registration.attn_tp_size = in.u32({8, "attn_tp_size"}, 1);
  registration.kv_item_bytes = in.decimal({9, "kv_item_bytes"});
  if (in.has(10)) {
    registration.state_item_bytes = in.lists<std::uint32_t>({10, "state_item_bytes"}, kBufferLists);
  }
  if (in.has(11)) {
    registration.state_dims = in.lists<std::uint32_t>({11, "state_dims"}, kBufferLists);
  }
  if (in.has(12)) {
    registration.kv_layer_ids = in.array<std::uint32_t>({12, "kv_layer_ids"}, kBuffersMax);
  }
  if (in.has(13)) {
    registration.state_layer_ids = in.lists<std::uint32_t>({13, "state_layer_ids"}, kBufferLists);
  }
  read_staging(in, registration);
  if (in.has(16)) registration.dcp_size = in.u32({16, "dcp_size"}, 1);
  if (in.has(17)) registration.dcp_rank = in.u32({17, "dcp_rank"});
  if (in.has(19)) {
    registration.kv_item_bytes_all =
        in.array<std::uint64_t>({19, "kv_item_bytes_all"}, kBuffersMax);
  }
  return in.finish(std::move(registration));
}

Result<Frames> encode_metadata(const Metadata& metadata) {
  FrameWriter out("metadata", 10);
  out.room(metadata.room);
  out.endpoint(metadata.endpoint);
  out.name("session_id", metadata.session_id, Emptiness::refused);
  const bool has_lists = !metadata.kv_pages.empty() || metadata.aux_index ||
                         !metadata.state_slots.empty() || !metadata.device_kv_pages.empty();
  if (metadata.is_dummy && has_lists) {
    out.fail("kv_pages", "expected a dummy without pages, aux index and state, found some");
  }
  if (!metadata.is_dummy && !metadata.aux_index) {
    out.fail("aux_index", "expected an aux index unless it is a dummy, found none");
  }
  out.array("kv_pages", metadata.kv_pages, kPagesMax);
  if (metadata.aux_index) {
    out.decimal("aux_index", *metadata.aux_index, kU32);
  } else {
    out.empty();
  }
  out.lists("state_slots", metadata.state_slots, kSlotLists);
  out.decimal("required_dst_info_num", metadata.required_dst_info_num, kPositiveU32);
  out.decimal("decode_prefix_tokens", metadata.decode_prefix_tokens.value_or(0));
  out.array("device_kv_pages", metadata.device_kv_pages, kPagesMax);
  return out.finish();
}

Result<Message> decode_metadata(const Frames& frames) {
  FrameReader in("metadata", frames, 8);
  Metadata metadata;
  metadata.room = in.room({0, "room"});
  metadata.endpoint = in.endpoint(1);
  metadata.session_id = in.name({3, "session_id"}, Emptiness::refused);
  metadata.is_dummy = !in.has(4) && !in.has(5);
  if (!metadata.is_dummy) {
    metadata.kv_pages = in.array<PageIndex>({4, "kv_pages"}, kPagesMax);
    metadata.aux_index = in.u32({5, "aux_index"});
    metadata.state_slots = in.lists<std::int32_t>({6, "state_slots"}, kSlotLists);
    if (in.has(9)) {
      metadata.device_kv_pages = in.array<PageIndex>({9, "device_kv_pages"}, kPagesMax);
    }
  }
  metadata.required_dst_info_num = in.u32({7, "required_dst_info_num"}, 1);
  if (in.has(8)) metadata.decode_prefix_tokens = in.decimal({8, "decode_prefix_tokens"});
  return in.finish(std::move(metadata));
}

namespace {

class MooncakeDialect final : public Dialect {
 public:
  std::string_view name() const override { return "mooncake"; }

  Result<Frames> encode(const Message& message) const override {
    return std::visit(
        overloaded{
            [](const Registration& registration) { return encode_registration(registration); },
            [](const Metadata& metadata) { return encode_metadata(metadata); },
            [](const Status& status) { return encode_status(status, {}); },
            [](const auto& shared) { return encode_shared(shared); },
        },
        message);
  }

  Result<Message> decode(Side at, const Frames& frames) const override {
    if (frames.empty()) return Error{Errc::malformed, "message: expected frames, found none"};
    switch (at) {
      case Side::prefill: return decode_at_prefill(frames);
      case Side::decode: return decode_at_decode(frames);
    }
    return Error{Errc::malformed, "message: expected a side, prefill or decode"};
  }

 private:
  // The order and the fallback are those of the reference. [spec 4.9]
  static Result<Message> decode_at_prefill(const Frames& frames) {
    const std::string_view kind = frames.front();
    if (kind == kWatermarkTag) return decode_watermark(frames);
    if (kind == kStagingReplyTag) return decode_staging_reply(frames);
    if (kind == kAbortTag) return decode_abort(frames);
    if (kind == kRegistrationTag) return decode_registration(frames);
    return decode_metadata(frames);
  }

  // What has no tag that belongs here is tried as a status. [spec 5.1]
  static Result<Message> decode_at_decode(const Frames& frames) {
    const std::string_view kind = frames.front();
    if (kind == kAuxDataTag) return decode_aux_data(frames);
    if (kind == kChunkReadyTag) return decode_chunk_ready(frames);
    if (kind == kStagingRequestTag) return decode_staging_request(frames);
    if (kind == kAbortAckTag) return decode_abort_ack(frames);
    return decode_status(frames, {});
  }
};

}  // namespace

const Dialect& mooncake() {
  static const MooncakeDialect dialect;
  return dialect;
}

}  // namespace baton::wire
