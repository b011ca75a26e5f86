// The prefill room's transitions: one switch over the phase per event, no default.
#include "core/prefill_room.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "core/failures.hpp"

namespace baton::core {

using Phase = PrefillRoom::Phase;

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::announced: return "announced";
    case Phase::awaiting_metadata: return "awaiting_metadata";
    case Phase::ready: return "ready";
    case Phase::sending: return "sending";
    case Phase::draining: return "draining";
    case Phase::failed_draining: return "failed_draining";
    case Phase::closed_draining: return "closed_draining";
    case Phase::concluded_success: return "concluded_success";
    case Phase::concluded_failed: return "concluded_failed";
  }
  BATON_UNREACHABLE();
}

PrefillRoom PrefillRoom::announce(RoomKey key, Instant now) {
  PrefillRoom room;
  room.key_ = key;
  room.created_at_ = now;
  return room;
}

PrefillRoom PrefillRoom::open(RoomKey key, Instant now) {
  PrefillRoom room = announce(key, now);
  room.opened_ = true;
  room.phase_ = Phase::awaiting_metadata;
  return room;
}

KvPoll PrefillRoom::status() const {
  switch (phase_) {
    case Phase::announced:
    case Phase::awaiting_metadata: return KvPoll::bootstrapping;
    case Phase::ready: return KvPoll::waiting_for_input;
    case Phase::sending:
    case Phase::draining: return KvPoll::transferring;
    case Phase::failed_draining:
    case Phase::closed_draining:
    case Phase::concluded_failed: return KvPoll::failed;
    case Phase::concluded_success: return KvPoll::success;
  }
  BATON_UNREACHABLE();
}

std::optional<Instant> PrefillRoom::deadline(const PrefillShared& shared) const {
  switch (phase_) {
    case Phase::announced:
    case Phase::awaiting_metadata: return created_at_ + shared.config.bootstrap_timeout;
    case Phase::ready:
    case Phase::sending:
    case Phase::draining:
    case Phase::failed_draining:
    case Phase::closed_draining:
    case Phase::concluded_success:
    case Phase::concluded_failed: return std::nullopt;
  }
  BATON_UNREACHABLE();
}

// --- application --------------------------------------------------------------------------------

Result<void> PrefillRoom::on_open(Instant now, Actions& out) {
  switch (phase_) {
    case Phase::announced: break;
    case Phase::awaiting_metadata:
    case Phase::ready:
    case Phase::sending:
    case Phase::draining:
    case Phase::failed_draining:
    case Phase::closed_draining:
    case Phase::concluded_success:
    case Phase::concluded_failed:
      return Error{Errc::already_exists,
                   "room " + std::to_string(key_.room.value) + " is still in use on this rank (" +
                       std::string(to_string(phase_)) + "): clear it and let it drain first"};
  }
  phase_ = Phase::awaiting_metadata;
  opened_ = true;
  created_at_ = now;
  out.push_back(StatusChanged{key_, status(), std::nullopt});
  if (peers_.size() >= peers_required_) become_ready(now, out);
  return {};
}

Result<void> PrefillRoom::on_init(std::uint32_t pages_count, std::uint32_t aux_index) {
  if (pages_count_.has_value()) {
    return Error{Errc::misuse, "init() was already called for room " +
                                   std::to_string(key_.room.value)};
  }
  pages_count_ = pages_count;
  aux_index_ = aux_index;
  return {};
}

// Is this chunk in order, and is it the last one? [spec 2.4] [W15]
Result<bool> PrefillRoom::accept_chunk(const SendChunk& chunk) const {
  const std::string room = "room " + std::to_string(key_.room.value);
  if (!pages_count_) return Error{Errc::misuse, "send() before init() for " + room};
  const std::uint64_t taken = std::uint64_t{pages_taken_} + chunk.pages.size();
  if (taken > *pages_count_) {
    return Error{Errc::misuse, "send() of " + std::to_string(chunk.pages.size()) + " pages for " +
                                   room + ": " + std::to_string(pages_taken_) + " of " +
                                   std::to_string(*pages_count_) + " announced pages are sent"};
  }
  const bool last = taken == *pages_count_;
  if (chunk.last && *chunk.last != last) {
    return Error{Errc::misuse,
                 "send() for " + room + " claims to " + (*chunk.last ? "" : "not ") +
                     "be the last chunk, but it brings the sum to " + std::to_string(taken) +
                     " of " + std::to_string(*pages_count_) + " pages"};
  }
  return last;
}

