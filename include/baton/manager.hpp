// PrefillManager and DecodeManager: one per rank; everything else hangs off them.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "baton/engine.hpp"
#include "baton/receiver.hpp"
#include "baton/result.hpp"
#include "baton/sender.hpp"
#include "baton/types.hpp"

namespace baton {

namespace runtime {
class PrefillRuntime;
class DecodeRuntime;
}  // namespace runtime

// What both kinds of rank need. All durations are monotonic.
struct NodeConfig {
  // The address that peers reach this rank at. Empty: chosen as the reference does [spec 8.2].
  std::string host;
  Topology topology;
  KvArgs kv;
};

struct PrefillConfig : NodeConfig {
  // "host:port" of the bootstrap server that this rank registers with.
  std::string bootstrap_address;
  // How long a room may wait for decode's metadata.
  Duration bootstrap_timeout = std::chrono::seconds(300);
};

struct DecodeConfig : NodeConfig {
  // How long a published room may wait for every prefill rank's report.
  Duration waiting_timeout = std::chrono::seconds(300);
  // How long the pages of a failed room are held when prefill does not prove that it is quiet.
  Duration release_timeout = std::chrono::seconds(30);
  // How long a bootstrap server that answers "not ready" or not at all is asked again.
  Duration resolve_timeout = std::chrono::seconds(15);
};

// Counters since start, by name; for logs, tests and dashboards.
struct CounterValue {
  std::string name;
  std::uint64_t value = 0;
};

// Threads: create, open and the handles may be used from any thread; one handle from one thread at
// a time. Destroying a manager fails its live rooms, waits for writes in flight to settle, and
// joins its threads; handles that outlive it answer Failed.
class PrefillManager {
 public:
  // Binds the control socket, registers the memory and then the rank. Blocks while it registers
  // (5 attempts, about 15 s at worst) and fails if nobody answers.
  static Result<std::unique_ptr<PrefillManager>> create(PrefillConfig config,
                                                        std::unique_ptr<TransferEngine> engine);
  ~PrefillManager();

  // Opens the prefill half of a room; may come before or after decode's metadata. Never blocks.
  // Fails with already_exists while an earlier use of the room is alive on this rank.
  Result<KvSender> open(RoomId room);

  // One status byte (KvPoll) a sender, without a lock: `out` must be as long as `senders`.
  static void poll(std::span<const KvSender> senders, std::span<KvPoll> out);

  // Readable when some room's status changed since clear_event(); for those who sleep.
  int event_descriptor() const;
  void clear_event();

  std::vector<CounterValue> counters() const;

 private:
  explicit PrefillManager(std::shared_ptr<runtime::PrefillRuntime> runtime);
  std::shared_ptr<runtime::PrefillRuntime> runtime_;
};

class DecodeManager {
 public:
  static Result<std::unique_ptr<DecodeManager>> create(DecodeConfig config,
                                                       std::unique_ptr<TransferEngine> engine);
  ~DecodeManager();

  // Opens the decode half of a room and starts to resolve its prefill ranks in the background.
  // `bootstrap_address` is "host:port" (IPv6 in brackets).
  Result<KvReceiver> open(RoomId room, std::string bootstrap_address,
                          std::optional<std::uint32_t> dp_rank = std::nullopt);

  static void poll(std::span<const KvReceiver> receivers, std::span<KvPoll> out);

  int event_descriptor() const;
  void clear_event();

  std::vector<CounterValue> counters() const;

 private:
  explicit DecodeManager(std::shared_ptr<runtime::DecodeRuntime> runtime);
  std::shared_ptr<runtime::DecodeRuntime> runtime_;
};

}  // namespace baton
