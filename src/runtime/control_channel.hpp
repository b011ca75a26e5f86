// ControlChannel: the hub plus a dialect: core messages in, core messages out.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/actions.hpp"
#include "net/zmq_hub.hpp"
#include "obs/log.hpp"
#include "wire/dialect.hpp"

namespace baton::runtime {

// The handlers run on the hub thread.
struct ChannelHandlers {
  std::function<void(Message)> on_message;
  std::function<void(core::SendFailed)> on_send_failed;
  std::function<void(const Endpoint&)> on_disconnected;  // optional
  std::function<void(std::vector<core::SendMessage>&)> collect;
  std::function<std::optional<Instant>()> on_timer;
};

// A malformed message is dropped, counted and logged; it never reaches the node and never ends the
// thread. [spec 5.10]
class ControlChannel {
 public:
  static Result<std::unique_ptr<ControlChannel>> create(const std::string& host, wire::Side side,
                                                        const wire::Dialect& dialect);

  std::uint16_t port() const { return hub_->port(); }
  void start(ChannelHandlers handlers);
  void wake() { hub_->wake(); }
  void stop() { hub_->stop(); }
  std::uint64_t malformed_count() const { return malformed_.load(std::memory_order_relaxed); }
  net::HubStats stats() const { return hub_->stats(); }

 private:
  ControlChannel(std::unique_ptr<net::ZmqHub> hub, wire::Side side, const wire::Dialect& dialect)
      : hub_(std::move(hub)), side_(side), dialect_(dialect) {}

  void receive(const Frames& frames);
  void collect(std::vector<net::Outgoing>& out);
  void report_failed(const Endpoint& to, const Frames& frames, const Error& error);

  std::unique_ptr<net::ZmqHub> hub_;
  wire::Side side_;
  const wire::Dialect& dialect_;
  ChannelHandlers handlers_;
  std::vector<core::SendMessage> messages_;  // reused by collect()
  std::atomic<std::uint64_t> malformed_{0};
};

}  // namespace baton::runtime
