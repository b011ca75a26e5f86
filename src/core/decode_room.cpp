// The decode room's transitions: one switch over the phase per event, no default.
#include "core/decode_room.hpp"

#include <utility>

#include "base/assert.hpp"
#include "core/failures.hpp"

namespace baton::core {

using Phase = DecodeRoom::Phase;

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::resolving: return "resolving";
    case Phase::bootstrapped: return "bootstrapped";
    case Phase::published: return "published";
    case Phase::holding: return "holding";
    case Phase::quarantined: return "quarantined";
    case Phase::concluded_success: return "concluded_success";
    case Phase::concluded_failed: return "concluded_failed";
  }
  BATON_UNREACHABLE();
}

DecodeRoom DecodeRoom::open(RoomKey key, const OpenReceiver& open, Instant now) {
  DecodeRoom room;
  room.key_ = key;
  room.bootstrap_address_ = open.bootstrap_address;
  room.dp_rank_ = open.dp_rank;
  room.opened_at_ = now;
  room.phase_since_ = now;
  return room;
}

KvPoll DecodeRoom::status() const {
  switch (phase_) {
    case Phase::resolving: return KvPoll::bootstrapping;
    case Phase::bootstrapped:
    case Phase::published: return KvPoll::waiting_for_input;
    case Phase::holding:
    case Phase::quarantined:
    case Phase::concluded_failed: return KvPoll::failed;
    case Phase::concluded_success: return KvPoll::success;
  }
  BATON_UNREACHABLE();
}

std::optional<Instant> DecodeRoom::deadline(const DecodeConfig& config) const {
  switch (phase_) {
    case Phase::resolving: return phase_since_ + config.resolve_timeout;
    case Phase::published: return phase_since_ + config.waiting_timeout;
    case Phase::holding:
    case Phase::quarantined: return phase_since_ + config.release_timeout;
    case Phase::bootstrapped:
    case Phase::concluded_success:
    case Phase::concluded_failed: return std::nullopt;
  }
  BATON_UNREACHABLE();
}

void DecodeRoom::on_resolved(Resolution resolution, Instant now, Actions& out) {
  BATON_ASSERT(phase_ == Phase::resolving);
  resolution_ = std::move(resolution);
  phase_ = Phase::bootstrapped;
  phase_since_ = now;
  out.push_back(StatusChanged{key_, status(), std::nullopt});
}

Result<void> DecodeRoom::on_publish(Publish publish, const DecodeConfig& config, Instant now,
                                    Actions& out) {
  const std::string room = "room " + std::to_string(key_.room.value);
  switch (phase_) {
    case Phase::bootstrapped: break;
    case Phase::resolving:
      return Error{Errc::misuse, "publish() before the prefill ranks of " + room +
                                     " are known: wait until poll() is WaitingForInput"};
    case Phase::published:
    case Phase::concluded_success:
      return Error{Errc::misuse, "publish() was already called for " + room};
    case Phase::holding:
    case Phase::quarantined:
    case Phase::concluded_failed: return {};  // the caller learns it from poll(), as upstream
  }
  if (config.shape.page_size != 0 && publish.prefix_tokens % config.shape.page_size != 0) {
    return Error{Errc::invalid_argument,
                 "publish() for " + room + ": prefix_tokens " +
                     std::to_string(publish.prefix_tokens) + " is not a multiple of page_size " +
                     std::to_string(config.shape.page_size)};
  }
  if (!publish.state.empty() && publish.state.size() != config.state_components) {
    return Error{Errc::invalid_argument,
                 "publish() for " + room + ": " + std::to_string(publish.state.size()) +
                     " state lists, but this rank registered " +
                     std::to_string(config.state_components) + " state components"};
  }
  phase_ = Phase::published;
  phase_since_ = now;
  metric_.bootstrap_wait = now - opened_at_;
  metric_.pages = static_cast<std::uint32_t>(publish.pages.size());
  out.push_back(QuietChanged{key_, false});
  Metadata metadata;
  metadata.room = key_.room;
  metadata.endpoint = config.registration.endpoint;
  metadata.session_id = config.registration.session_id;
  metadata.required_dst_info_num = resolution_.required_dst_info_num;
  metadata.decode_prefix_tokens = publish.prefix_tokens;
  Metadata dummy = metadata;
  dummy.is_dummy = true;
  metadata.kv_pages = std::move(publish.pages);
  metadata.aux_index = publish.aux_index;
  metadata.state_slots = std::move(publish.state);
  for (const PrefillPeer& peer : resolution_.peers) {
    out.push_back(SendMessage{peer.endpoint, peer.is_dummy ? dummy : metadata});
  }
  return {};
}

