// Messages whose frames are the same in every backend: status, aborts, chunks, aux data, staging.
#pragma once

#include <string_view>

#include "base/frames.hpp"
#include "baton/result.hpp"
#include "core/messages.hpp"

namespace baton::wire {

// Frame 0 of the messages that say what they are.
inline constexpr std::string_view kChunkReadyTag = "CHUNK_READY";
inline constexpr std::string_view kAbortTag = "ABORT";
inline constexpr std::string_view kAbortAckTag = "ABORT_ACK";
inline constexpr std::string_view kAuxDataTag = "AUX_DATA";
inline constexpr std::string_view kStagingRequestTag = "STAGING_REQ";
inline constexpr std::string_view kStagingReplyTag = "STAGING_RSP";
inline constexpr std::string_view kWatermarkTag = "WATERMARK";

// A status starts with the backend's tag, or, if that is empty (Mooncake), with the room. Only a
// tagged status carries the reason; both forms are read with or without one. [spec 5.4]
Result<Frames> encode_status(const Status& status, std::string_view tag);
Result<Message> decode_status(const Frames& frames, std::string_view tag);

// Errors of the encoders: invalid_argument. Errors of the decoders: malformed. The decoders trust
// their caller that frame 0 is the message's tag.
Result<Frames> encode_shared(const ChunkReady& chunk);
Result<Frames> encode_shared(const Abort& abort);
Result<Frames> encode_shared(const AbortAck& ack);
Result<Frames> encode_shared(const AuxData& aux);
Result<Frames> encode_shared(const StagingRequest& request);
Result<Frames> encode_shared(const StagingReply& reply);
Result<Frames> encode_shared(const Watermark& watermark);

Result<Message> decode_chunk_ready(const Frames& frames);
Result<Message> decode_abort(const Frames& frames);
Result<Message> decode_abort_ack(const Frames& frames);
Result<Message> decode_aux_data(const Frames& frames);
Result<Message> decode_staging_request(const Frames& frames);
Result<Message> decode_staging_reply(const Frames& frames);
Result<Message> decode_watermark(const Frames& frames);

}  // namespace baton::wire
