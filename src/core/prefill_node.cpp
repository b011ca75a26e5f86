// Routes each event to its room and keeps what rooms share: sessions, tickets, timers.
#include "core/prefill_node.hpp"

#include <utility>

#include "base/overloaded.hpp"

namespace baton::core {

namespace {

Error gone(RoomKey key) {
  return {Errc::not_found, "room " + std::to_string(key.room.value) + " is no longer tracked"};
}

}  // namespace

const PrefillRoom* PrefillNode::find(RoomKey key) const {
  const auto found = rooms_.find(key.room);
  if (found == rooms_.end() || found->second.key() != key) return nullptr;
  return &found->second;
}

PrefillRoom* PrefillNode::find_live(RoomKey key) {
  return const_cast<PrefillRoom*>(std::as_const(*this).find(key));
}

Life PrefillNode::take_life() { return std::exchange(next_life_, Life{next_life_.value + 1}); }

Result<RoomKey> PrefillNode::step(Instant now, PrefillEvent event, Actions& out) {
  const auto with_room = [&](RoomKey key, auto&& handle) -> Result<RoomKey> {
    PrefillRoom* room = find_live(key);
    // A room that only decode announced has no application: aborted here it would stay for ever.
    if (room == nullptr || !room->was_opened()) return gone(key);
    const Result<void> done = handle(*room);
    if (!done) return done.error();
    settle(key.room, out);
    return key;
  };
  return std::visit(
      overloaded{
          [&](OpenSender& open) { return on_open(now, open.room, out); },
          [&](InitSender& init) {
            return with_room(init.key, [&](PrefillRoom& room) {
              return room.on_init(init.pages_count, init.aux_index);
            });
          },
          [&](SendChunk& chunk) {
            return with_room(chunk.key, [&](PrefillRoom& room) {
              return room.on_send(now, std::move(chunk), shared_, out);
            });
          },
          [&](AbortRoom& abort) {
            return with_room(abort.key, [&](PrefillRoom& room) {
              room.on_abort(shared_, now, out);
              return Result<void>();
            });
          },
          [&](ClearRoom& clear) {
            return with_room(clear.key, [&](PrefillRoom& room) {
              room.on_clear(shared_, now, out);
              return Result<void>();
            });
          },
          [&](Observe& observe) {
            return with_room(observe.key, [&](PrefillRoom& room) {
              room.on_observe(now);
              return Result<void>();
            });
          },
          [&](MessageReceived& received) -> Result<RoomKey> {
            on_message(now, received.message, out);
            return RoomKey{};
          },
          [&](SendFailed&) -> Result<RoomKey> {
            out.push_back(Count{Counter::sends_failed});
            return RoomKey{};
          },
          [&](WriteDone& done) -> Result<RoomKey> {
            on_write_done(now, done, out);
            return RoomKey{};
          },
          [&](Tick&) -> Result<RoomKey> {
            on_tick(now, out);
            return RoomKey{};
          },
      },
      event);
}

Result<RoomKey> PrefillNode::on_open(Instant now, RoomId room, Actions& out) {
  const auto found = rooms_.find(room);
  if (found != rooms_.end()) {
    const Result<void> opened = found->second.on_open(now, out);
    if (!opened) return opened.error();
    --announced_count_;
    out.push_back(Count{Counter::rooms_opened});
    settle(room, out);
    return found->second.key();
  }
  const RoomKey key{room, take_life()};
  rooms_.emplace(room, PrefillRoom::open(key, now));
  out.push_back(Count{Counter::rooms_opened});
  out.push_back(StatusChanged{key, KvPoll::bootstrapping, std::nullopt});
  settle(room, out);
  return key;
}

void PrefillNode::on_message(Instant now, const Message& message, Actions& out) {
  const auto wrong_side = [&](const auto&) { out.push_back(Count{Counter::drop_wrong_side}); };
  std::visit(overloaded{
                 [&](const Registration& registration) { on_registration(registration, out); },
                 [&](const Metadata& metadata) { on_metadata(now, metadata, out); },
                 [&](const Abort& abort) { on_abort_message(now, abort, out); },
                 [&](const Status& status) { wrong_side(status); },
                 [&](const ChunkReady& ready) { wrong_side(ready); },
                 [&](const AbortAck& ack) { wrong_side(ack); },
                 [&](const AuxData& aux) { wrong_side(aux); },
                 [&](const StagingRequest& request) { wrong_side(request); },
                 // Staging is not negotiated: this rank asked for nothing and awaits nothing.
                 [&](const StagingReply& reply) { wrong_side(reply); },
                 [&](const Watermark& watermark) { wrong_side(watermark); },
             },
             message);
}

// Registering again is how a restarted or recovered decode rank is trusted again. [spec 4.9]
void PrefillNode::on_registration(const Registration& registration, Actions& out) {
  if (shared_.sessions.size() >= kSessionsMax &&
      !shared_.sessions.contains(registration.session_id)) {
    out.push_back(Count{Counter::drop_limit});
    return;
  }
  Session& session = shared_.sessions[registration.session_id];
  session.registration = std::make_shared<const Registration>(registration);
  session.broken = false;
}

void PrefillNode::on_metadata(Instant now, const Metadata& metadata, Actions& out) {
  auto found = rooms_.find(metadata.room);
  if (found == rooms_.end()) {
    if (announced_count_ >= kAnnouncedRoomsMax) {
      out.push_back(Count{Counter::drop_limit});
      return;
    }
    ++announced_count_;
    const RoomKey key{metadata.room, take_life()};
    found = rooms_.emplace(metadata.room, PrefillRoom::announce(key, now)).first;
  }
  found->second.on_metadata(metadata, shared_, now, out);
  settle(metadata.room, out);
}

void PrefillNode::on_abort_message(Instant now, const Abort& message, Actions& out) {
  const auto found = rooms_.find(message.room);
  if (found != rooms_.end()) {
    found->second.on_abort_message(message, shared_, now, out);
    settle(message.room, out);
    return;
  }
  // A room that is not tracked has no open ticket (a cleared one stays until it drains): it is
  // quiet, and decode may hear so at once. [I21]
  if (!message.return_address || !message.generation) return;
  out.push_back(
      SendMessage{*message.return_address,
                  AbortAck{message.room, shared_.config.unique_rank, message.generation}});
}

void PrefillNode::on_write_done(Instant now, const WriteDone& done, Actions& out) {
  const auto found = shared_.tickets.find(done.ticket);
  if (found == shared_.tickets.end()) {
    out.push_back(Count{Counter::drop_unknown_ticket});
    return;
  }
  const OpenTicket ticket = found->second;
  if (done.outcome != Outcome::unsettled) shared_.tickets.erase(found);
  if (done.session_broken) {
    const auto session = shared_.sessions.find(ticket.session_id);
    if (session != shared_.sessions.end()) session->second.broken = true;
  }
  // A room outlives its tickets: it cannot be forgotten while one is open.
  rooms_.at(ticket.key.room).on_write_done(done, ticket, shared_, now, out);
  settle(ticket.key.room, out);
}

void PrefillNode::on_tick(Instant now, Actions& out) {
  while (const std::optional<RoomId> due = deadlines_.take_due(now)) {
    rooms_.at(*due).on_deadline(shared_, now, out);
    settle(*due, out);
  }
}

void PrefillNode::settle(RoomId room, Actions& out) {
  const auto found = rooms_.find(room);
  if (found->second.is_finished()) {
    const bool announced = !found->second.was_opened();
    if (announced) --announced_count_;
    if (!announced) out.push_back(RoomClosed{found->second.key()});
    deadlines_.clear(room);
    rooms_.erase(found);
    return;
  }
  const std::optional<Instant> due = found->second.deadline(shared_);
  if (due) {
    deadlines_.set(room, *due);
  } else {
    deadlines_.clear(room);
  }
}

}  // namespace baton::core
