// DecodeRoom: one request on one decode rank, from resolving its peers to the release of its pages.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "baton/result.hpp"
#include "core/actions.hpp"
#include "core/events.hpp"
#include "core/prefill_directory.hpp"

namespace baton::core {

struct DecodeConfig {
  DecodeShape shape;
  Registration registration;          // what every prefill rank is told once
  std::uint32_t state_components = 0;
  Duration waiting_timeout = std::chrono::seconds(300);
  Duration release_timeout = std::chrono::seconds(30);
  Duration resolve_timeout = std::chrono::seconds(15);
  Duration resolve_retry_interval = std::chrono::milliseconds(200);

  friend bool operator==(const DecodeConfig&, const DecodeConfig&) = default;
};

// Threads: none; the node's owner serialises. Every method appends to `out` in the order in which
// things must happen.
class DecodeRoom {
 public:
  enum class Phase : std::uint8_t {
    resolving,          // asks the bootstrap server who the prefill ranks are
    bootstrapped,       // they are known and know us: publish() may come
    published,          // they may write: waits for every rank's report
    holding,            // failed after publish(): a write may still land, waits for proof or time
    quarantined,        // the same, but the application has forgotten the room
    concluded_success,  // every rank has reported Success
    concluded_failed,   // failed, and nobody can write any more
  };

  static DecodeRoom open(RoomKey key, const OpenReceiver& open, Instant now);

  Phase phase() const { return phase_; }
  RoomKey key() const { return key_; }
  KvPoll status() const;
  const std::string& bootstrap_address() const { return bootstrap_address_; }
  std::optional<std::uint32_t> dp_rank() const { return dp_rank_; }
  const std::vector<PrefillPeer>& peers() const { return resolution_.peers; }
  const std::optional<Failure>& failure() const { return failure_; }
  const TransferMetric& metric() const { return metric_; }
  std::optional<Instant> deadline(const DecodeConfig& config) const;
  bool is_finished() const { return finished_; }

  void on_resolved(Resolution resolution, Instant now, Actions& out);
  Result<void> on_publish(Publish publish, const DecodeConfig& config, Instant now, Actions& out);
  void on_status(const Status& message, const DecodeConfig& config, std::uint64_t& generations,
                 Instant now, Actions& out);
  void on_abort_ack(const AbortAck& message, Actions& out);
  void on_clear(const DecodeConfig& config, std::uint64_t& generations, Instant now, Actions& out);
  void on_observe(Instant now);
  // The first cause wins; a room that has ended stays as it is.
  void fail(Failure failure, const DecodeConfig& config, std::uint64_t& generations, Instant now,
            Actions& out);
  // The deadline of `holding` and `quarantined`: gives the pages back without proof.
  void on_release_timeout(Actions& out);
  Duration waited(Instant now) const { return now - phase_since_; }
  std::size_t reports_count() const { return reports_.size(); }
  std::uint32_t reports_required() const { return resolution_.required_prefill_response_num; }

  friend bool operator==(const DecodeRoom&, const DecodeRoom&) = default;

 private:
  void conclude_success(Instant now, Actions& out);
  void release(Actions& out);

  RoomKey key_;
  Phase phase_ = Phase::resolving;
  bool finished_ = false;
  std::string bootstrap_address_;
  std::optional<std::uint32_t> dp_rank_;
  Instant opened_at_;
  Instant phase_since_;  // when the phase that has a deadline began
  Resolution resolution_;
  std::set<std::uint32_t> reports_;  // prefill ranks that reported Success
  std::set<std::uint32_t> acks_;     // prefill ranks that proved to be quiet
  std::uint64_t abort_generation_ = 0;
  std::optional<Failure> failure_;
  TransferMetric metric_;
};

std::string_view to_string(DecodeRoom::Phase phase);

}  // namespace baton::core
