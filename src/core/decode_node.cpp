// Routes each event to its room and keeps what rooms share: the directory, timers, generations.
#include "core/decode_node.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/overloaded.hpp"
#include "core/failures.hpp"

namespace baton::core {

namespace {

Error gone(RoomKey key) {
  return {Errc::not_found, "room " + std::to_string(key.room.value) + " is no longer tracked"};
}

}  // namespace

const DecodeRoom* DecodeNode::find(RoomKey key) const {
  const auto found = rooms_.find(key.room);
  if (found == rooms_.end() || found->second.key() != key) return nullptr;
  return &found->second;
}

std::optional<Instant> DecodeNode::next_deadline() const {
  const std::optional<Instant> room = deadlines_.next();
  const std::optional<Instant> retry = directory_.next_retry();
  if (!room) return retry;
  if (!retry) return room;
  return std::min(*room, *retry);
}

Result<RoomKey> DecodeNode::step(Instant now, DecodeEvent event, Actions& out) {
  const auto with_room = [&](RoomKey key, auto&& handle) -> Result<RoomKey> {
    auto* room = const_cast<DecodeRoom*>(find(key));
    if (room == nullptr) return gone(key);
    const Result<void> done = handle(*room);
    if (!done) return done.error();
    settle(key.room, out);
    return key;
  };
  const auto done = [](auto&&...) -> Result<RoomKey> { return RoomKey{}; };
  return std::visit(
      overloaded{
          [&](OpenReceiver& open) { return on_open(now, std::move(open), out); },
          [&](Publish& publish) {
            const RoomKey key = publish.key;
            return with_room(key, [&](DecodeRoom& room) {
              return room.on_publish(std::move(publish), config_, now, out);
            });
          },
          [&](AbortRoom& abort) {
            return with_room(abort.key, [&](DecodeRoom& room) {
              fail(now, room, failures::aborted_here(), out);
              return Result<void>();
            });
          },
          [&](ClearRoom& clear) {
            return with_room(clear.key, [&](DecodeRoom& room) {
              room.on_clear(config_, generations_, now, out);
              return Result<void>();
            });
          },
          [&](Observe& observe) {
            return with_room(observe.key, [&](DecodeRoom& room) {
              room.on_observe(now);
              return Result<void>();
            });
          },
          [&](MessageReceived& received) {
            on_message(now, received.message, out);
            return done();
          },
          [&](SendFailed& failed) {
            on_send_failed(now, failed, out);
            return done();
          },
          [&](PeerDisconnected& disconnected) {
            on_disconnected(now, disconnected.peer, out);
            return done();
          },
          [&](TopologyReply& reply) {
            on_topology(now, reply, out);
            return done();
          },
          [&](RouteReply& reply) {
            on_route(now, reply, out);
            return done();
          },
          [&](Tick&) {
            on_tick(now, out);
            return done();
          },
      },
      event);
}

Result<RoomKey> DecodeNode::on_open(Instant now, OpenReceiver open, Actions& out) {
  const auto found = rooms_.find(open.room);
  if (found != rooms_.end()) {
    return Error{Errc::already_exists,
                 "room " + std::to_string(open.room.value) + " is still in use on this rank (" +
                     std::string(to_string(found->second.phase())) +
                     "): clear it and wait until its pages are quiet"};
  }
  const RoomKey key{open.room, std::exchange(next_life_, Life{next_life_.value + 1})};
  DecodeRoom& room = rooms_.emplace(open.room, DecodeRoom::open(key, open, now)).first->second;
  resolving_[open.bootstrap_address].insert(open.room);
  out.push_back(Count{Counter::rooms_opened});
  out.push_back(StatusChanged{key, room.status(), std::nullopt});
  resolve(now, room, out);
  settle(open.room, out);
  return key;
}

// --- resolving ----------------------------------------------------------------------------------

void DecodeNode::resolve(Instant now, DecodeRoom& room, Actions& out) {
  if (room.phase() != DecodeRoom::Phase::resolving) return;
  Failure failure;
  Result<std::optional<Resolution>> resolution =
      directory_.resolve(room.key().room, room.bootstrap_address(), room.dp_rank(),
                         config_.registration, out, failure);
  if (!resolution) {
    fail(now, room, std::move(failure), out);
  } else if (resolution->has_value()) {
    room.on_resolved(std::move(**resolution), now, out);
  }
}

void DecodeNode::resolve_waiting(Instant now, const std::string& address, Actions& out) {
  const auto found = resolving_.find(address);
  if (found == resolving_.end()) return;
  const std::vector<RoomId> rooms(found->second.begin(), found->second.end());
  for (const RoomId id : rooms) {
    resolve(now, rooms_.at(id), out);
    settle(id, out);
  }
}

void DecodeNode::on_topology(Instant now, const TopologyReply& reply, Actions& out) {
  if (!directory_.on_topology(reply, now)) {
    out.push_back(Count{Counter::drop_unexpected_reply});
    return;
  }
  if (reply.info) resolve_waiting(now, reply.bootstrap_address, out);
}

void DecodeNode::on_route(Instant now, const RouteReply& reply, Actions& out) {
  if (!directory_.on_route(reply)) {
    out.push_back(Count{Counter::drop_unexpected_reply});
    return;
  }
  resolve_waiting(now, reply.route.bootstrap_address, out);
  directory_.forget_failed(reply.route);
}

// --- wire ---------------------------------------------------------------------------------------

void DecodeNode::on_message(Instant now, const Message& message, Actions& out) {
  const auto wrong_side = [&](const auto&) { out.push_back(Count{Counter::drop_wrong_side}); };
  std::visit(overloaded{
                 [&](const Status& status) { on_status(now, status, out); },
                 [&](const AbortAck& ack) {
                   const auto found = rooms_.find(ack.room);
                   if (found == rooms_.end()) {
                     out.push_back(Count{Counter::drop_unknown_room});
                     return;
                   }
                   found->second.on_abort_ack(ack, out);
                   settle(ack.room, out);
                 },
                 [&](const Registration& registration) { wrong_side(registration); },
                 [&](const Metadata& metadata) { wrong_side(metadata); },
                 [&](const Abort& abort) { wrong_side(abort); },
                 // Staging and aux-by-message are not negotiated in this version.
                 [&](const ChunkReady& ready) { wrong_side(ready); },
                 [&](const AuxData& aux) { wrong_side(aux); },
                 [&](const StagingRequest& request) { wrong_side(request); },
                 [&](const StagingReply& reply) { wrong_side(reply); },
                 [&](const Watermark& watermark) { wrong_side(watermark); },
             },
             message);
}

void DecodeNode::on_status(Instant now, const Status& message, Actions& out) {
  const auto found = rooms_.find(message.room);
  if (found == rooms_.end()) {
    out.push_back(Count{Counter::drop_unknown_room});  // before anything is recorded [I12]
    return;
  }
  DecodeRoom& room = found->second;
  const bool was_published = room.phase() == DecodeRoom::Phase::published;
  room.on_status(message, config_, generations_, now, out);
  // The Mooncake dialect carries no reason. A prefill process that restarted on its old port fails
  // our metadata because it does not know us: the next room must register again.
  if (was_published && room.status() == KvPoll::failed) invalidate_routes(room);
  settle(message.room, out);
}

void DecodeNode::on_send_failed(Instant now, const SendFailed& failed, Actions& out) {
  out.push_back(Count{Counter::sends_failed});
  const auto* metadata = std::get_if<Metadata>(&failed.message);
  const bool is_registration = std::holds_alternative<Registration>(failed.message);
  if (metadata == nullptr && !is_registration) return;
  directory_.invalidate(failed.to);
  const char* operation = is_registration ? "_register_kv_args" : "send_metadata";
  for (const RoomId id : rooms_with(failed.to)) {
    // Metadata of a room that has not published is of an earlier use of its number.
    const bool sent = rooms_.at(id).phase() == DecodeRoom::Phase::published;
    if (metadata != nullptr && (id != metadata->room || !sent)) continue;
    fail(now, rooms_.at(id), failures::send_failed(operation, failed.to, failed.reason), out);
    settle(id, out);
  }
}

std::vector<RoomId> DecodeNode::rooms_with(const Endpoint& endpoint) const {
  const auto is_peer = [&](const PrefillPeer& peer) { return peer.endpoint == endpoint; };
  std::vector<RoomId> found;
  for (const auto& [id, room] : rooms_) {
    if (std::any_of(room.peers().begin(), room.peers().end(), is_peer)) found.push_back(id);
  }
  return found;
}

// A broken control connection is no proof that the rank stopped writing: a published room holds its
// pages as after any other failure. The next room asks for the rank's address again.
void DecodeNode::on_disconnected(Instant now, const Endpoint& peer, Actions& out) {
  directory_.invalidate(peer);
  for (const RoomId id : rooms_with(peer)) {
    DecodeRoom& room = rooms_.at(id);
    fail(now, room, failures::connection_lost(room.bootstrap_address()), out);
    settle(id, out);
  }
}

// --- time and endings ---------------------------------------------------------------------------

void DecodeNode::on_tick(Instant now, Actions& out) {
  while (const std::optional<std::string> address = directory_.take_due(now)) {
    resolve_waiting(now, *address, out);
  }
  while (const std::optional<RoomId> due = deadlines_.take_due(now)) {
    on_deadline(now, rooms_.at(*due), out);
    settle(*due, out);
  }
}

void DecodeNode::on_deadline(Instant now, DecodeRoom& room, Actions& out) {
  switch (room.phase()) {
    case DecodeRoom::Phase::resolving:
      fail(now, room,
           failures::no_topology(room.bootstrap_address(),
                                 directory_.last_error(room.bootstrap_address())),
           out);
      break;
    case DecodeRoom::Phase::published: {
      invalidate_routes(room);  // prefill may have restarted elsewhere [I29]
      fail(now, room,
           failures::waiting_timeout(room.key().room, room.waited(now), room.reports_count(),
                                     room.reports_required()),
           out);
      break;
    }
    case DecodeRoom::Phase::holding:
    case DecodeRoom::Phase::quarantined: room.on_release_timeout(out); break;
    case DecodeRoom::Phase::bootstrapped:
    case DecodeRoom::Phase::concluded_success:
    case DecodeRoom::Phase::concluded_failed: break;  // no deadline in these phases
  }
}

void DecodeNode::fail(Instant now, DecodeRoom& room, Failure failure, Actions& out) {
  room.fail(std::move(failure), config_, generations_, now, out);
}

void DecodeNode::invalidate_routes(const DecodeRoom& room) {
  for (const PrefillPeer& peer : room.peers()) directory_.invalidate(peer);
}

void DecodeNode::settle(RoomId id, Actions& out) {
  const auto found = rooms_.find(id);
  const DecodeRoom& room = found->second;
  if (room.phase() != DecodeRoom::Phase::resolving) {
    const auto waiting = resolving_.find(room.bootstrap_address());
    if (waiting != resolving_.end()) {
      waiting->second.erase(id);
      if (waiting->second.empty()) resolving_.erase(waiting);
    }
  }
  if (room.is_finished()) {
    out.push_back(RoomClosed{room.key()});
    deadlines_.clear(id);
    rooms_.erase(found);
    return;
  }
  const std::optional<Instant> due = room.deadline(config_);
  if (due) {
    deadlines_.set(id, *due);
  } else {
    deadlines_.clear(id);
  }
}

}  // namespace baton::core