// Every destination must be known and alive before the first byte of the chunk leaves.
std::optional<Failure> PrefillRoom::check_peers(const SendChunk& chunk, IndexSlice slice, bool last,
                                                const PrefillShared& shared) const {
  for (const Peer& peer : peers_) {
    const Metadata& metadata = peer.metadata;
    if (metadata.is_dummy) continue;
    const auto session = shared.sessions.find(metadata.session_id);
    if (session == shared.sessions.end()) {
      return failures::session_unregistered(key_.room, metadata.session_id);
    }
    if (session->second.broken) return failures::session_dead(metadata.session_id);
    if (slice.stop > metadata.kv_pages.size()) {
      return failures::pages_missing(key_.room, metadata.endpoint, metadata.kv_pages.size(), slice);
    }
    if (!last) continue;
    for (std::size_t index = 0; index < chunk.state.size(); ++index) {
      if (!chunk.state[index]) continue;
      const std::size_t remote =
          index < metadata.state_slots.size() ? metadata.state_slots[index].size() : 0;
      if (remote != chunk.state[index]->size()) {
        return failures::state_missing(key_.room, metadata.endpoint, index,
                                       chunk.state[index]->size(), remote);
      }
    }
  }
  return std::nullopt;
}

Result<void> PrefillRoom::on_send(Instant now, SendChunk chunk, PrefillShared& shared,
                                  Actions& out) {
  switch (phase_) {
    case Phase::ready:
    case Phase::sending: break;
    case Phase::announced:
    case Phase::awaiting_metadata:
      return Error{Errc::misuse, "send() before decode's metadata came for room " +
                                     std::to_string(key_.room.value) +
                                     ": wait until poll() is WaitingForInput"};
    case Phase::draining:
    case Phase::concluded_success:
      return Error{Errc::misuse,
                   "send() after the last chunk of room " + std::to_string(key_.room.value)};
    case Phase::failed_draining:
    case Phase::closed_draining:
    case Phase::concluded_failed: return {};  // the caller learns it from poll(), as upstream
  }
  const Result<bool> last = accept_chunk(chunk);
  if (!last) return last.error();
  const auto count = static_cast<std::uint32_t>(chunk.pages.size());
  const IndexSlice slice{pages_taken_, pages_taken_ + count};
  if (std::optional<Failure> failure = check_peers(chunk, slice, *last, shared)) {
    fail(std::move(*failure), shared, now, out);
    return {};
  }
  const bool carries = !chunk.pages.empty() || !chunk.state.empty();
  if (carries && !first_send_at_) first_send_at_ = now;  // [spec 2.7]
  pages_taken_ = slice.stop;
  metric_.pages += count;
  metric_.chunks += 1;
  const bool first = phase_ == Phase::ready;
  phase_ = *last ? Phase::draining : Phase::sending;
  if (first) out.push_back(StatusChanged{key_, status(), std::nullopt});
  for (const Peer& peer : peers_) {
    if (!peer.metadata.is_dummy) submit_chunk(chunk, slice, *last, peer, shared, out);
  }
  // Only dummies: nothing to write, nobody to tell. [spec 4.10]
  if (*last && tickets_open_ == 0) conclude_success(shared, now, out);
  return {};
}

