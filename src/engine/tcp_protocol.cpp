// Encoding and decoding of Mooncake's TCP protocol.
#include "engine/tcp_protocol.hpp"

#include <ctime>
#include <nlohmann/json.hpp>

namespace baton::engine::tcp {
namespace {

constexpr std::size_t kAddressAt = 8;
constexpr std::size_t kOpcodeAt = 16;
constexpr std::uint8_t kProtocol2 = 0x80;
constexpr std::uint32_t kProtocolVersion = 2;

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::array<char, 32> text{};
  ::localtime_r(&now, &parts);
  return {text.data(), std::strftime(text.data(), text.size(), "%F %T", &parts)};
}

}  // namespace

void store_u64(char* bytes, std::uint64_t value) {
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i) & 0xFFU);
}

std::uint64_t load_u64(const char* bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

HeaderBytes encode_header(const Header& header) {
  HeaderBytes bytes{};
  store_u64(bytes.data(), header.length_bytes);
  store_u64(bytes.data() + kAddressAt, header.address);
  const auto opcode = static_cast<std::uint8_t>(header.opcode);
  bytes[kOpcodeAt] = static_cast<char>(header.wants_status ? opcode | kProtocol2 : opcode);
  return bytes;
}

std::optional<Header> decode_header(const char* bytes) {
  const auto opcode = static_cast<std::uint8_t>(bytes[kOpcodeAt]);
  const std::uint8_t kind = opcode & static_cast<std::uint8_t>(~kProtocol2);
  if (kind > 1) return std::nullopt;
  return Header{load_u64(bytes), load_u64(bytes + kAddressAt), static_cast<Opcode>(kind),
                (opcode & kProtocol2) != 0};
}

std::string encode_rpc(std::uint8_t type, std::string_view json) {
  std::string bytes(kRpcLengthBytes, '\0');
  store_u64(bytes.data(), json.size() + 1);
  bytes += static_cast<char>(type);
  bytes += json;
  return bytes;
}

std::string encode_metadata(const Metadata& metadata, const RegionIndex& regions) {
  nlohmann::json buffers = nlohmann::json::array();
  for (const RegionEntry& entry : regions.entries()) {
    buffers.push_back(
        {{"name", "baton"}, {"addr", entry.region.address}, {"length", entry.region.length_bytes}});
  }
  const nlohmann::json body = {{"name", metadata.name},
                               {"protocol", "tcp"},
                               {"tcp_data_port", metadata.data_port},
                               {"tcp_proto_version", kProtocolVersion},
                               {"timestamp", timestamp()},
                               {"buffers", std::move(buffers)},
                               {"baton_identity", metadata.identity}};
  return body.dump();
}

Result<Metadata> decode_metadata(std::string_view json) {
  const auto malformed = [](const char* what) {
    return Error{Errc::malformed, std::string("metadata: ") + what};
  };
  const nlohmann::json body = nlohmann::json::parse(json, nullptr, false);
  if (!body.is_object()) return malformed("not a JSON object");
  const auto text = [&](const char* key) {
    const auto field = body.find(key);
    return field != body.end() && field->is_string() ? field->get<std::string>() : std::string();
  };
  const auto number = [&](const char* key, std::uint64_t missing) {
    const auto field = body.find(key);
    return field != body.end() && field->is_number_unsigned() ? field->get<std::uint64_t>()
                                                              : missing;
  };
  if (text("protocol") != "tcp") return malformed("the peer does not use the tcp transport");
  const std::uint64_t port = number("tcp_data_port", 0);
  if (port == 0 || port > 65535) return malformed("tcp_data_port is not a port");
  const std::uint64_t version = number("tcp_proto_version", 1);
  if (version == 0 || version > 1000) return malformed("tcp_proto_version is out of range");
  return Metadata{text("name"), static_cast<std::uint16_t>(port),
                  static_cast<std::uint32_t>(version), text("baton_identity")};
}

}  // namespace baton::engine::tcp
