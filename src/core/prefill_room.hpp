// PrefillRoom: one request on one prefill rank, from decode's metadata to the proof of quiet.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "baton/result.hpp"
#include "core/actions.hpp"
#include "core/events.hpp"

namespace baton::core {

struct PrefillConfig {
  std::uint32_t unique_rank = 0;  // [spec 4.6]
  Duration bootstrap_timeout = std::chrono::seconds(300);

  friend bool operator==(const PrefillConfig&, const PrefillConfig&) = default;
};

// A decode rank that registered. `broken` after a failed write, until it registers again.
struct Session {
  std::shared_ptr<const Registration> registration;  // never null
  bool broken = false;

  // By content: a copy of the node that sees the same registration stays equal.
  friend bool operator==(const Session& left, const Session& right) {
    return left.broken == right.broken && *left.registration == *right.registration;
  }
};

// Who a ticket belongs to.
struct OpenTicket {
  RoomKey key;
  std::string session_id;
  Endpoint peer;
  WritePart part = WritePart::kv;

  friend bool operator==(const OpenTicket&, const OpenTicket&) = default;
};

// What rooms share: the node owns it and lends it to the room that handles an event.
struct PrefillShared {
  PrefillConfig config;
  std::map<std::string, Session> sessions;
  std::map<Ticket, OpenTicket> tickets;
  Ticket next_ticket{1};

  friend bool operator==(const PrefillShared&, const PrefillShared&) = default;
};

// Threads: none; the node's owner serialises. Every method appends to `out` in the order in which
// things must happen.
class PrefillRoom {
 public:
  // Decode ranks of one room, and endpoints that await its drain; beyond this they are dropped.
  static constexpr std::size_t kPeersMax = 1024;

  enum class Phase : std::uint8_t {
    announced,          // metadata came before open(): waits for the application, not for ever
    awaiting_metadata,  // opened; waits for every decode rank's metadata
    ready,              // every destination is known: init() and the first send() may come
    sending,            // some chunks taken, the last one not yet
    draining,           // the last chunk is posted: waits for open tickets
    failed_draining,    // failed, but a write may still land: waits for open tickets
    closed_draining,    // cleared by the application, but a write may still land
    concluded_success,  // every byte has landed and decode was told
    concluded_failed,   // failed, quiet, and decode was told
  };

  static PrefillRoom announce(RoomKey key, Instant now);
  static PrefillRoom open(RoomKey key, Instant now);

  Phase phase() const { return phase_; }
  RoomKey key() const { return key_; }
  KvPoll status() const;
  const std::optional<Failure>& failure() const { return failure_; }
  const TransferMetric& metric() const { return metric_; }
  // When this room gives up waiting, if it does.
  std::optional<Instant> deadline(const PrefillShared& shared) const;
  // Did the application ever open it?
  bool was_opened() const { return opened_; }
  // Nothing refers to the room any more: the node forgets it.
  bool is_finished() const { return finished_; }

  Result<void> on_open(Instant now, Actions& out);
  Result<void> on_init(std::uint32_t pages_count, std::uint32_t aux_index);
  Result<void> on_send(Instant now, SendChunk chunk, PrefillShared& shared, Actions& out);
  void on_metadata(const Metadata& metadata, PrefillShared& shared, Instant now, Actions& out);
  void on_abort_message(const Abort& message, const PrefillShared& shared, Instant now,
                        Actions& out);
  void on_abort(const PrefillShared& shared, Instant now, Actions& out);
  void on_clear(const PrefillShared& shared, Instant now, Actions& out);
  void on_observe(Instant now);
  void on_write_done(const WriteDone& done, const OpenTicket& ticket, const PrefillShared& shared,
                     Instant now, Actions& out);
  void on_deadline(const PrefillShared& shared, Instant now, Actions& out);

  friend bool operator==(const PrefillRoom&, const PrefillRoom&) = default;

 private:
  // One decode rank of this room.
  struct Peer {
    Metadata metadata;
    bool has_aborted = false;  // it knows that the room failed, and may have forgotten it

    friend bool operator==(const Peer&, const Peer&) = default;
  };
  // Who awaits the proof that no write of this room can land any more.
  struct DrainTarget {
    Endpoint endpoint;
    std::uint64_t generation = 0;

    friend bool operator==(const DrainTarget&, const DrainTarget&) = default;
  };

  Result<bool> accept_chunk(const SendChunk& chunk) const;
  std::optional<Failure> check_peers(const SendChunk& chunk, IndexSlice slice, bool last,
                                     const PrefillShared& shared) const;
  void submit_chunk(const SendChunk& chunk, IndexSlice slice, bool last, const Peer& peer,
                    PrefillShared& shared, Actions& out);
  void submit(SubmitWrite write, const Peer& peer, PrefillShared& shared, Actions& out);
  void become_ready(Instant now, Actions& out);
  void fail(Failure failure, const PrefillShared& shared, Instant now, Actions& out);
  void become_quiet(const PrefillShared& shared, Instant now, Actions& out);
  void conclude_success(const PrefillShared& shared, Instant now, Actions& out);
  void conclude_failed(const PrefillShared& shared, Actions& out);
  void tell(const Peer& peer, const PrefillShared& shared, Actions& out) const;
  void promise_drain(const Endpoint& endpoint, std::uint64_t generation, Actions& out);
  void acknowledge_drain(const PrefillShared& shared, Actions& out);

  RoomKey key_;
  Phase phase_ = Phase::announced;
  bool opened_ = false;
  bool finished_ = false;
  Instant created_at_;
  std::optional<Instant> first_send_at_;
  std::vector<Peer> peers_;
  std::uint32_t peers_required_ = 0;
  std::optional<std::uint32_t> pages_count_;  // from init()
  std::uint32_t aux_index_ = 0;
  std::uint32_t pages_taken_ = 0;
  std::uint32_t tickets_open_ = 0;
  std::vector<DrainTarget> drain_targets_;
  std::optional<Failure> failure_;
  TransferMetric metric_;
};

std::string_view to_string(PrefillRoom::Phase phase);

}  // namespace baton::core
