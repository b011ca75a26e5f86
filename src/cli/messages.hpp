// The JSON that `generate` and `demo` exchange with prefill and decode, as values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "baton/result.hpp"
#include "baton/types.hpp"
#include "refengine/engine.hpp"
#include "refengine/tokenizer.hpp"

namespace baton::cli {

// POST /generate, the same body to both sides.
struct ServeRequest {
  RoomId room;
  refengine::GenerateRequest generate;
  std::string bootstrap;  // "host:port"; prefill does not need it
};

std::string encode(const ServeRequest& request);
// Accepts "tokens" (ids) or "prompt" (text). malformed: names the key that is missing or wrong.
Result<ServeRequest> decode_request(const std::string& body, const refengine::Tokenizer& tokenizer);

// Prefill's answer once the hand-off is over.
struct PrefillReply {
  std::int32_t first_token = 0;
  std::uint64_t logits_digest = 0;  // of the step that chose it
  std::uint32_t pages = 0, chunks = 0;
  std::uint64_t bytes = 0;
  double transfer_seconds = 0;          // first send() to the poll that saw Success
  std::int64_t last_write_done_ns = 0;  // monotonic clock of prefill's host; 0: unknown
};

std::string encode(const PrefillReply& reply);
Result<PrefillReply> decode_prefill_reply(const std::string& body);

// One line of decode's answer.
struct TokenLine {
  std::int32_t token = 0;
  std::string text;  // whole characters only, so it may be empty
};

struct DoneLine {
  std::string text;                           // the rest of the text
  std::vector<std::uint64_t> logits_digests;  // of decode's own steps: the second token and on
  std::vector<std::uint64_t> kv_digests;      // of its own pool, right after the transfer
  std::uint64_t aux_digest = 0;               // of aux_bytes()
  std::uint64_t room_word = 0;
  std::int64_t success_seen_ns = 0;  // monotonic clock of decode's host
};

struct ErrorLine {
  std::string error;
};

using DecodeLine = std::variant<TokenLine, DoneLine, ErrorLine>;

std::string encode(const DecodeLine& line);  // without a newline
Result<DecodeLine> decode_line(std::string_view line);

// {"error": text}, the body of every answer that is not 2xx.
std::string encode_error(const std::string& text);
// The text out of such a body; the body itself if it is something else.
std::string decode_error(const std::string& body);

}  // namespace baton::cli