// KV with every chunk; state and aux only with the last one. The parts fly at the same time:
// nothing is announced before all of them have landed.
void PrefillRoom::submit_chunk(const SendChunk& chunk, IndexSlice slice, bool last,
                               const Peer& peer, PrefillShared& shared, Actions& out) {
  const Metadata& metadata = peer.metadata;
  if (!chunk.pages.empty()) {
    SubmitWrite write;
    write.part = WritePart::kv;
    write.source_pages = chunk.pages;
    write.target_pages.assign(metadata.kv_pages.begin() + slice.start,
                              metadata.kv_pages.begin() + slice.stop);
    submit(std::move(write), peer, shared, out);
  }
  if (!last) return;
  SubmitWrite state;
  state.part = WritePart::state;
  for (std::size_t index = 0; index < chunk.state.size(); ++index) {
    if (!chunk.state[index] || chunk.state[index]->empty()) continue;
    state.state.push_back({static_cast<std::uint32_t>(index), *chunk.state[index],
                           metadata.state_slots[index]});
  }
  if (!state.state.empty()) submit(std::move(state), peer, shared, out);
  SubmitWrite aux;
  aux.part = WritePart::aux;
  aux.source_aux = aux_index_;
  aux.target_aux = metadata.aux_index.value_or(0);
  submit(std::move(aux), peer, shared, out);
}

void PrefillRoom::submit(SubmitWrite write, const Peer& peer, PrefillShared& shared,
                         Actions& out) {
  const Metadata& metadata = peer.metadata;
  write.ticket = shared.next_ticket;
  ++shared.next_ticket.value;
  write.key = key_;
  write.target = shared.sessions.at(metadata.session_id).registration;
  shared.tickets.emplace(write.ticket,
                         OpenTicket{key_, metadata.session_id, metadata.endpoint, write.part});
  if (tickets_open_ == 0) out.push_back(QuietChanged{key_, false});
  ++tickets_open_;
  out.push_back(std::move(write));
}

void PrefillRoom::on_abort(const PrefillShared& shared, Instant now, Actions& out) {
  fail(failures::aborted_here(), shared, now, out);
}

void PrefillRoom::on_clear(const PrefillShared& shared, Instant now, Actions& out) {
  fail(failures::aborted_here(), shared, now, out);  // only a live room can still fail
  switch (phase_) {
    case Phase::concluded_success:
    case Phase::concluded_failed: finished_ = true; break;
    case Phase::failed_draining: phase_ = Phase::closed_draining; break;
    case Phase::closed_draining: break;
    case Phase::announced:
    case Phase::awaiting_metadata:
    case Phase::ready:
    case Phase::sending:
    case Phase::draining: BATON_UNREACHABLE();
  }
}

void PrefillRoom::on_observe(Instant now) {
  if (phase_ != Phase::concluded_success || metric_.transfer_latency || !first_send_at_) return;
  metric_.transfer_latency = now - *first_send_at_;
}

// --- wire ---------------------------------------------------------------------------------------

void PrefillRoom::on_metadata(const Metadata& metadata, PrefillShared& shared, Instant now,
                              Actions& out) {
  const auto same = [&](const Peer& peer) {
    return peer.metadata.session_id == metadata.session_id;
  };
  const auto known = std::find_if(peers_.begin(), peers_.end(), same);
  switch (phase_) {
    case Phase::announced:
    case Phase::awaiting_metadata: break;
    case Phase::failed_draining:
    case Phase::closed_draining:
      if (known != peers_.end()) {
        // Its pages may still be written: it is told after the drain, like everybody.
        *known = Peer{metadata};
        out.push_back(Count{Counter::metadata_late});
        return;
      }
      [[fallthrough]];
    case Phase::concluded_failed:
      // A rank that comes late to a failed room must hear of it, or it waits for its time-out.
      out.push_back(Count{Counter::metadata_late});
      tell(Peer{metadata}, shared, out);
      return;
    case Phase::ready:
    case Phase::sending:
    case Phase::draining:
    case Phase::concluded_success: out.push_back(Count{Counter::metadata_late}); return;
  }
  if (!metadata.is_dummy && !shared.sessions.contains(metadata.session_id)) {
    out.push_back(Count{Counter::metadata_unregistered});
  }
  if (known != peers_.end()) {
    known->metadata = metadata;  // said again: the newest destination counts
  } else if (peers_.size() < kPeersMax) {
    peers_.push_back({metadata});
  } else {
    out.push_back(Count{Counter::drop_limit});
    return;
  }
  peers_required_ = metadata.required_dst_info_num;
  if (phase_ == Phase::awaiting_metadata && peers_.size() >= peers_required_) {
    become_ready(now, out);
  }
}

