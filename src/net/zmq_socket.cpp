// The one file that talks to libzmq.
#include "net/zmq_socket.hpp"

#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

#if defined(__SANITIZE_THREAD__)
// libzmq is not instrumented: tsan sees its copies of our bytes, but not the atomics that order
// them, and would report every message.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libzmq.so\n"; }
#endif

namespace baton::net {

namespace {

// A peer that is away is tried again after this, then after twice as long, up to the maximum.
constexpr int kReconnectMs = 50;
constexpr int kReconnectMsMax = 1000;
// A host that swallows our SYN, or a process that is stopped in mid-handshake, is tried afresh.
constexpr int kConnectTimeoutMs = 5000;
constexpr int kHandshakeTimeoutMs = 10'000;
// As the reference: a silent network break is noticed after 30 + 3 * 5 s.
constexpr int kKeepaliveIdleSeconds = 30;
constexpr int kKeepaliveIntervalSeconds = 5;
constexpr int kKeepaliveCount = 3;
// Messages inside libzmq, per peer. What is in there when a connection breaks is lost without a
// word, so most of a backlog should wait in our own outbox; enough for full throughput.
constexpr int kSendQueueMessages = 256;
constexpr int kListenBacklog = 4096;

std::string cause() { return zmq_strerror(zmq_errno()); }

bool set(void* socket, int option, int value) {
  return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

// Keeps libzmq's own address syntax (source addresses, interfaces, wildcards) out of peers' hands.
bool is_plain_host(const std::string& host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == ':' || c == '-' || c == '_' || c == '%';
  });
}

bool set_pull_options(void* socket, const PullOptions& options) {
  return set(socket, ZMQ_LINGER, 0) && set(socket, ZMQ_RCVHWM, options.queue_messages_max) &&
         set(socket, ZMQ_BACKLOG, kListenBacklog) &&
         set(socket, ZMQ_HANDSHAKE_IVL, kHandshakeTimeoutMs) &&
         set(socket, ZMQ_IPV6, is_ipv6_literal(options.host) ? 1 : 0) &&
         zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &options.frame_bytes_max,
                        sizeof options.frame_bytes_max) == 0;
}

bool set_push_options(void* socket, bool is_ipv6) {
  return set(socket, ZMQ_LINGER, 0) &&
         // Without it libzmq takes messages for a peer that never listened and loses them. [spec
         // W8]
         set(socket, ZMQ_IMMEDIATE, 1) && set(socket, ZMQ_SNDHWM, kSendQueueMessages) &&
         set(socket, ZMQ_RECONNECT_IVL, kReconnectMs) &&
         set(socket, ZMQ_RECONNECT_IVL_MAX, kReconnectMsMax) &&
         set(socket, ZMQ_CONNECT_TIMEOUT, kConnectTimeoutMs) &&
         set(socket, ZMQ_HANDSHAKE_IVL, kHandshakeTimeoutMs) && set(socket, ZMQ_TCP_KEEPALIVE, 1) &&
         set(socket, ZMQ_TCP_KEEPALIVE_IDLE, kKeepaliveIdleSeconds) &&
         set(socket, ZMQ_TCP_KEEPALIVE_INTVL, kKeepaliveIntervalSeconds) &&
         set(socket, ZMQ_TCP_KEEPALIVE_CNT, kKeepaliveCount) &&
         set(socket, ZMQ_IPV6, is_ipv6 ? 1 : 0);
}

// A zmq_msg_t that is closed on every path.
struct Part {
  Part() { zmq_msg_init(&message); }
  ~Part() { zmq_msg_close(&message); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  zmq_msg_t message;
};

}  // namespace

ZmqContext::~ZmqContext() {
  if (handle_ == nullptr) return;
  while (zmq_ctx_term(handle_) != 0 && zmq_errno() == EINTR) {
  }
}

Result<void> ZmqContext::open(int sockets_max) {
  handle_ = zmq_ctx_new();
  if (handle_ == nullptr) return Error{Errc::io, "cannot create a ZeroMQ context: " + cause()};
  if (zmq_ctx_set(handle_, ZMQ_MAX_SOCKETS, sockets_max) != 0) {
    return Error{Errc::invalid_argument,
                 "ZeroMQ cannot have " + std::to_string(sockets_max) + " sockets: " + cause()};
  }
  return {};
}

