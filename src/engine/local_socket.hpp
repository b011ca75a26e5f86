// The control socket of the local engine: abstract unix sockets, messages with descriptors.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "baton/result.hpp"
#include "engine/fd.hpp"

namespace baton::engine {

// What travels between two local engines, one per packet. Same host, so host byte order.
struct LocalMessage {
  enum class Kind : std::uint32_t {
    hello,    // client to server: who is there?
    gate,     // server to client, first: the shared page, as descriptor
    added,    // a region, with a descriptor if it can be mapped
    removed,  // a region is gone; `generation` counts removals
    ready,    // the whole table has been sent
  };
  std::uint32_t magic = kMagic;
  Kind kind = Kind::hello;
  std::uint64_t generation = 0;
  std::uint64_t region = 0;
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t offset_bytes = 0;

  static constexpr std::uint32_t kMagic = 0x4e544231;  // also the version of this protocol
};

enum class PacketStatus : std::uint8_t { done, would_block, closed };

// The sender as the kernel knows it, never as it claims.
struct Credentials {
  pid_t pid = 0;
  uid_t user = 0;
};

struct Packet {
  LocalMessage message;
  Fd descriptor;
  Credentials sender;
};

Result<Fd> listen_local(std::string_view name);
// Errc::unreachable if nobody listens, Errc::limit if the listener is busy (try again).
Result<Fd> connect_local(std::string_view name);
// Who listens at the other end (of a connected socket) or connected (of an accepted one).
Credentials peer_credentials(int socket);
// Only processes of the same user, or of root, may exchange regions.
bool is_trusted(const Credentials& peer);

// `descriptor` -1: none.
PacketStatus send_packet(int socket, const LocalMessage& message, int descriptor);
// A packet of another size or magic counts as closed: the peer is not what it claims to be.
PacketStatus receive_packet(int socket, Packet& packet);

}  // namespace baton::engine
