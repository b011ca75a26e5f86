// Bodies that the bootstrap client sends and reads. The parts of the public answers that it needs.
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "bootstrap/client.hpp"
#include "bootstrap/json_text.hpp"

namespace baton::bootstrap {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kSizeMax = 1 << 15;
constexpr std::uint64_t kPortMax = 65535;
constexpr std::uint64_t kRankMax = std::numeric_limits<std::uint32_t>::max();

Error malformed(const std::string& what) { return Error{Errc::malformed, what}; }

std::optional<std::uint64_t> to_number(const Json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (!value.is_string()) return std::nullopt;
  const auto& digits = value.get_ref<const std::string&>();
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (fault != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// Reads members of an answer; the first one that makes no sense is the error.
class Reader {
 public:
  explicit Reader(const std::string& body) {
    if (is_shallow_json(body)) object_ = Json::parse(body, nullptr, false);
    if (!object_.is_object()) fault_ = "not a JSON object";
  }

  bool good() const { return fault_.empty(); }
  Error error() const { return malformed(fault_); }
  bool has(const char* key) const { return good() && object_.contains(key) && !at(key).is_null(); }
  const Json& at(const char* key) const { return *object_.find(key); }

  std::uint32_t number(const char* key, std::uint64_t least, std::uint64_t most) {
    const auto value = has(key) ? to_number(at(key)) : std::nullopt;
    if (value && *value >= least && *value <= most) return static_cast<std::uint32_t>(*value);
    refuse(key, "a number from " + std::to_string(least) + " to " + std::to_string(most));
    return 0;
  }
  std::optional<std::uint32_t> optional_number(const char* key, std::uint64_t most) {
    if (!has(key)) return std::nullopt;
    return number(key, 0, most);
  }
  std::optional<std::string> optional_string(const char* key) {
    if (!has(key)) return std::nullopt;
    if (at(key).is_string()) return at(key).get<std::string>();
    refuse(key, "a string");
    return std::nullopt;
  }
  bool optional_bool(const char* key, bool fallback) {
    if (!has(key)) return fallback;
    if (at(key).is_boolean()) return at(key).get<bool>();
    refuse(key, "true or false");
    return fallback;
  }

 private:
  void refuse(const char* key, const std::string& expected) {
    if (good()) fault_ = std::string(key) + " is not " + expected;
  }
  Json object_;
  std::string fault_;
};

}  // namespace

Result<std::string> encode_registration(const RankRegistration& registration) {
  const Topology& topology = registration.topology;
  Json body;
  body["attn_tp_size"] = topology.attn_tp_size;
  body["attn_tp_rank"] = topology.attn_tp_rank;
  body["attn_cp_size"] = topology.attn_cp_size;
  body["attn_cp_rank"] = topology.attn_cp_rank;
  body["attn_dp_size"] = topology.attn_dp_size;
  body["attn_dp_rank"] = topology.attn_dp_rank;
  body["pp_size"] = topology.pp_size;
  body["pp_rank"] = topology.pp_rank;
  body["system_dp_size"] = topology.system_dp_size;
  body["system_dp_rank"] = topology.system_dp_rank;
  body["rank_ip"] = registration.endpoint.host;
  body["rank_port"] = registration.endpoint.port;
  body["page_size"] = registration.page_size;
  body["kv_cache_dtype"] = nullptr;
  if (registration.kv_cache_dtype) body["kv_cache_dtype"] = *registration.kv_cache_dtype;
  body["dsv41_spec_layout"] = nullptr;
  if (registration.dsv41_spec_layout) {
    const std::string& layout = *registration.dsv41_spec_layout;
    body["dsv41_spec_layout"] = is_shallow_json(layout) ? Json::parse(layout, nullptr, false)
                                                        : Json(Json::value_t::discarded);
    if (body["dsv41_spec_layout"].is_discarded()) {
      return Error{Errc::invalid_argument, "dsv41_spec_layout is not JSON: " + layout};
    }
  }
  body["load_balance_method"] = registration.load_balance_method;
  body["enable_dsa_cache_layer_split"] = registration.enable_dsa_cache_layer_split;
  body["prefill_http_port"] = nullptr;
  if (registration.prefill_http_port) body["prefill_http_port"] = *registration.prefill_http_port;
  return space_json(body.dump(-1, ' ', true, Json::error_handler_t::replace));
}

Result<PrefillInfo> decode_topology(const std::string& body) {
  Reader reader(body);
  PrefillInfo info;
  info.attn_tp_size = reader.number("attn_tp_size", 1, kSizeMax);
  info.attn_cp_size = reader.number("attn_cp_size", 1, kSizeMax);
  info.dp_size = reader.number("dp_size", 1, kSizeMax);
  info.pp_size = reader.number("pp_size", 1, kSizeMax);
  info.page_size = reader.optional_number("page_size", kRankMax);
  info.kv_cache_dtype = reader.optional_string("kv_cache_dtype");
  info.follow_bootstrap_room = reader.optional_bool("follow_bootstrap_room", true);
  info.enable_dsa_cache_layer_split = reader.optional_bool("enable_dsa_cache_layer_split", false);
  if (reader.has("dsv41_spec_layout")) {
    info.dsv41_spec_layout = canonical_json(reader.at("dsv41_spec_layout").dump());
  }
  info.decode_allocation_policy =
      reader.optional_string("decode_allocation_policy").value_or(info.decode_allocation_policy);
  info.prefill_http_port = reader.optional_number("prefill_http_port", kPortMax);
  if (!reader.good()) return reader.error();
  return info;
}

Result<Endpoint> decode_route(const std::string& body) {
  Reader reader(body);
  const std::optional<std::string> host = reader.optional_string("rank_ip");
  const std::uint32_t port = reader.number("rank_port", 1, kPortMax);
  if (!reader.good()) return reader.error();
  if (!host || host->empty()) return malformed("rank_ip is missing");
  return Endpoint{*host, static_cast<std::uint16_t>(port)};
}

Result<DpRanks> decode_dp_ranks(const std::string& body) {
  const Json object = is_shallow_json(body) ? Json::parse(body, nullptr, false) : Json();
  if (!object.is_object()) return malformed("not a JSON object");
  DpRanks ranks;
  for (const auto& [key, value] : object.items()) {
    const std::optional<std::uint64_t> room = to_number(Json(key));
    const std::optional<std::uint64_t> rank = to_number(value);
    if (!room || !rank || *rank > kRankMax) return malformed("not a map from rooms to DP ranks");
    ranks[RoomId{*room}] = static_cast<std::uint32_t>(*rank);
  }
  return ranks;
}

}  // namespace baton::bootstrap
