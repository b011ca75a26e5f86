// JSON to values and back.
#include "cli/messages.hpp"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/overloaded.hpp"
#include "refengine/digest.hpp"

namespace baton::cli {

namespace {

using Json = nlohmann::json;

// Reads keys of one object and keeps the first complaint. A digest travels as text: JSON numbers
// beyond 2^53 do not survive every reader.
class Reader {
 public:
  Reader(std::string_view text, const char* what)
      : json_(Json::parse(text, nullptr, false)), what_(what) {
    if (!json_.is_object()) error_ = std::string(what_) + " is not a JSON object";
  }

  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }

  template <class T>
  T number(const char* key, std::optional<T> missing = std::nullopt) {
    if (!has(key) && missing) return *missing;
    const Json* value = find(key, "a number");
    if (value == nullptr) return {};
    if constexpr (std::is_floating_point_v<T>) {
      if (value->is_number()) return value->get<T>();
    } else if (value->is_number_integer() && fits<T>(*value)) {
      return value->get<T>();
    }
    return complain<T>(key, "a number in its range");
  }

  std::string text(const char* key) {
    const Json* value = find(key, "a text");
    if (value == nullptr) return {};
    if (!value->is_string()) return complain<std::string>(key, "a text");
    return value->get<std::string>();
  }

  std::uint64_t digest(const char* key) {
    const std::string digits = text(key);
    return error_.empty() ? parse_digest(key, digits) : 0;
  }

  std::vector<std::uint64_t> digests(const char* key) {
    std::vector<std::uint64_t> result;
    for (const Json& value : list(key)) {
      result.push_back(value.is_string() ? parse_digest(key, value.get<std::string>())
                                         : complain<std::uint64_t>(key, "digests"));
    }
    return result;
  }

  std::vector<std::int32_t> tokens(const char* key) {
    std::vector<std::int32_t> result;
    for (const Json& value : list(key)) {
      const bool good = value.is_number_integer() && fits<std::int32_t>(value);
      result.push_back(good ? value.get<std::int32_t>() : complain<std::int32_t>(key, "token ids"));
    }
    return result;
  }

  std::optional<Error> error() const {
    if (error_.empty()) return std::nullopt;
    return Error{Errc::malformed, error_};
  }

 private:
  template <class T>
  static bool fits(const Json& value) {
    if (value.is_number_unsigned()) {
      return std::in_range<T>(value.get<std::uint64_t>());
    }
    return std::in_range<T>(value.get<std::int64_t>());
  }

  const Json* find(const char* key, const char* expected) {
    if (has(key)) return &json_[key];
    complain<int>(key, expected);
    return nullptr;
  }

  std::vector<Json> list(const char* key) {
    const Json* value = find(key, "a list");
    if (value == nullptr) return {};
    if (!value->is_array()) return complain<std::vector<Json>>(key, "a list");
    return value->get<std::vector<Json>>();
  }

  std::uint64_t parse_digest(const char* key, const std::string& digits) {
    std::uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, value, 16);
    const bool good = parsed.ec == std::errc{} && parsed.ptr == end;
    return good ? value : complain<std::uint64_t>(key, "16 hexadecimal digits");
  }

  template <class T>
  T complain(const char* key, const char* expected) {
    if (error_.empty()) {
      error_ = std::string(what_) + ": \"" + key + "\" must be " + expected;
    }
    return {};
  }

  Json json_;
  const char* what_;
  std::string error_;
};

std::vector<std::string> hex_list(const std::vector<std::uint64_t>& values) {
  std::vector<std::string> result;
  for (const std::uint64_t value : values) result.push_back(refengine::hex(value));
  return result;
}

// Text from outside may be any bytes; what is not UTF-8 is replaced instead of thrown about.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string encode(const ServeRequest& request) {
  const refengine::SamplingParams& sampling = request.generate.sampling;
  return dump({{"room", request.room.value},
               {"tokens", request.generate.prompt},
               {"count", request.generate.tokens_count},
               {"temperature", sampling.temperature},
               {"top_k", sampling.top_k},
               {"seed", sampling.seed},
               {"bootstrap", request.bootstrap}});
}