void PrefillRoom::become_ready(Instant now, Actions& out) {
  phase_ = Phase::ready;
  metric_.bootstrap_wait = now - created_at_;
  std::uint64_t prefix_tokens = 0;
  for (const Peer& peer : peers_) {
    if (!peer.metadata.decode_prefix_tokens) continue;
    prefix_tokens = *peer.metadata.decode_prefix_tokens;
    break;
  }
  out.push_back(PrefixKnown{key_, prefix_tokens});
  out.push_back(StatusChanged{key_, status(), std::nullopt});
}

// Failed first, then the promise to acknowledge: were it the other way round, a chunk could still
// be accepted after the acknowledgement and write into pages that decode has released. [I18]
void PrefillRoom::on_abort_message(const Abort& message, const PrefillShared& shared, Instant now,
                                   Actions& out) {
  for (Peer& peer : peers_) {
    if (message.return_address && peer.metadata.endpoint == *message.return_address) {
      peer.has_aborted = true;
    }
  }
  switch (phase_) {
    case Phase::announced:
      finished_ = true;  // nobody here would ever tell the other ranks [I8]
      [[fallthrough]];
    case Phase::awaiting_metadata:
    case Phase::ready:
    case Phase::sending:
    case Phase::draining: fail(failures::aborted_by_decode(), shared, now, out); break;
    case Phase::failed_draining:
    case Phase::closed_draining:
    case Phase::concluded_success:
    case Phase::concluded_failed: break;
  }
  if (message.return_address && message.generation) {
    promise_drain(*message.return_address, *message.generation, out);
  }
  if (tickets_open_ == 0) acknowledge_drain(shared, out);
}

// --- data plane ---------------------------------------------------------------------------------

void PrefillRoom::on_write_done(const WriteDone& done, const OpenTicket& ticket,
                                const PrefillShared& shared, Instant now, Actions& out) {
  BATON_ASSERT(tickets_open_ > 0);  // the engine completes every ticket exactly once [E1]
  switch (done.outcome) {
    case Outcome::ok:
      metric_.bytes += done.bytes;
      metric_.last_write_done = now;
      break;
    case Outcome::failed:
    case Outcome::unsettled:
    case Outcome::settled:  // has failed the room before, as `unsettled`; it never means success
      switch (ticket.part) {
        case WritePart::kv:
          fail(failures::kv_write_failed(key_.room, ticket.peer, done.reason), shared, now, out);
          break;
        case WritePart::state:
          fail(failures::state_write_failed(key_.room, ticket.peer, done.reason), shared, now, out);
          break;
        case WritePart::aux:
          fail(failures::aux_write_failed(key_.room, done.reason), shared, now, out);
          break;
      }
      break;
  }
  if (done.outcome == Outcome::unsettled) return;  // a byte may still land: the ticket stays open
  --tickets_open_;
  if (tickets_open_ == 0) become_quiet(shared, now, out);
}

// The last open ticket is gone: whatever was put off until now may happen.
void PrefillRoom::become_quiet(const PrefillShared& shared, Instant now, Actions& out) {
  out.push_back(QuietChanged{key_, true});
  switch (phase_) {
    case Phase::ready:
    case Phase::sending: break;
    case Phase::draining: conclude_success(shared, now, out); break;
    case Phase::failed_draining: conclude_failed(shared, out); break;
    case Phase::closed_draining:
      conclude_failed(shared, out);
      finished_ = true;
      break;
    case Phase::announced:
    case Phase::awaiting_metadata:
    case Phase::concluded_success:
    case Phase::concluded_failed: BATON_UNREACHABLE();
  }
}

