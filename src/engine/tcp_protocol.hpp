// The bytes of Mooncake's TCP protocol: request headers, status words, RPC framing. [spec 4.3]
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "baton/result.hpp"
#include "engine/regions.hpp"

namespace baton::engine::tcp {

// --- data port -----------------------------------------------------------------------------------

constexpr std::size_t kHeaderBytes = 24;
constexpr std::size_t kStatusBytes = 8;
using HeaderBytes = std::array<char, kHeaderBytes>;

enum class Opcode : std::uint8_t { read = 0, write = 1 };

// One request: move `length_bytes` from or to `address` in the server's memory.
struct Header {
  std::uint64_t length_bytes = 0;
  std::uint64_t address = 0;
  Opcode opcode = Opcode::write;
  bool wants_status = true;  // protocol 2: the server answers with a status word

  friend bool operator==(const Header&, const Header&) = default;
};

HeaderBytes encode_header(const Header& header);
// Empty for an opcode that does not exist.
std::optional<Header> decode_header(const char* bytes);

constexpr std::uint64_t kStatusMagic = std::uint64_t{0x4D435456} << 32U;
constexpr std::uint64_t kStatusApplied = kStatusMagic | 0;
constexpr std::uint64_t kStatusRejected = kStatusMagic | 1;  // the server closes after it

void store_u64(char* bytes, std::uint64_t value);
std::uint64_t load_u64(const char* bytes);

// --- RPC port ------------------------------------------------------------------------------------

constexpr std::size_t kRpcLengthBytes = 8;
constexpr std::uint64_t kRpcBytesMax = 1U << 20U;  // longer messages are refused

enum class RpcType : std::uint8_t {
  handshake = 0,  // RDMA connection set-up, which this engine does not do
  metadata = 1,
  notify = 2,
  probe = 3,
  fence = 66,  // Baton's own; asked only of servers that announce it
};

// Length, type byte and JSON.
std::string encode_rpc(std::uint8_t type, std::string_view json);

// What a server tells about itself.
struct Metadata {
  std::string name;  // "host:rpc_port"
  std::uint16_t data_port = 0;
  std::uint32_t protocol_version = 1;
  std::string identity;  // of a Baton server, which knows RpcType::fence; else empty

  friend bool operator==(const Metadata&, const Metadata&) = default;
};

std::string encode_metadata(const Metadata& metadata, const RegionIndex& regions);
Result<Metadata> decode_metadata(std::string_view json);

}  // namespace baton::engine::tcp
