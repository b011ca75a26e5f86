// FaultyEngine: wraps any engine and makes it misbehave, by seed or by script.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "baton/engine.hpp"
#include "engine/tamper.hpp"

namespace baton::engine {

// How one ticket ends.
enum class Fault : std::uint8_t {
  none,
  fail_before,  // nothing is written, `failed`
  fail_partly,  // some runs are written, `failed`
  fail_after,   // everything is written, `failed`
  stall,        // nothing happens until release_stalled()
  unsettled,    // `unsettled` first; the bytes land later, then `settled`
};

// Everything is drawn from `seed`. Chances are in thousandths and are tried in this order.
struct FaultSettings {
  std::uint64_t seed = 1;
  std::uint32_t busy_permille = 0;  // submit() answers busy
  std::uint32_t fail_before_permille = 0;
  std::uint32_t fail_partly_permille = 0;
  std::uint32_t fail_after_permille = 0;
  std::uint32_t stall_permille = 0;
  std::uint32_t unsettled_permille = 0;
  // A ticket waits this long before it is written, and again before it completes. Different delays
  // reorder tickets.
  Duration delay_min{}, delay_max{};
  // From `unsettled` to the write, and from an early completion to its last write.
  Duration late_by = std::chrono::milliseconds(50);
  bool shuffles_completions = false;  // among those of one progress() call
  TamperMode tamper = TamperMode::none;
  std::uint32_t tamper_permille = 1000;  // of the batches that can be tampered with
};

// Keeps E1, E3 to E8 (unless a tamper mode breaks E2 on purpose). Time comes from `now`, so a test
// may drive it by hand. Same threads as TransferEngine.
class FaultyEngine final : public TransferEngine {
 public:
  FaultyEngine(std::unique_ptr<TransferEngine> inner, const FaultSettings& settings,
               std::function<Instant()> now);
  ~FaultyEngine() override;

  // Worker thread: faults for the next accepted tickets, before any that are drawn.
  void script(Fault fault) { scripted_.push_back(fault); }
  void set_settings(const FaultSettings& settings) { settings_ = settings; }
  // Stalled tickets go on as if nothing had happened.
  void release_stalled();
  std::size_t stalled_count() const;
  // The peer is lost: its open tickets fail, connect() gives a fresh peer.
  void drop_peer(EnginePeer peer);
  std::size_t tampered_count() const { return tampered_count_; }
  TransferEngine& inner() { return *inner_; }

  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  Result<RegionId> register_region(const Region& region) override;
  Result<void> unregister_region(RegionId region) override;
  Result<std::string> local_descriptor() const override { return inner_->local_descriptor(); }
  Result<EnginePeer> connect(std::string_view descriptor) override;
  void disconnect(EnginePeer peer) override;
  Result<Admission> submit(Ticket ticket, EnginePeer peer, WriteBatch batch) override;
  void cancel(Ticket ticket) override;
  std::size_t progress(std::vector<Completion>& out) override;
  int event_descriptor() const override { return -1; }

 private:
  enum class Stage : std::uint8_t {
    delayed,       // awaits its time to be written
    stalled,       // awaits release_stalled()
    writing,       // the inner engine has it
    held,          // the inner engine is done; awaits its time to complete
    late,          // completed early; its last write awaits its time
    late_writing,  // the inner engine has the last write
    over,          // awaits nothing
  };
  struct Work {
    Ticket ticket, inner_ticket;
    EnginePeer peer;
    WriteBatch batch;
    std::optional<TamperedBatch> tampered;
    std::vector<WriteRun> partial;  // fail_partly
    Fault fault = Fault::none;
    Stage stage = Stage::delayed;
    Instant due{};
    Completion ending;
    bool is_told_unsettled = false;
    bool is_cancelled = false;
  };

  bool draw(std::uint32_t permille) { return random_() % 1000 < permille; }
  Fault draw_fault();
  Duration draw_delay();
  void prepare(Work& work);
  void start(Work& work);
  WriteBatch runs_of(const Work& work) const;
  void advance(Work& work, std::vector<Completion>& out);
  void on_inner(const Completion& completion);
  void complete(Work& work, std::vector<Completion>& out);
  bool is_lost(EnginePeer peer) const;
  void fail(Work& work, Error error, bool peer_lost);

  struct Route {
    EnginePeer inner;
    std::string descriptor;
    bool is_lost = false;
  };

  std::unique_ptr<TransferEngine> inner_;
  FaultSettings settings_;
  std::function<Instant()> now_;
  std::mt19937_64 random_;
  std::deque<Fault> scripted_;
  std::list<Work> works_;
  std::vector<Completion> inner_completions_;
  std::size_t tampered_count_ = 0;
  std::uint64_t next_ticket_ = 1;
  mutable std::mutex mutex_;  // guards the routes
  std::unordered_map<EnginePeer, Route> routes_;
  std::uint32_t next_peer_ = 1;
};

}  // namespace baton::engine