// --- endings ------------------------------------------------------------------------------------

void PrefillRoom::fail(Failure failure, const PrefillShared& shared, Instant now, Actions& out) {
  switch (phase_) {
    case Phase::announced:
    case Phase::awaiting_metadata:
    case Phase::ready:
    case Phase::sending:
    case Phase::draining: break;
    case Phase::failed_draining:
    case Phase::closed_draining:
    case Phase::concluded_success:
    case Phase::concluded_failed: return;  // the first cause wins [I7]; an end stays an end
  }
  failure_ = std::move(failure);
  metric_.concluded_at = now;
  phase_ = Phase::failed_draining;
  out.push_back(Count{counter_of(*failure_)});
  out.push_back(StatusChanged{key_, status(), failure_});
  // While a write may still land, decode must not hear of the failure: it would take its pages for
  // free. The drain below the last ticket tells it.
  if (tickets_open_ == 0) conclude_failed(shared, out);
}

void PrefillRoom::conclude_success(const PrefillShared& shared, Instant now, Actions& out) {
  BATON_ASSERT(tickets_open_ == 0);  // [H13]
  BATON_ASSERT(pages_taken_ == pages_count_);
  phase_ = Phase::concluded_success;
  metric_.concluded_at = now;
  for (const Peer& peer : peers_) tell(peer, shared, out);
  out.push_back(Count{Counter::rooms_succeeded});
  out.push_back(StatusChanged{key_, status(), std::nullopt});
  acknowledge_drain(shared, out);
}

// Status before acknowledgement: both travel in order to the same endpoint. [I8]
void PrefillRoom::conclude_failed(const PrefillShared& shared, Actions& out) {
  phase_ = Phase::concluded_failed;
  for (const Peer& peer : peers_) tell(peer, shared, out);
  acknowledge_drain(shared, out);
}

void PrefillRoom::tell(const Peer& peer, const PrefillShared& shared, Actions& out) const {
  if (peer.metadata.is_dummy || peer.has_aborted) return;
  Status status_message;
  status_message.room = key_.room;
  status_message.prefill_rank = shared.config.unique_rank;
  status_message.status = static_cast<std::uint32_t>(status());
  if (failure_) status_message.reason = failure_->text;
  out.push_back(SendMessage{peer.metadata.endpoint, std::move(status_message)});
}

// One promise an endpoint; the newest generation wins. [I22]
void PrefillRoom::promise_drain(const Endpoint& endpoint, std::uint64_t generation, Actions& out) {
  const auto same = [&](const DrainTarget& target) { return target.endpoint == endpoint; };
  const auto known = std::find_if(drain_targets_.begin(), drain_targets_.end(), same);
  if (known != drain_targets_.end()) {
    known->generation = std::max(known->generation, generation);
  } else if (drain_targets_.size() < kPeersMax) {
    drain_targets_.push_back({endpoint, generation});
  } else {
    out.push_back(Count{Counter::drop_limit});
  }
}

void PrefillRoom::acknowledge_drain(const PrefillShared& shared, Actions& out) {
  for (const DrainTarget& target : std::exchange(drain_targets_, {})) {
    out.push_back(SendMessage{target.endpoint, AbortAck{key_.room, shared.config.unique_rank,
                                                        target.generation}});
  }
}

void PrefillRoom::on_deadline(const PrefillShared& shared, Instant now, Actions& out) {
  const Duration elapsed = now - created_at_;
  switch (phase_) {
    case Phase::announced:
      fail(failures::never_opened(key_.room, elapsed), shared, now, out);
      finished_ = true;
      break;
    case Phase::awaiting_metadata:
      fail(failures::bootstrap_timeout(key_.room, elapsed), shared, now, out);
      break;
    case Phase::ready:
    case Phase::sending:
    case Phase::draining:
    case Phase::failed_draining:
    case Phase::closed_draining:
    case Phase::concluded_success:
    case Phase::concluded_failed: break;  // no deadline in these phases
  }
}

}  // namespace baton::core
