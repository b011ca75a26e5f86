// ZmqHub: the one thread that owns every ZeroMQ socket of a process's control plane.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/address.hpp"
#include "base/frames.hpp"
#include "baton/result.hpp"
#include "baton/types.hpp"

namespace baton::net {

// One multipart message on its way to a peer's PULL socket.
struct Outgoing {
  Endpoint to;
  Frames frames;
};

struct HubOptions {
  std::string bind_host;        // an IP literal of this machine, or "*" for every interface
  std::uint16_t bind_port = 0;  // 0: any free port
  // A message that no socket took for this long is dropped and reported.
  Duration send_timeout = std::chrono::seconds(30);
  // How long stop() may go on delivering what is pending.
  Duration flush_timeout = std::chrono::milliseconds(500);

  // Per endpoint. A message beyond either limit is dropped and reported (Errc::limit).
  std::size_t outbox_messages_max = 65536;
  std::size_t outbox_bytes_max = std::size_t{64} << 20;
  // Incoming messages beyond these are dropped and counted. A single frame beyond twice
  // message_bytes_max also costs the sender its connection, so that no peer can make us allocate.
  std::size_t frames_max = 256;
  std::size_t message_bytes_max = std::size_t{64} << 20;
  // Messages that wait for this thread, per sending peer; beyond it TCP pushes back on that peer.
  // (The reference has no such limit and lets its memory grow.)
  int receive_queue_messages_max = 100'000;
  // Open PUSH sockets. At the limit the longest unused one without pending messages is closed.
  std::size_t endpoints_max = 16383;
};

// All run on the hub thread, must not block, and must stay callable until stop() has returned.
struct HubHandlers {
  std::function<void(Frames)> on_message;
  // The message was not handed to a socket and is dropped. Codes: timeout, limit, closed
  // (disconnect() or stop()), invalid_argument (no such address), io.
  std::function<void(const Endpoint&, const Frames&, const Error&)> on_send_failed;
  // A connection that was up broke: the peer's process is gone, or the network is. What was handed
  // to its socket may be lost. The hub goes on trying to reach it. Optional; costs a socket a peer.
  std::function<void(const Endpoint&)> on_disconnected;
  // Appends what is to be sent. Called after each wake() (several may share one call).
  std::function<void(std::vector<Outgoing>&)> collect;
  // Called after each batch of work; handles due timers and returns the next deadline.
  std::function<std::optional<Instant>()> on_timer;
};

// A snapshot of counters; each is exact, together they are not one instant.
struct HubStats {
  std::uint64_t messages_sent = 0, bytes_sent = 0;  // handed to a socket
  std::uint64_t messages_received = 0, bytes_received = 0;
  std::uint64_t sends_failed = 0;        // reported through on_send_failed
  std::uint64_t sends_deferred = 0;      // no socket took it at once: the peer is away or slow
  std::uint64_t receives_oversized = 0;  // dropped: too many frames or bytes
  std::uint64_t handler_exceptions = 0;  // a handler threw; the thread went on
  std::uint64_t wakes = 0;               // times that collect was called
  std::uint64_t endpoints_open = 0;
};

// Order is kept per endpoint. A peer that does not listen yet gets its messages once it does
// (within send_timeout), and a slow or dead peer delays nobody else. What was handed to a socket
// can still be lost if the connection breaks: delivery is at most once, as in the reference.
class ZmqHub {
 public:
  // Binds the PULL socket; the thread starts with start(). The error names address and cause.
  static Result<std::unique_ptr<ZmqHub>> create(const HubOptions& options);
  ~ZmqHub();  // stop()
  ZmqHub(const ZmqHub&) = delete;
  ZmqHub& operator=(const ZmqHub&) = delete;

  std::uint16_t port() const;
  // Once.
  void start(HubHandlers handlers);
  // Any thread, before start() too. Cheap: a system call only when the hub may be asleep.
  void wake();
  // Any thread. Drops the endpoint's socket and queue (its messages are reported, Errc::closed).
  // Messages that collect() yields after this call go through a new socket.
  void disconnect(const Endpoint& endpoint);
  // Collects once more, flushes for at most flush_timeout, joins. Idempotent. Not on the hub
  // thread.
  void stop();
  HubStats stats() const;

 private:
  class Impl;
  explicit ZmqHub(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::net
