// Thin owners of libzmq's context and sockets, with errors as values. Only zmq_socket.cpp sees
// zmq.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/address.hpp"
#include "base/frames.hpp"
#include "baton/result.hpp"
#include "baton/types.hpp"

namespace baton::net {

class ZmqSocket;

// Must outlive its sockets. Terminating waits for the linger time of closed sockets.
class ZmqContext {
 public:
  ZmqContext() = default;
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;

  Result<void> open(int sockets_max);

 private:
  friend class ZmqSocket;
  void* handle_ = nullptr;
};

struct PullOptions {
  std::string host;        // an IP literal, or "*"
  std::uint16_t port = 0;  // 0: any
  int queue_messages_max = 0;
  std::int64_t frame_bytes_max = -1;
};

struct ReceiveLimits {
  std::size_t frames_max = 0;
  std::size_t bytes_max = 0;
};

enum class SendOutcome : std::uint8_t { sent, blocked, failed };
enum class ReceiveOutcome : std::uint8_t { message, oversized, nothing };

// One socket, used by one thread. descriptor() is readable while libzmq has internal commands for
// this socket; can_send() and receive() handle them. So: after the descriptor was readable, call
// one of them until it says no, and only then sleep.
class ZmqSocket {
 public:
  ZmqSocket() = default;
  ~ZmqSocket() { close(Duration::zero()); }
  ZmqSocket(ZmqSocket&& other) noexcept;
  ZmqSocket& operator=(ZmqSocket&& other) noexcept;

  static Result<ZmqSocket> bind_pull(ZmqContext& context, const PullOptions& options);
  // Connects in the background, for ever. Takes messages only while a connection is up.
  static Result<ZmqSocket> connect_push(ZmqContext& context, const Endpoint& to);

  // A second socket that tells when this one's connection breaks; see take_disconnected().
  Result<ZmqSocket> watch(ZmqContext& context) const;

  bool is_open() const { return handle_ != nullptr; }
  int descriptor() const;
  Result<std::uint16_t> bound_port() const;

  // Whole messages only: `blocked` and `failed` leave nothing behind.
  SendOutcome send(const Frames& frames);
  bool can_send();
  // An oversized message is read to its end and thrown away.
  ReceiveOutcome receive(const ReceiveLimits& limits, Frames& out);

  // On a watching socket: true if the connection broke since the last call.
  bool take_disconnected();

  // What the socket has taken may still leave for `linger`.
  void close(Duration linger);

 private:
  explicit ZmqSocket(void* handle) : handle_(handle) {}
  void* handle_ = nullptr;
};

}  // namespace baton::net
