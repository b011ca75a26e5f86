// Generators with boundary values mixed in.
#include "wire/random_messages.hpp"

#include <limits>
#include <string>

#include "base/overloaded.hpp"

namespace baton::wire::test {

namespace {

std::uint64_t below(Random& random, std::uint64_t end) { return random() % end; }
bool coin(Random& random) { return below(random, 2) == 0; }

// Every third value is a boundary.
template <class T>
T number(Random& random) {
  switch (below(random, 6)) {
    case 0: return std::numeric_limits<T>::max();
    case 1: return std::numeric_limits<T>::min();
    default: return static_cast<T>(random());
  }
}

template <class T>
std::optional<T> maybe(Random& random) {
  if (coin(random)) return std::nullopt;
  return number<T>(random);
}

std::uint32_t positive(Random& random) { return 1 + number<std::uint32_t>(random) / 2; }
RoomId room(Random& random) { return {number<std::uint64_t>(random) >> 1}; }

template <class T>
std::vector<T> list(Random& random) {
  std::vector<T> values(below(random, 8));
  for (T& value : values) value = number<T>(random);
  return values;
}

template <class T>
std::vector<std::vector<T>> lists(Random& random) {
  std::vector<std::vector<T>> all(below(random, 4));
  for (std::vector<T>& values : all) values = list<T>(random);
  return all;
}

std::string name(Random& random, std::size_t bytes_min) {
  std::string text(bytes_min + below(random, 30), ' ');
  for (char& character : text) character = static_cast<char>(' ' + below(random, 95));
  return text;
}

Endpoint endpoint(Random& random) {
  const char* const hosts[] = {"127.0.0.1", "::1", "10.0.0.7", "prefill-0.cluster.local",
                               "fe80::1"};
  return {hosts[below(random, 5)], static_cast<std::uint16_t>(1 + below(random, 65535))};
}

Registration registration(Random& random) {
  Registration message;
  message.endpoint = endpoint(random);
  message.session_id = name(random, 1);
  message.kv_ptrs = list<std::uint64_t>(random);
  message.aux_ptrs = list<std::uint64_t>(random);
  message.state_ptrs = lists<std::uint64_t>(random);
  message.engine_rank = number<std::uint32_t>(random);
  message.attn_tp_size = positive(random);
  message.kv_item_bytes = number<std::uint64_t>(random);
  message.state_item_bytes = lists<std::uint32_t>(random);
  message.state_dims = lists<std::uint32_t>(random);
  message.kv_layer_ids = list<std::uint32_t>(random);
  message.state_layer_ids = lists<std::uint32_t>(random);
  message.dcp_size = positive(random);
  message.dcp_rank = number<std::uint32_t>(random);
  message.kv_item_bytes_all = list<std::uint64_t>(random);
  if (coin(random)) {
    message.staging_base = number<std::uint64_t>(random);
    message.staging_bytes = 1 + number<std::uint64_t>(random) / 2;
    message.staging_slot_layer_ids = list<std::uint64_t>(random);
  }
  return message;
}

Metadata metadata(Random& random) {
  Metadata message;
  message.room = room(random);
  message.endpoint = endpoint(random);
  message.session_id = name(random, 1);
  message.required_dst_info_num = positive(random);
  message.decode_prefix_tokens = maybe<std::uint64_t>(random);
  message.is_dummy = below(random, 4) == 0;
  if (message.is_dummy) return message;
  message.kv_pages = list<PageIndex>(random);
  message.aux_index = number<std::uint32_t>(random);
  message.state_slots = lists<std::int32_t>(random);
  message.device_kv_pages = list<PageIndex>(random);
  return message;
}

Abort abort_message(Random& random) {
  Abort message{room(random), std::nullopt, std::nullopt};
  if (coin(random)) return message;
  message.return_address = endpoint(random);
  message.generation = maybe<std::uint64_t>(random);
  return message;
}

AbortAck abort_ack(Random& random) {
  AbortAck message{room(random), maybe<std::uint32_t>(random), std::nullopt};
  if (message.prefill_rank) message.generation = maybe<std::uint64_t>(random);
  return message;
}

std::string payload(Random& random) {
  std::string bytes(below(random, 40), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace

Message random_message(Random& random, std::size_t kind) {
  const auto u32 = [&] { return number<std::uint32_t>(random); };
  const auto i64 = [&] { return number<std::int64_t>(random); };
  const auto free_name = [&] { return name(random, 0); };
  switch (kind) {
    case 0: return registration(random);
    case 1: return metadata(random);
    case 2: return Status{room(random), u32(), u32(), coin(random) ? name(random, 0) : ""};
    case 3: return ChunkReady{room(random), u32(), u32(), u32(), free_name(), u32()};
    case 4: return abort_message(random);
    case 5: return abort_ack(random);
    case 6: return AuxData{room(random), u32(), u32(), payload(random)};
    case 7:
      return StagingRequest{room(random), u32(), u32(), free_name(), maybe<std::uint32_t>(random)};
    case 8: return StagingReply{room(random), u32(), i64(), i64(), i64(), free_name()};
    default: return Watermark{i64(), i64(), free_name()};
  }
}

std::vector<Message> sample_messages() {
  const Endpoint decode{"10.0.0.7", 41233};
  const std::string session = "10.0.0.7:16001";
  Registration full;
  full.endpoint = decode;
  full.session_id = session;
  full.kv_ptrs = full.aux_ptrs = {0x7f0000000000, 0x7f0000100000};
  full.state_ptrs = {{0x7f2000000000}, {}};
  full.kv_item_bytes = 65536;
  full.state_item_bytes = full.state_dims = full.state_layer_ids = {{4096}, {}};
  full.kv_layer_ids = {0, 1};
  full.staging_base = 0x7f3000000000;
  full.staging_bytes = 4194304;
  full.staging_slot_layer_ids = {0, 1};
  full.kv_item_bytes_all = {65536, 65536};
  Metadata real{RoomId{42}, decode, session, {1, 2, 3}, 9, {{7}, {}}, 2, 128, {4}, false};
  Metadata dummy{RoomId{42}, decode, session, {}, std::nullopt, {}, 2, 128, {}, true};
  return {full,
          real,
          dummy,
          Status{RoomId{42}, 4, 31, ""},
          ChunkReady{RoomId{17}, 2, 8, 4, "peer_name_with_underscores", 3},
          Abort{RoomId{42}, std::nullopt, std::nullopt},
          Abort{RoomId{42}, decode, std::nullopt},
          Abort{RoomId{42}, decode, 7},
          AbortAck{RoomId{42}, std::nullopt, std::nullopt},
          AbortAck{RoomId{42}, 31, std::nullopt},
          AbortAck{RoomId{42}, 31, 7},
          AuxData{RoomId{42}, 0, 9, "payload!"},
          StagingRequest{RoomId{7}, 0, 1, "peer", std::nullopt},
          StagingRequest{RoomId{7}, 0, 1, "peer", 3},
          StagingReply{RoomId{7}, 0, -2, 0, -1, "peer"},
          Watermark{3, 0, "session-new"}};
}

Side receiver_of(const Message& message) {
  const bool to_prefill =
      std::holds_alternative<Registration>(message) || std::holds_alternative<Metadata>(message) ||
      std::holds_alternative<Abort>(message) || std::holds_alternative<StagingReply>(message) ||
      std::holds_alternative<Watermark>(message);
  return to_prefill ? Side::prefill : Side::decode;
}

Message after_mooncake(Message message) {
  std::visit(overloaded{
                 [](Status& status) { status.reason.clear(); },
                 [](Metadata& metadata) {
                   metadata.decode_prefix_tokens = metadata.decode_prefix_tokens.value_or(0);
                 },
                 [](auto&) {},
             },
             message);
  return message;
}

}  // namespace baton::wire::test
