// Frames of the messages that every backend shares.
#include "wire/shared.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "wire/frame_reader.hpp"
#include "wire/frame_writer.hpp"
#include "wire/limits.hpp"
#include "wire/numbers.hpp"
#include "wire/text.hpp"

namespace baton::wire {

namespace {

constexpr DecimalRange kU32{0, std::numeric_limits<std::uint32_t>::max()};

std::string bounded_reason(std::string_view reason) {
  return repair_utf8(reason.substr(0, kReasonBytesMax));
}

// AUX_DATA's length is the one big-endian number of the protocol. [spec 5.7]
constexpr std::size_t kAuxLengthBytes = 4;

std::string pack_aux_length(std::size_t length_bytes) {
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame += static_cast<char>((length_bytes >> shift) & 0xFF);
  }
  return frame;
}

}  // namespace

Result<Frames> encode_status(const Status& status, std::string_view tag) {
  FrameWriter out("status", 5);
  if (!tag.empty()) out.bytes(tag);
  out.room(status.room);
  out.decimal("status", status.status, kU32);
  out.decimal("prefill_rank", status.prefill_rank, kU32);
  if (!tag.empty()) out.bytes(bounded_reason(status.reason));
  return out.finish();
}

Result<Message> decode_status(const Frames& frames, std::string_view tag) {
  const std::size_t first = tag.empty() ? 0 : 1;  // the room's frame
  FrameReader in("status", frames, first + 3);
  if (!tag.empty() && in.bytes({0, "tag"}) != tag) {
    in.fail({0, "tag"}, "expected " + quote(tag) + ", found " + quote(in.bytes({0, "tag"})));
  }
  Status status;
  status.room = in.room({first, "room"});
  status.status = in.u32({first + 1, "status"});
  status.prefill_rank = in.u32({first + 2, "prefill_rank"});
  if (in.has(first + 3)) status.reason = bounded_reason(in.bytes({first + 3, "reason"}));
  return in.finish(std::move(status));
}

Result<Frames> encode_shared(const ChunkReady& chunk) {
  FrameWriter out("CHUNK_READY", 7);
  out.bytes(kChunkReadyTag);
  out.room(chunk.room);
  out.decimal("chunk_index", chunk.chunk_index, kU32);
  out.decimal("page_start", chunk.page_start, kU32);
  out.decimal("pages_count", chunk.pages_count, kU32);
  out.name("writer_id", chunk.writer_id, Emptiness::allowed);
  out.decimal("prefill_rank", chunk.prefill_rank, kU32);
  return out.finish();
}

Result<Message> decode_chunk_ready(const Frames& frames) {
  FrameReader in("CHUNK_READY", frames, 6);
  ChunkReady chunk;
  chunk.room = in.room({1, "room"});
  chunk.chunk_index = in.u32({2, "chunk_index"});
  chunk.page_start = in.u32({3, "page_start"});
  chunk.pages_count = in.u32({4, "pages_count"});
  chunk.writer_id = in.name({5, "writer_id"}, Emptiness::allowed);
  // The reference never reads the rank, so a peer may leave it out or put anything there.
  if (in.has(6)) {
    const Result<std::uint64_t> rank = parse_decimal(in.bytes({6, "prefill_rank"}), kU32);
    if (rank) chunk.prefill_rank = static_cast<std::uint32_t>(*rank);
  }
  return in.finish(std::move(chunk));
}

Result<Frames> encode_shared(const Abort& abort) {
  FrameWriter out("ABORT", 5);
  out.bytes(kAbortTag);
  out.room(abort.room);
  if (abort.return_address) out.endpoint(*abort.return_address);
  if (abort.generation) {
    if (!abort.return_address) out.fail("generation", "expected a return address before it");
    out.decimal("generation", *abort.generation);
  }
  return out.finish();
}

// Only the room is needed to stop it; whatever is wrong behind it just means that nothing will be
// acknowledged. So a bad address is no address, and without one a generation is of no use.
// [spec 5.6]
Result<Message> decode_abort(const Frames& frames) {
  FrameReader in("ABORT", frames, 2);
  Abort abort;
  abort.room = in.room({1, "room"});
  FrameReader address("ABORT", frames, 4);
  const Endpoint endpoint = address.endpoint(2);
  if (address.ok()) {
    abort.return_address = endpoint;
    FrameReader trailer("ABORT", frames, 5);
    const std::uint64_t generation = trailer.decimal({4, "generation"});
    if (trailer.ok()) abort.generation = generation;
  }
  return in.finish(std::move(abort));
}

Result<Frames> encode_shared(const AbortAck& ack) {
  FrameWriter out("ABORT_ACK", 4);
  out.bytes(kAbortAckTag);
  out.room(ack.room);
  if (ack.prefill_rank) out.decimal("prefill_rank", *ack.prefill_rank, kU32);
  if (ack.generation) {
    if (!ack.prefill_rank) out.fail("generation", "expected a prefill rank before it");
    out.decimal("generation", *ack.generation);
  }
  return out.finish();
}

