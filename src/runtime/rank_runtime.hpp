// RankRuntime: what a prefill rank and a decode rank have in common: node, channel, engine, memory.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "baton/engine.hpp"
#include "baton/manager.hpp"
#include "runtime/control_channel.hpp"
#include "runtime/memory.hpp"
#include "runtime/node_runner.hpp"

namespace baton::runtime {

// Threads: every public member may be called from any thread.
template <class Node, class Event>
class RankRuntime {
 public:
  RankRuntime(Node node, KvArgs kv, std::unique_ptr<TransferEngine> engine,
              std::vector<RegionId> regions, std::unique_ptr<ControlChannel> channel)
      : kv_(std::move(kv)),
        engine_(std::move(engine)),
        regions_(std::move(regions)),
        channel_(std::move(channel)),
        runner_(std::move(node)) {}
  virtual ~RankRuntime() = default;

  Result<std::shared_ptr<RoomSlot>> open(Event event) {
    if (stopped_) return closed();
    Wake wake;
    Result<std::shared_ptr<RoomSlot>> slot = runner_.open(std::move(event), wake);
    carry_out(wake);
    return slot;
  }

  // For calls whose refusal the application must hear of.
  Result<void> ask(RoomSlot& slot, Event event) {
    if (stopped_) return closed();
    Wake wake;
    const Result<core::RoomKey> done = runner_.apply_to(slot, std::move(event), wake);
    carry_out(wake);
    if (!done) return done.error();
    return {};
  }

  // For calls that are legal at any time, also on a room that is gone.
  void tell(RoomSlot& slot, Event event) {
    Wake wake;
    (void)runner_.apply_to(slot, std::move(event), wake);
    carry_out(wake);
  }

  KvPoll poll(RoomSlot& slot) {
    const KvPoll status = slot.status.load(std::memory_order_acquire);
    if (is_terminal(status) && !slot.observed.exchange(true, std::memory_order_relaxed)) {
      tell(slot, core::Observe{slot.key});
    }
    return status;
  }

  TransferMetric metric(RoomSlot& slot) { return runner_.metric(slot); }
  std::optional<Failure> failure(const RoomSlot& slot) { return runner_.failure(slot); }
  EventFlag& changed() { return runner_.changed(); }

  std::vector<CounterValue> counters() const {
    std::vector<CounterValue> values;
    const auto counts = runner_.counters();
    for (std::size_t index = 0; index < counts.size(); ++index) {
      values.push_back({std::string(to_string(static_cast<core::Counter>(index))), counts[index]});
    }
    const net::HubStats hub = channel_->stats();
    values.push_back({"messages_sent", hub.messages_sent});
    values.push_back({"messages_received", hub.messages_received});
    values.push_back({"messages_malformed", channel_->malformed_count()});
    values.push_back({"messages_oversized", hub.receives_oversized});
    return values;
  }

 protected:
  // Wakes the threads that own what the event asked for.
  virtual void carry_out(const Wake& wake) = 0;

  static Error closed() { return {Errc::closed, "the manager of this handle was destroyed"}; }

  void apply(Event event) {
    Wake wake;
    (void)runner_.apply(std::move(event), wake);
    carry_out(wake);
  }

  void start_channel() {
    ChannelHandlers handlers;
    handlers.on_message = [this](Message message) {
      apply(core::MessageReceived{std::move(message)});
    };
    handlers.on_send_failed = [this](core::SendFailed failed) { apply(std::move(failed)); };
    if constexpr (std::is_constructible_v<Event, core::PeerDisconnected>) {
      handlers.on_disconnected = [this](const Endpoint& peer) {
        apply(core::PeerDisconnected{peer});
      };
    }
    handlers.collect = [this](std::vector<core::SendMessage>& into) {
      runner_.take_messages(into);
    };
    handlers.on_timer = [this] {
      Wake wake;
      const std::optional<Instant> next = runner_.run_timers(wake);
      carry_out(wake);
      return next;
    };
    channel_->start(std::move(handlers));
  }

  // Fails every live room and forgets it; held memory goes on to be watched.
  void close_rooms() {
    for (const std::shared_ptr<RoomSlot>& slot : runner_.slots()) {
      tell(*slot, core::ClearRoom{slot->key});
    }
  }

  KvArgs kv_;
  std::unique_ptr<TransferEngine> engine_;
  std::vector<RegionId> regions_;
  std::unique_ptr<ControlChannel> channel_;
  NodeRunner<Node, Event> runner_;
  std::atomic<bool> stopped_{false};
};

}  // namespace baton::runtime