ZmqSocket::ZmqSocket(ZmqSocket&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

ZmqSocket& ZmqSocket::operator=(ZmqSocket&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

Result<ZmqSocket> ZmqSocket::bind_pull(ZmqContext& context, const PullOptions& options) {
  const std::string port = options.port == 0 ? "any port" : "port " + std::to_string(options.port);
  const std::string what = "cannot listen on " + options.host + ", " + port + ": ";
  if (options.host != "*" && !is_plain_host(options.host)) {
    return Error{Errc::invalid_argument, what + "not an IP address"};
  }
  ZmqSocket socket(zmq_socket(context.handle_, ZMQ_PULL));
  if (socket.handle_ == nullptr || !set_pull_options(socket.handle_, options)) {
    return Error{Errc::io, what + cause()};
  }
  std::string address = "tcp://" + to_string(Endpoint{options.host, options.port});
  if (options.port == 0) address.back() = '*';
  if (zmq_bind(socket.handle_, address.c_str()) != 0) {
    const int error = zmq_errno();
    const Errc code = error == EADDRINUSE                         ? Errc::already_exists
                      : error == ENODEV || error == EADDRNOTAVAIL ? Errc::invalid_argument
                                                                  : Errc::io;
    return Error{code, what + (error == ENODEV ? "not an IP address of this machine" : cause())};
  }
  return socket;
}

Result<ZmqSocket> ZmqSocket::connect_push(ZmqContext& context, const Endpoint& to) {
  const std::string what = "cannot send to " + to_string(to) + ": ";
  if (!is_plain_host(to.host) || to.port == 0) {
    return Error{Errc::invalid_argument, what + "not an address"};
  }
  ZmqSocket socket(zmq_socket(context.handle_, ZMQ_PUSH));
  if (socket.handle_ == nullptr) {
    return Error{zmq_errno() == EMFILE ? Errc::limit : Errc::io, what + cause()};
  }
  if (!set_push_options(socket.handle_, is_ipv6_literal(to.host))) {
    return Error{Errc::io, what + cause()};
  }
  const std::string address = "tcp://" + to_string(to);
  if (zmq_connect(socket.handle_, address.c_str()) != 0) {
    return Error{zmq_errno() == EINVAL ? Errc::invalid_argument : Errc::io, what + cause()};
  }
  return socket;
}

Result<ZmqSocket> ZmqSocket::watch(ZmqContext& context) const {
  // The name only has to be unique in this context for as long as the socket lives.
  const std::string address =
      "inproc://watch-" + std::to_string(reinterpret_cast<std::uintptr_t>(handle_));
  ZmqSocket watcher(zmq_socket(context.handle_, ZMQ_PAIR));
  if (watcher.handle_ == nullptr || !set(watcher.handle_, ZMQ_LINGER, 0) ||
      zmq_socket_monitor(handle_, address.c_str(), ZMQ_EVENT_DISCONNECTED) != 0 ||
      zmq_connect(watcher.handle_, address.c_str()) != 0) {
    return Error{zmq_errno() == EMFILE ? Errc::limit : Errc::io,
                 "cannot watch a ZeroMQ connection: " + cause()};
  }
  return watcher;
}

bool ZmqSocket::take_disconnected() {
  if (handle_ == nullptr) return false;
  const ReceiveLimits limits{2, 1024};  // an event is two small frames: number, address
  bool disconnected = false;
  Frames event;
  while (receive(limits, event) == ReceiveOutcome::message) {
    std::uint16_t number = 0;
    if (event[0].size() >= sizeof number) std::memcpy(&number, event[0].data(), sizeof number);
    disconnected = disconnected || number == ZMQ_EVENT_DISCONNECTED;
  }
  return disconnected;
}

int ZmqSocket::descriptor() const {
  int descriptor = -1;
  std::size_t size = sizeof descriptor;
  BATON_ASSERT(zmq_getsockopt(handle_, ZMQ_FD, &descriptor, &size) == 0);
  return descriptor;
}

Result<std::uint16_t> ZmqSocket::bound_port() const {
  std::array<char, 256> text{};
  std::size_t size = text.size();
  if (zmq_getsockopt(handle_, ZMQ_LAST_ENDPOINT, text.data(), &size) != 0) {
    return Error{Errc::io, "cannot learn the port of a ZeroMQ socket: " + cause()};
  }
  const std::string address(text.data());
  const Result<Endpoint> endpoint = parse_endpoint(address.substr(address.find("//") + 2));
  if (!endpoint) return endpoint.error();
  return endpoint->port;
}

SendOutcome ZmqSocket::send(const Frames& frames) {
  BATON_ASSERT(!frames.empty());
  SendOutcome outcome = SendOutcome::sent;
  for (std::size_t index = 0; index < frames.size(); ++index) {
    const int more = index + 1 < frames.size() ? ZMQ_SNDMORE : 0;
    int sent = -1;
    do {
      sent = zmq_send(handle_, frames[index].data(), frames[index].size(), ZMQ_DONTWAIT | more);
    } while (sent < 0 && zmq_errno() == EINTR);
    if (sent >= 0) continue;
    outcome = zmq_errno() == EAGAIN ? SendOutcome::blocked : SendOutcome::failed;
    if (index == 0) return outcome;
    // The connection broke in mid-message. libzmq has taken the earlier frames back and swallows
    // the rest up to the last frame; it must see that one, or it would swallow the next message.
  }
  return outcome;
}

bool ZmqSocket::can_send() {
  int events = 0;
  std::size_t size = sizeof events;
  if (zmq_getsockopt(handle_, ZMQ_EVENTS, &events, &size) != 0) return false;
  return (events & ZMQ_POLLOUT) != 0;
}

ReceiveOutcome ZmqSocket::receive(const ReceiveLimits& limits, Frames& out) {
  out.clear();
  std::size_t bytes = 0;
  std::size_t frames = 0;
  bool is_oversized = false;
  Part part;
  do {
    int got = -1;
    do {
      got = zmq_msg_recv(&part.message, handle_, ZMQ_DONTWAIT);
    } while (got < 0 && zmq_errno() == EINTR);
    // libzmq shows a message only when all of it is here, so this is before the first part.
    if (got < 0) return ReceiveOutcome::nothing;
    const std::size_t size = zmq_msg_size(&part.message);
    bytes += size;
    is_oversized = is_oversized || ++frames > limits.frames_max || bytes > limits.bytes_max;
    if (!is_oversized) {
      out.emplace_back(static_cast<const char*>(zmq_msg_data(&part.message)), size);
    }
  } while (zmq_msg_more(&part.message) != 0);
  if (!is_oversized) return ReceiveOutcome::message;
  out.clear();
  return ReceiveOutcome::oversized;
}

void ZmqSocket::close(Duration linger) {
  if (handle_ == nullptr) return;
  const auto linger_ms = std::chrono::duration_cast<std::chrono::milliseconds>(linger).count();
  set(handle_, ZMQ_LINGER, static_cast<int>(linger_ms));
  zmq_close(handle_);
  handle_ = nullptr;
}

}  // namespace baton::net
