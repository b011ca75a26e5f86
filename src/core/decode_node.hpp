// DecodeNode: one decode rank as a value. Events in, an ordered list of actions out.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "baton/result.hpp"
#include "core/actions.hpp"
#include "core/deadlines.hpp"
#include "core/decode_room.hpp"
#include "core/events.hpp"
#include "core/prefill_directory.hpp"

namespace baton::core {

class DecodeNode {
 public:
  explicit DecodeNode(DecodeConfig config)
      : config_(std::move(config)), directory_(config_.shape, config_.resolve_retry_interval) {}

  // Runs to completion; never blocks, never throws. An Error means that the event was refused and
  // changed nothing. The key is that of the room concerned, if there is one.
  Result<RoomKey> step(Instant now, DecodeEvent event, Actions& out);

  std::optional<Instant> next_deadline() const;
  // nullptr when the room, or this life of it, is gone.
  const DecodeRoom* find(RoomKey key) const;
  const std::map<RoomId, DecodeRoom>& rooms() const { return rooms_; }

  friend bool operator==(const DecodeNode&, const DecodeNode&) = default;

 private:
  Result<RoomKey> on_open(Instant now, OpenReceiver open, Actions& out);
  void on_message(Instant now, const Message& message, Actions& out);
  void on_status(Instant now, const Status& message, Actions& out);
  void on_send_failed(Instant now, const SendFailed& failed, Actions& out);
  void on_disconnected(Instant now, const Endpoint& peer, Actions& out);
  // Rooms that have `peer` among their prefill ranks.
  std::vector<RoomId> rooms_with(const Endpoint& peer) const;
  void on_topology(Instant now, const TopologyReply& reply, Actions& out);
  void on_route(Instant now, const RouteReply& reply, Actions& out);
  void on_tick(Instant now, Actions& out);
  void on_deadline(Instant now, DecodeRoom& room, Actions& out);
  // Tries to go on with every room that waits for the address.
  void resolve_waiting(Instant now, const std::string& address, Actions& out);
  void resolve(Instant now, DecodeRoom& room, Actions& out);
  void fail(Instant now, DecodeRoom& room, Failure failure, Actions& out);
  void invalidate_routes(const DecodeRoom& room);
  // Brings timers and the room table up to date after an event touched the room.
  void settle(RoomId room, Actions& out);

  DecodeConfig config_;
  PrefillDirectory directory_;
  std::map<RoomId, DecodeRoom> rooms_;
  std::map<std::string, std::set<RoomId>> resolving_;  // by bootstrap address
  Deadlines<RoomId> deadlines_;
  Life next_life_{1};
  std::uint64_t generations_ = 0;  // of aborts, manager-wide [spec 4.16]
};

}  // namespace baton::core