void DecodeRoom::on_status(const Status& message, const DecodeConfig& config,
                           std::uint64_t& generations, Instant now, Actions& out) {
  switch (phase_) {
    case Phase::published: break;
    case Phase::resolving:
    case Phase::bootstrapped:
      // No rank of this life knows the room yet: the word is of an earlier use of its number.
      out.push_back(Count{Counter::drop_unknown_room});
      return;
    case Phase::holding:
    case Phase::quarantined:
    case Phase::concluded_success:
    case Phase::concluded_failed: out.push_back(Count{Counter::drop_duplicate}); return;
  }
  if (message.status == static_cast<std::uint32_t>(KvPoll::failed)) {
    fail(failures::reported_by_prefill(message.reason), config, generations, now, out);
    return;
  }
  if (message.status != static_cast<std::uint32_t>(KvPoll::success)) {
    out.push_back(Count{Counter::drop_not_terminal});
    return;
  }
  if (!reports_.insert(message.prefill_rank).second) {  // [I11]
    out.push_back(Count{Counter::drop_duplicate});
    return;
  }
  if (reports_.size() >= resolution_.required_prefill_response_num) conclude_success(now, out);
}

void DecodeRoom::conclude_success(Instant now, Actions& out) {
  phase_ = Phase::concluded_success;
  metric_.concluded_at = now;
  out.push_back(Count{Counter::rooms_succeeded});
  out.push_back(StatusChanged{key_, status(), std::nullopt});
  out.push_back(QuietChanged{key_, true});
}

void DecodeRoom::fail(Failure failure, const DecodeConfig& config, std::uint64_t& generations,
                      Instant now, Actions& out) {
  const bool was_published = phase_ == Phase::published;
  switch (phase_) {
    case Phase::resolving:
    case Phase::bootstrapped:
    case Phase::published: break;
    case Phase::holding:
    case Phase::quarantined:
    case Phase::concluded_success:
    case Phase::concluded_failed: return;
  }
  failure_ = std::move(failure);
  metric_.concluded_at = now;
  phase_ = was_published ? Phase::holding : Phase::concluded_failed;
  phase_since_ = now;
  out.push_back(Count{counter_of(*failure_)});
  out.push_back(StatusChanged{key_, status(), failure_});
  // Armed before the first ABORT leaves: a rank may acknowledge at once. [I25] A room that never
  // published owns nothing that could be written; its ranks only need to know.
  Abort abort{key_.room, config.registration.endpoint, std::nullopt};
  if (was_published) abort.generation = abort_generation_ = ++generations;
  for (const PrefillPeer& peer : resolution_.peers) {
    out.push_back(SendMessage{peer.endpoint, abort});
  }
}

void DecodeRoom::on_abort_ack(const AbortAck& message, Actions& out) {
  switch (phase_) {
    case Phase::holding:
    case Phase::quarantined: break;
    case Phase::resolving:
    case Phase::bootstrapped:
    case Phase::published:
    case Phase::concluded_success:
    case Phase::concluded_failed: out.push_back(Count{Counter::drop_stale_generation}); return;
  }
  if (!message.prefill_rank || message.generation != abort_generation_) {
    out.push_back(Count{Counter::drop_stale_generation});
    return;
  }
  acks_.insert(*message.prefill_rank);
  if (acks_.size() >= resolution_.peers.size()) release(out);
}

void DecodeRoom::on_release_timeout(Actions& out) {
  out.push_back(Count{Counter::released_by_timeout});
  release(out);
}

void DecodeRoom::release(Actions& out) {
  BATON_ASSERT(phase_ == Phase::holding || phase_ == Phase::quarantined);
  finished_ = phase_ == Phase::quarantined;
  phase_ = Phase::concluded_failed;
  out.push_back(QuietChanged{key_, true});
}

void DecodeRoom::on_clear(const DecodeConfig& config, std::uint64_t& generations, Instant now,
                          Actions& out) {
  fail(failures::aborted_here(), config, generations, now, out);  // only a live room can still fail
  switch (phase_) {
    case Phase::concluded_success:
    case Phase::concluded_failed: finished_ = true; break;
    case Phase::holding: phase_ = Phase::quarantined; break;
    case Phase::quarantined: break;
    case Phase::resolving:
    case Phase::bootstrapped:
    case Phase::published: BATON_UNREACHABLE();
  }
}

void DecodeRoom::on_observe(Instant now) {
  if (phase_ != Phase::concluded_success || metric_.transfer_latency) return;
  metric_.transfer_latency = now - phase_since_;
}

}  // namespace baton::core