// Unlike ABORT, a bad number makes the whole message useless: it would free pages. [spec 5.6]
Result<Message> decode_abort_ack(const Frames& frames) {
  FrameReader in("ABORT_ACK", frames, 2);
  AbortAck ack;
  ack.room = in.room({1, "room"});
  if (in.exists(2)) ack.prefill_rank = in.u32({2, "prefill_rank"});
  if (in.exists(3)) ack.generation = in.decimal({3, "generation"});
  return in.finish(ack);
}

Result<Frames> encode_shared(const AuxData& aux) {
  FrameWriter out("AUX_DATA", 6);
  out.bytes(kAuxDataTag);
  out.room(aux.room);
  out.decimal("buffer_index", aux.buffer_index, kU32);
  out.decimal("aux_index", aux.aux_index, kU32);
  out.bytes(pack_aux_length(aux.payload.size()));
  if (aux.payload.size() > kAuxPayloadBytesMax) {
    out.fail("payload", "expected at most " + std::to_string(kAuxPayloadBytesMax) +
                            " bytes, found " + std::to_string(aux.payload.size()));
  }
  out.bytes(aux.payload);
  return out.finish();
}

Result<Message> decode_aux_data(const Frames& frames) {
  FrameReader in("AUX_DATA", frames, 6);
  AuxData aux;
  aux.room = in.room({1, "room"});
  aux.buffer_index = in.u32({2, "buffer_index"});
  aux.aux_index = in.u32({3, "aux_index"});
  const std::string_view length = in.bytes({4, "length"});
  const std::string_view payload = in.bytes({5, "payload"});
  if (payload.size() > kAuxPayloadBytesMax) {
    in.fail({5, "payload"}, "expected at most " + std::to_string(kAuxPayloadBytesMax) +
                                " bytes, found " + std::to_string(payload.size()));
  }
  if (length != pack_aux_length(payload.size())) {
    in.fail({4, "length"}, "expected " + quote(pack_aux_length(payload.size())) +
                               ", the big-endian size of the payload, found " + quote(length));
  }
  if (in.ok()) aux.payload = payload;
  return in.finish(std::move(aux));
}

Result<Frames> encode_shared(const StagingRequest& request) {
  FrameWriter out("STAGING_REQ", 6);
  out.bytes(kStagingRequestTag);
  out.room(request.room);
  out.decimal("chunk_index", request.chunk_index, kU32);
  out.decimal("chunk_pages", request.chunk_pages, kU32);
  out.name("session_id", request.session_id, Emptiness::allowed);
  if (request.pp_rank) out.decimal("pp_rank", *request.pp_rank, kU32);
  return out.finish();
}

Result<Message> decode_staging_request(const Frames& frames) {
  FrameReader in("STAGING_REQ", frames, 5);
  StagingRequest request;
  request.room = in.room({1, "room"});
  request.chunk_index = in.u32({2, "chunk_index"});
  request.chunk_pages = in.u32({3, "chunk_pages"});
  request.session_id = in.name({4, "session_id"}, Emptiness::allowed);
  if (in.exists(5)) request.pp_rank = in.u32({5, "pp_rank"});
  return in.finish(std::move(request));
}

Result<Frames> encode_shared(const StagingReply& reply) {
  FrameWriter out("STAGING_RSP", 7);
  out.bytes(kStagingReplyTag);
  out.room(reply.room);
  out.decimal("chunk_index", reply.chunk_index, kU32);
  out.signed_decimal(reply.offset_bytes);
  out.signed_decimal(reply.round);
  out.signed_decimal(reply.end_bytes);
  out.name("session_id", reply.session_id, Emptiness::allowed);
  return out.finish();
}

Result<Message> decode_staging_reply(const Frames& frames) {
  FrameReader in("STAGING_RSP", frames, 7);
  StagingReply reply;
  reply.room = in.room({1, "room"});
  reply.chunk_index = in.u32({2, "chunk_index"});
  reply.offset_bytes = in.signed_decimal({3, "offset"});
  reply.round = in.signed_decimal({4, "round"});
  reply.end_bytes = in.signed_decimal({5, "end"});
  reply.session_id = in.name({6, "session_id"}, Emptiness::allowed);
  return in.finish(std::move(reply));
}

Result<Frames> encode_shared(const Watermark& watermark) {
  FrameWriter out("WATERMARK", 4);
  out.bytes(kWatermarkTag);
  out.signed_decimal(watermark.round);
  out.signed_decimal(watermark.tail_bytes);
  out.name("session_id", watermark.session_id, Emptiness::allowed);
  return out.finish();
}

Result<Message> decode_watermark(const Frames& frames) {
  FrameReader in("WATERMARK", frames, 3);
  Watermark watermark;
  watermark.round = in.signed_decimal({1, "round"});
  watermark.tail_bytes = in.signed_decimal({2, "tail"});
  if (in.exists(3)) watermark.session_id = in.name({3, "session_id"}, Emptiness::allowed);
  return in.finish(std::move(watermark));
}

}  // namespace baton::wire
