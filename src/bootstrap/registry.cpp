// The routes of the bootstrap server: the same texts, codes and key order as the reference.
#include "bootstrap/registry.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "bootstrap/json_text.hpp"
#include "bootstrap/query_string.hpp"

namespace baton::bootstrap {

namespace {

using net::HttpResponse;
using Json = nlohmann::ordered_json;

// Sizes beyond this are nonsense; four of them multiplied must fit 64 bits.
constexpr std::int64_t kSizeMax = 1 << 15;
constexpr std::string_view kFollowRoom = "follow_bootstrap_room";
constexpr std::string_view kEarlyPolicy = "early";

HttpResponse text(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

HttpResponse json(std::string body) {
  HttpResponse response = text(200, std::move(body));
  response.content_type = net::kJsonContent;
  return response;
}

// What the reference says about any body or number that it cannot read; it also hangs up.
HttpResponse trouble() {
  HttpResponse response = text(500, "500 Internal Server Error\n\nServer got itself in trouble");
  response.close = true;
  return response;
}

HttpResponse method_not_allowed(std::string allowed) {
  HttpResponse response = text(405, "405: Method Not Allowed");
  response.headers.push_back({"Allow", std::move(allowed)});
  return response;
}

HttpResponse not_ready(std::size_t count) {
  return text(503, "Prefill server not fully registered yet (" + std::to_string(count) +
                       " workers registered).");
}

std::optional<Json> parse_object(const std::string& body) {
  if (!is_shallow_json(body)) return std::nullopt;
  Json value = Json::parse(body, nullptr, false);
  if (!value.is_object()) return std::nullopt;
  return value;
}

// A number, or a string that says one.
std::optional<std::int64_t> to_integer(const Json& value) {
  if (value.is_string()) return parse_integer(value.get_ref<const std::string&>());
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

// Reads the members of one object and remembers whether all of them made sense.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {}

  bool good() const { return good_; }
  std::int64_t integer(const char* key) {
    const auto member = object_.find(key);
    const auto number = member == object_.end() ? std::nullopt : to_integer(*member);
    good_ = good_ && number.has_value();
    return number.value_or(0);
  }
  std::int64_t size(const char* key) {
    const std::int64_t number = integer(key);
    good_ = good_ && number >= 1 && number <= kSizeMax;
    return number;
  }
  std::string required_string(const char* key) {
    const auto member = object_.find(key);
    const bool is_string = member != object_.end() && member->is_string();
    good_ = good_ && is_string;
    return is_string ? member->get<std::string>() : std::string();
  }
  // The key must be there, its value may be null.
  std::optional<std::string> nullable_string(const char* key) {
    const auto member = object_.find(key);
    good_ = good_ && member != object_.end() && (member->is_null() || member->is_string());
    if (!good_ || member->is_null()) return std::nullopt;
    return member->get<std::string>();
  }
  std::optional<std::int64_t> optional_integer(const char* key) {
    if (is_absent(key)) return std::nullopt;
    return integer(key);
  }
  std::string optional_string(const char* key, std::string_view fallback) {
    return is_absent(key) ? std::string(fallback) : required_string(key);
  }
  bool optional_bool(const char* key) {
    if (is_absent(key)) return false;
    const Json& value = *object_.find(key);
    good_ = good_ && value.is_boolean();
    return value.is_boolean() && value.get<bool>();
  }
  // Any value, as compact text; empty if it is null or not there.
  std::string optional_text(const char* key) {
    return is_absent(key) ? std::string() : object_.find(key)->dump(-1, ' ', true);
  }

 private:
  bool is_absent(const char* key) const {
    const auto member = object_.find(key);
    return member == object_.end() || member->is_null();
  }
  const Json& object_;
  bool good_ = true;
};

template <class T, class Print>
std::string or_null(const std::optional<T>& value, Print&& print) {
  return value ? print(*value) : std::string("null");
}

std::string in_decimal(std::int64_t value) { return std::to_string(value); }
std::string in_json(bool value) { return value ? "true" : "false"; }

}  // namespace

struct Registry::PutBody {
  Shape shape;
  Cell cell{};
  Address address;
  std::string layout;  // compact; empty: null
  std::string policy;
};

HttpResponse Registry::handle(const net::HttpRequest& request, Instant now) {
  drop_old_rooms(now);
  const auto [path, query] = split_target(request.target);
  const std::string& method = request.method;
  if (path == "/route") {
    if (method == "PUT") return put_route(request.body);
    if (method == "GET") return get_route(query);
    HttpResponse response = text(405, "Method not allowed");
    response.content_type = net::kJsonContent;
    return response;
  }
  if (path == "/register_dp_rank") {
    return method == "POST" ? register_dp_rank(request.body, now) : method_not_allowed("POST");
  }
  if (path == "/query_dp_ranks") {
    return method == "POST" ? query_dp_ranks(request.body) : method_not_allowed("POST");
  }
  if (path == "/health") {
    return method == "GET" || method == "HEAD" ? text(200, "OK") : method_not_allowed("GET,HEAD");
  }
  return text(404, "404: Not Found");
}

std::optional<Registry::PutBody> Registry::parse_put(const std::string& body) {
  const std::optional<Json> object = parse_object(body);
  if (!object) return std::nullopt;
  Members members(*object);
  PutBody put;
  const std::int64_t attn_dp_size = members.size("attn_dp_size");
  const std::int64_t attn_dp_rank = members.integer("attn_dp_rank");
  const std::int64_t system_dp_size = members.size("system_dp_size");
  const std::int64_t system_dp_rank = members.integer("system_dp_rank");
  put.shape.attn_tp_size = members.size("attn_tp_size");
  put.shape.attn_cp_size = members.size("attn_cp_size");
  put.shape.pp_size = members.size("pp_size");
  put.shape.dp_size = system_dp_size == 1 ? attn_dp_size : system_dp_size;
  put.shape.page_size = members.integer("page_size");
  put.shape.kv_cache_dtype = members.nullable_string("kv_cache_dtype");
  put.shape.follow_bootstrap_room =
      members.optional_string("load_balance_method", kFollowRoom) == kFollowRoom;
  put.shape.enable_dsa_cache_layer_split = members.optional_bool("enable_dsa_cache_layer_split");
  put.shape.prefill_http_port = members.optional_integer("prefill_http_port");
  put.cell = {system_dp_size == 1 ? attn_dp_rank : system_dp_rank, members.integer("attn_cp_rank"),
              members.integer("attn_tp_rank"), members.integer("pp_rank")};
  put.address = {members.required_string("rank_ip"), members.integer("rank_port")};
  put.layout = members.optional_text("dsv41_spec_layout");
  put.policy = members.optional_string("decode_allocation_policy", kEarlyPolicy);
  if (!members.good()) return std::nullopt;
  return put;
}

HttpResponse Registry::put_route(const std::string& body) {
  const std::optional<PutBody> put = parse_put(body);
  if (!put) return trouble();
  if (shape_) {
    const std::string layout =
        put->layout.empty() ? "" : canonical_json(put->layout).value_or(put->layout);
    if (layout != canonical_layout_) {
      return text(400, "DeepSeek-V4.1 DSpark PD layout differs across prefill ranks");
    }
    if (put->policy != policy_) return text(400, "Inconsistent prefill allocation policies");
  }
  if (!cells_.contains(put->cell) && cells_.size() >= options_.cells_max) {
    return text(503, "Too many prefill ranks registered");
  }
  accept(*put);
  return text(200, "OK");
}

void Registry::accept(const PutBody& put) {
  if (!shape_) shape_ = put.shape;
  if (!shape_->kv_cache_dtype) shape_->kv_cache_dtype = put.shape.kv_cache_dtype;
  if (!shape_->prefill_http_port) shape_->prefill_http_port = put.shape.prefill_http_port;
  layout_ = space_json(put.layout);
  canonical_layout_ = put.layout.empty() ? "" : canonical_json(put.layout).value_or(put.layout);
  policy_ = put.policy;
  const bool is_new = cells_.insert_or_assign(put.cell, put.address).second;
  if (is_new && is_in_shape(put.cell)) ++cells_in_shape_;
}

bool Registry::is_in_shape(const Cell& cell) const {
  const Cell sizes = {shape_->dp_size, shape_->attn_cp_size, shape_->attn_tp_size, shape_->pp_size};
  for (std::size_t axis = 0; axis < cell.size(); ++axis) {
    if (cell[axis] < 0 || cell[axis] >= sizes[axis]) return false;
  }
  return true;
}

bool Registry::is_ready() const {
  if (!shape_) return false;
  return cells_in_shape_ ==
         shape_->dp_size * shape_->attn_cp_size * shape_->attn_tp_size * shape_->pp_size;
}

// The order of the checks is the reference's: missing, then the numbers as far as "is this -1 too"
// needs them, then readiness, then the rest of the numbers.
HttpResponse Registry::get_route(std::string_view query) const {
  constexpr std::array<const char*, 4> kNames = {"prefill_dp_rank", "prefill_cp_rank",
                                                 "target_tp_rank", "target_pp_rank"};
  std::array<std::string, 4> texts;
  for (std::size_t index = 0; index < kNames.size(); ++index) {
    texts[index] = query_parameter(query, kNames[index]);
  }
  for (const std::string& value : texts) {
    if (value.empty()) return text(400, "Missing inputs for bootstrap server.");
  }
  bool is_topology = true;
  for (std::size_t index = 0; index < texts.size() && is_topology; ++index) {
    const std::optional<std::int64_t> number = parse_integer(texts[index]);
    if (!number) return trouble();
    is_topology = *number == -1;
  }
  if (!is_ready()) return not_ready(cells_.size());
  if (is_topology) return get_topology();
  Cell cell{};
  for (std::size_t index = 0; index < texts.size(); ++index) {
    const std::optional<std::int64_t> number = parse_integer(texts[index]);
    if (!number) return trouble();
    cell[index] = *number;
  }
  const auto found = cells_.find(cell);
  if (found == cells_.end()) {
    return text(404, "Bootstrap info not found for dp_rank=" + in_decimal(cell[0]) +
                         " cp_rank=" + in_decimal(cell[1]) + " tp_rank=" + in_decimal(cell[2]) +
                         " pp_rank=" + in_decimal(cell[3]));
  }
  return json("{\"rank_ip\": " + quote_json(found->second.ip) +
              ", \"rank_port\": " + in_decimal(found->second.port) + "}");
}

HttpResponse Registry::get_topology() const {
  std::string out = "{\"attn_tp_size\": " + in_decimal(shape_->attn_tp_size);
  out += ", \"attn_cp_size\": " + in_decimal(shape_->attn_cp_size);
  out += ", \"dp_size\": " + in_decimal(shape_->dp_size);
  out += ", \"pp_size\": " + in_decimal(shape_->pp_size);
  out += ", \"page_size\": " + in_decimal(shape_->page_size);
  out += ", \"kv_cache_dtype\": " + or_null(shape_->kv_cache_dtype, quote_json);
  out += ", \"follow_bootstrap_room\": " + in_json(shape_->follow_bootstrap_room);
  out += ", \"enable_dsa_cache_layer_split\": " + in_json(shape_->enable_dsa_cache_layer_split);
  if (!layout_.empty()) out += ", \"dsv41_spec_layout\": " + layout_;
  if (options_.always_send_policy || policy_ != kEarlyPolicy) {
    out += ", \"decode_allocation_policy\": " + quote_json(policy_);
  }
  out += ", \"prefill_http_port\": " + or_null(shape_->prefill_http_port, in_decimal);
  for (const char* key : {"target_tp_rank", "target_tp_ranks", "target_cp_ranks", "target_pp_ranks",
                          "required_dst_info_num", "required_prefill_response_num"}) {
    out += ", \"" + std::string(key) + "\": null";
  }
  return json(out + "}");
}

HttpResponse Registry::register_dp_rank(const std::string& body, Instant now) {
  const std::optional<Json> object = parse_object(body);
  if (!object) return trouble();
  Members members(*object);
  const std::int64_t room = members.integer("bootstrap_room");
  const std::int64_t dp_rank = members.integer("dp_rank");
  if (!members.good() || room < 0 || dp_rank < 0) return trouble();
  const auto key = static_cast<std::uint64_t>(room);
  if (!rooms_.contains(key) && rooms_.size() >= options_.rooms_max) {
    return text(503, "Too many rooms registered");
  }
  rooms_[key] = RoomEntry{dp_rank, now};
  return text(200, "OK");
}

HttpResponse Registry::query_dp_ranks(const std::string& body) const {
  const std::optional<Json> object = parse_object(body);
  if (!object) return trouble();
  const auto wanted = object->find("bootstrap_rooms");
  if (wanted == object->end() || !wanted->is_array()) return trouble();
  std::string out = "{";
  std::unordered_map<std::uint64_t, bool> is_listed;  // a repeated room is one key of the answer
  for (const Json& value : *wanted) {
    const std::optional<std::int64_t> room = to_integer(value);
    if (!room) return trouble();
    const auto key = static_cast<std::uint64_t>(*room);
    const auto found = rooms_.find(key);
    if (found == rooms_.end() || std::exchange(is_listed[key], true)) continue;
    if (out.size() > 1) out += ", ";
    out += "\"" + std::to_string(key) + "\": " + in_decimal(found->second.dp_rank);
  }
  return json(out + "}");
}

void Registry::drop_old_rooms(Instant now) {
  if (!next_sweep_) next_sweep_ = now + options_.room_interval;
  if (now < *next_sweep_) return;
  next_sweep_ = now + options_.room_interval;
  std::erase_if(
      rooms_, [&](const auto& entry) { return now - entry.second.since > options_.room_interval; });
}

}  // namespace baton::bootstrap