Result<ServeRequest> decode_request(const std::string& body,
                                    const refengine::Tokenizer& tokenizer) {
  Reader reader(body, "the request");
  ServeRequest request;
  request.room.value = reader.number<std::uint64_t>("room");
  request.generate.prompt =
      reader.has("tokens") ? reader.tokens("tokens") : tokenizer.encode(reader.text("prompt"));
  request.generate.tokens_count = reader.number<std::uint32_t>("count");
  refengine::SamplingParams& sampling = request.generate.sampling;
  sampling.temperature = reader.number<float>("temperature", 0.0F);
  sampling.top_k = reader.number<std::uint32_t>("top_k", 0);
  sampling.seed = reader.number<std::uint64_t>("seed", 0);
  if (reader.has("bootstrap")) request.bootstrap = reader.text("bootstrap");
  if (reader.error()) return *reader.error();
  if (request.room.value == 0 || request.room.value >> 63U != 0) {
    return Error{Errc::invalid_argument, "the request: \"room\" must be from 1 to 2^63 - 1"};
  }
  return request;
}

std::string encode(const PrefillReply& reply) {
  return dump({{"first_token", reply.first_token},
               {"logits_digest", refengine::hex(reply.logits_digest)},
               {"pages", reply.pages},
               {"chunks", reply.chunks},
               {"bytes", reply.bytes},
               {"transfer_seconds", reply.transfer_seconds},
               {"last_write_done_ns", reply.last_write_done_ns}});
}

Result<PrefillReply> decode_prefill_reply(const std::string& body) {
  Reader reader(body, "prefill's answer");
  PrefillReply reply;
  reply.first_token = reader.number<std::int32_t>("first_token");
  reply.logits_digest = reader.digest("logits_digest");
  reply.pages = reader.number<std::uint32_t>("pages");
  reply.chunks = reader.number<std::uint32_t>("chunks");
  reply.bytes = reader.number<std::uint64_t>("bytes");
  reply.transfer_seconds = reader.number<double>("transfer_seconds");
  reply.last_write_done_ns = reader.number<std::int64_t>("last_write_done_ns");
  if (reader.error()) return *reader.error();
  return reply;
}

std::string encode(const DecodeLine& line) {
  return dump(std::visit(overloaded{
                             [](const TokenLine& token) {
                               return Json{{"token", token.token}, {"text", token.text}};
                             },
                             [](const DoneLine& done) {
                               return Json{{"done", true},
                                           {"text", done.text},
                                           {"logits_digests", hex_list(done.logits_digests)},
                                           {"kv_digests", hex_list(done.kv_digests)},
                                           {"aux_digest", refengine::hex(done.aux_digest)},
                                           {"room_word", done.room_word},
                                           {"success_seen_ns", done.success_seen_ns}};
                             },
                             [](const ErrorLine& error) {
                               return Json{{"error", error.error}};
                             },
                         },
                         line));
}

Result<DecodeLine> decode_line(std::string_view line) {
  Reader reader(line, "decode's answer");
  if (reader.has("error")) return DecodeLine(ErrorLine{reader.text("error")});
  DecodeLine result;
  if (reader.has("done")) {
    DoneLine done;
    done.text = reader.text("text");
    done.logits_digests = reader.digests("logits_digests");
    done.kv_digests = reader.digests("kv_digests");
    done.aux_digest = reader.digest("aux_digest");
    done.room_word = reader.number<std::uint64_t>("room_word");
    done.success_seen_ns = reader.number<std::int64_t>("success_seen_ns");
    result = done;
  } else {
    TokenLine token;
    token.token = reader.number<std::int32_t>("token");
    token.text = reader.text("text");
    result = token;
  }
  if (reader.error()) return *reader.error();
  return result;
}

std::string encode_error(const std::string& text) { return dump({{"error", text}}); }

std::string decode_error(const std::string& body) {
  Reader reader(body, "the answer");
  const std::string text = reader.text("error");
  return reader.error() ? body : text;
}

}  // namespace baton::cli
