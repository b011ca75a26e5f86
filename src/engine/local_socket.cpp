// sendmsg and recvmsg with SCM_RIGHTS and SCM_CREDENTIALS.
#include "engine/local_socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace baton::engine {
namespace {

constexpr int kBacklog = 512;

struct Address {
  sockaddr_un value{};
  socklen_t length = 0;
};

// A leading zero byte makes the name abstract: no file, gone with the last socket.
Address abstract_address(std::string_view name) {
  Address address;
  address.value.sun_family = AF_UNIX;
  const std::size_t count = std::min(name.size(), sizeof address.value.sun_path - 1);
  std::memcpy(address.value.sun_path + 1, name.data(), count);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  return address;
}

Result<Fd> open_socket() {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_error("socket(AF_UNIX)", errno);
  return socket;
}

}  // namespace

Result<Fd> listen_local(std::string_view name) {
  Result<Fd> socket = open_socket();
  if (!socket) return socket;
  const Address address = abstract_address(name);
  if (::bind(socket->get(), reinterpret_cast<const sockaddr*>(&address.value), address.length) !=
      0) {
    return system_error("bind of the local engine's socket", errno);
  }
  if (::listen(socket->get(), kBacklog) != 0) {
    return system_error("listen on the local engine's socket", errno);
  }
  return socket;
}

Result<Fd> connect_local(std::string_view name) {
  Result<Fd> socket = open_socket();
  if (!socket) return socket;
  const int on = 1;
  if (::setsockopt(socket->get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return system_error("setsockopt(SO_PASSCRED)", errno);
  }
  const Address address = abstract_address(name);
  if (::connect(socket->get(), reinterpret_cast<const sockaddr*>(&address.value), address.length) ==
      0) {
    return socket;
  }
  if (errno == EAGAIN) return Error{Errc::limit, "the peer's backlog is full"};
  Error error = system_error("connect", errno);
  error.code = Errc::unreachable;
  return error;
}

Credentials peer_credentials(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return {0, static_cast<uid_t>(-1)};
  }
  return {credentials.pid, credentials.uid};
}

bool is_trusted(const Credentials& peer) { return peer.user == ::geteuid() || peer.user == 0; }

PacketStatus send_packet(int socket, const LocalMessage& message, int descriptor) {
  iovec part{const_cast<LocalMessage*>(&message), sizeof message};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  if (::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return PacketStatus::done;
  // ETOOMANYREFS: the kernel bounds descriptors in flight; the peer must read some first.
  const bool later = errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ETOOMANYREFS;
  return later ? PacketStatus::would_block : PacketStatus::closed;
}

PacketStatus receive_packet(int socket, Packet& packet) {
  iovec part{&packet.message, sizeof packet.message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) {
    return errno == EAGAIN || errno == EINTR ? PacketStatus::would_block : PacketStatus::closed;
  }
  packet.descriptor.reset();
  packet.sender = {};
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET) continue;
    if (item->cmsg_type == SCM_RIGHTS) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(item), sizeof descriptor);
      packet.descriptor = Fd(descriptor);
    } else if (item->cmsg_type == SCM_CREDENTIALS) {
      ucred credentials{};
      std::memcpy(&credentials, CMSG_DATA(item), sizeof credentials);
      packet.sender = {credentials.pid, credentials.uid};
    }
  }
  const bool is_ours = got == static_cast<ssize_t>(sizeof packet.message) &&
                       packet.message.magic == LocalMessage::kMagic;
  return is_ours ? PacketStatus::done : PacketStatus::closed;
}

}  // namespace baton::engine
