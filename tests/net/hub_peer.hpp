// HubPeer: a running ZmqHub for tests that can send from any thread and wait for what arrives.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/zmq_hub.hpp"

namespace baton::net {

// Long enough for a crowded machine; nothing waits this long unless it is broken.
inline constexpr auto kPatience = std::chrono::seconds(60);

inline HubOptions loopback() {
  HubOptions options;
  options.bind_host = "127.0.0.1";
  return options;
}

class HubPeer {
 public:
  struct Failed {
    Endpoint to;
    Frames frames;
    Error error;
  };

  explicit HubPeer(const HubOptions& options = loopback()) {
    Result<std::unique_ptr<ZmqHub>> created = ZmqHub::create(options);
    if (!created) {
      ADD_FAILURE() << created.error().text;
      return;
    }
    hub_ = std::move(created.value());
    host_ = options.bind_host;
    hub_->start(
        {.on_message = [this](Frames frames) { note(received_, std::move(frames)); },
         .on_send_failed =
             [this](const Endpoint& to, const Frames& frames, const Error& error) {
               note(failed_, Failed{to, frames, error});
             },
         .on_disconnected = [this](const Endpoint& peer) { note(disconnected_, Endpoint(peer)); },
         .collect = [this](std::vector<Outgoing>& out) { collect(out); },
         .on_timer = nullptr});
  }
  ~HubPeer() { hub_->stop(); }

  ZmqHub& hub() { return *hub_; }
  Endpoint endpoint() const { return {host_, hub_->port()}; }

  void send(const Endpoint& to, Frames frames) {
    {
      const std::scoped_lock lock(mutex_);
      queue_.push_back({to, std::move(frames)});
    }
    hub_->wake();
  }

  // False if fewer came in time.
  bool wait_received(std::size_t count) {
    return wait([&] { return received_.size() >= count; });
  }
  bool wait_failed(std::size_t count) {
    return wait([&] { return failed_.size() >= count; });
  }
  bool wait_disconnected(std::size_t count) {
    return wait([&] { return disconnected_.size() >= count; });
  }
  // The hub counts a message only after libzmq has taken it, and a peer can be faster than that.
  bool wait_sent(std::uint64_t count) {
    const Instant end = Clock::now() + kPatience;
    while (hub_->stats().messages_sent < count && Clock::now() < end) std::this_thread::yield();
    return hub_->stats().messages_sent == count;
  }
  std::vector<Endpoint> disconnected() {
    const std::scoped_lock lock(mutex_);
    return disconnected_;
  }
  std::vector<Frames> received() {
    const std::scoped_lock lock(mutex_);
    return received_;
  }
  std::vector<Failed> failed() {
    const std::scoped_lock lock(mutex_);
    return failed_;
  }

 private:
  template <class Condition>
  bool wait(Condition&& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
  }
  template <class T>
  void note(std::vector<T>& list, T&& value) {
    const std::scoped_lock lock(mutex_);
    list.push_back(std::move(value));
    changed_.notify_all();
  }
  void collect(std::vector<Outgoing>& out) {
    const std::scoped_lock lock(mutex_);
    for (Outgoing& message : queue_) out.push_back(std::move(message));
    queue_.clear();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Outgoing> queue_;
  std::vector<Frames> received_;
  std::vector<Failed> failed_;
  std::vector<Endpoint> disconnected_;
  std::string host_;
  std::unique_ptr<ZmqHub> hub_;
};

// A port of this machine that nobody listens on (for now).
inline std::uint16_t free_port(const std::string& host = "127.0.0.1") {
  HubOptions options;
  options.bind_host = host;
  Result<std::unique_ptr<ZmqHub>> hub = ZmqHub::create(options);
  return hub ? (*hub)->port() : std::uint16_t{0};
}

}  // namespace baton::net
