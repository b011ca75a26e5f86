// NodeRunner: a node, its mutex and its outboxes. The only place where core meets threads.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/overloaded.hpp"
#include "core/actions.hpp"
#include "core/events.hpp"
#include "runtime/clock.hpp"
#include "runtime/event_flag.hpp"
#include "runtime/room_slot.hpp"

namespace baton::runtime {

// What the threads that own I/O must be woken for after an event.
struct Wake {
  bool hub = false;       // messages to send, or an earlier deadline
  bool transfer = false;  // writes to submit
  bool requests = false;  // bootstrap look-ups to start
};

// A look-up that the node asked for.
using Request = std::variant<core::RequestTopology, core::RequestRoute>;

// Events are applied inline, in the caller's thread, under one short mutex. Actions that touch I/O
// go into outboxes *inside* the mutex, so that their order is the node's order, and are carried out
// by the thread that owns the I/O, outside it. Nothing under the mutex blocks, logs or calls out.
template <class Node, class Event>
class NodeRunner {
 public:
  using Counters = std::array<std::uint64_t, static_cast<std::size_t>(core::Counter::count)>;

  explicit NodeRunner(Node node) : node_(std::move(node)) {}

  // The error is the node's refusal. `wake` says whom to wake, after the mutex is free.
  Result<core::RoomKey> apply(Event event, Wake& wake) {
    const Instant time = now();
    const std::lock_guard lock(mutex_);
    return step(time, std::move(event), wake);
  }

  // Opens a room and hands out its slot.
  Result<std::shared_ptr<RoomSlot>> open(Event event, Wake& wake) {
    const Instant time = now();
    const std::lock_guard lock(mutex_);
    actions_.clear();
    Result<core::RoomKey> key = node_.step(time, std::move(event), actions_);
    if (!key) return key.error();
    auto slot = std::make_shared<RoomSlot>();
    slot->key = *key;
    slots_.emplace(*key, slot);
    dispatch(wake);
    return slot;
  }

  // Applies the event and keeps what the handle may ask for later.
  Result<core::RoomKey> apply_to(RoomSlot& slot, Event event, Wake& wake) {
    const Instant time = now();
    const std::lock_guard lock(mutex_);
    remember_metric(slot);
    Result<core::RoomKey> done = step(time, std::move(event), wake);
    remember_metric(slot);
    return done;
  }

  TransferMetric metric(RoomSlot& slot) {
    const std::lock_guard lock(mutex_);
    remember_metric(slot);
    return slot.metric;
  }

  std::optional<Failure> failure(const RoomSlot& slot) {
    const std::lock_guard lock(mutex_);
    return slot.failure;
  }

  std::vector<std::shared_ptr<RoomSlot>> slots() {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<RoomSlot>> all;
    for (const auto& [key, slot] : slots_) all.push_back(slot);
    return all;
  }

  void take_messages(std::vector<core::SendMessage>& into) { take(messages_, into); }
  void take_writes(std::vector<core::SubmitWrite>& into) { take(writes_, into); }
  void take_requests(std::vector<Request>& into) { take(requests_, into); }

  // Fires what is due; the result is when to call again.
  std::optional<Instant> run_timers(Wake& wake) {
    const Instant time = now();
    const std::lock_guard lock(mutex_);
    const std::optional<Instant> due = node_.next_deadline();
    if (due && *due <= time) (void)step(time, core::Tick{}, wake);
    announced_deadline_ = node_.next_deadline();
    return announced_deadline_;
  }

  Counters counters() const {
    Counters values{};
    for (std::size_t index = 0; index < values.size(); ++index) {
      values[index] = counters_[index].load(std::memory_order_relaxed);
    }
    return values;
  }

  EventFlag& changed() { return changed_; }

 private:
  Result<core::RoomKey> step(Instant time, Event event, Wake& wake) {
    actions_.clear();
    Result<core::RoomKey> done = node_.step(time, std::move(event), actions_);
    dispatch(wake);
    return done;
  }

  void dispatch(Wake& wake) {
    for (core::Action& action : actions_) {
      std::visit(overloaded{
                     [&](core::SendMessage& message) {
                       messages_.push_back(std::move(message));
                       wake.hub = true;
                     },
                     [&](core::SubmitWrite& write) {
                       writes_.push_back(std::move(write));
                       wake.transfer = true;
                     },
                     [&](core::StatusChanged& change) { on_status(change); },
                     [&](core::QuietChanged& change) { on_quiet(change); },
                     [&](core::RoomClosed& closed) { on_closed(closed); },
                     [&](core::PrefixKnown& known) {
                       if (RoomSlot* slot = find(known.key)) {
                         slot->prefix_tokens = known.prefix_tokens;
                       }
                     },
                     [&](core::RequestTopology& request) {
                       requests_.emplace_back(std::move(request));
                       wake.requests = true;
                     },
                     [&](core::RequestRoute& request) {
                       requests_.emplace_back(std::move(request));
                       wake.requests = true;
                     },
                     [&](core::Count& count) {
                       counters_[static_cast<std::size_t>(count.counter)].fetch_add(
                           1, std::memory_order_relaxed);
                     },
                 },
                 action);
    }
    const std::optional<Instant> due = node_.next_deadline();
    if (due && (!announced_deadline_ || *due < *announced_deadline_)) wake.hub = true;
  }

  RoomSlot* find(core::RoomKey key) {
    const auto found = slots_.find(key);
    return found == slots_.end() ? nullptr : found->second.get();
  }

  void remember_metric(RoomSlot& slot) {
    if (const auto* room = node_.find(slot.key)) slot.metric = room->metric();
  }

  void on_status(core::StatusChanged& change) {
    RoomSlot* slot = find(change.key);
    if (slot == nullptr) return;  // nobody has opened the room
    if (change.failure) slot->failure = std::move(change.failure);
    remember_metric(*slot);
    slot->status.store(change.status, std::memory_order_release);
    changed_.raise();
  }

  void on_quiet(const core::QuietChanged& change) {
    RoomSlot* slot = find(change.key);
    if (slot == nullptr) return;
    slot->quiet.store(change.quiet, std::memory_order_release);
    if (change.quiet) changed_.raise();
  }

  void on_closed(const core::RoomClosed& closed) {
    const auto found = slots_.find(closed.key);
    if (found == slots_.end()) return;
    found->second->is_closed = true;
    slots_.erase(found);
  }

  template <class T>
  void take(std::vector<T>& from, std::vector<T>& into) {
    into.clear();
    const std::lock_guard lock(mutex_);
    into.swap(from);
  }

  std::mutex mutex_;
  // Guarded by mutex_:
  Node node_;
  core::Actions actions_;  // reused
  std::map<core::RoomKey, std::shared_ptr<RoomSlot>> slots_;
  std::vector<core::SendMessage> messages_;
  std::vector<core::SubmitWrite> writes_;
  std::vector<Request> requests_;
  std::optional<Instant> announced_deadline_;  // what the timer thread last heard
  // Not guarded:
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(core::Counter::count)>
      counters_{};
  EventFlag changed_;
};

}  // namespace baton::runtime
