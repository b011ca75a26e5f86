// The one data-plane interface: what every transfer engine must promise, and nothing else.
//
// Contract (tested for every engine by tests/engine/conformance_test.cpp):
//  E1 Exactly one completion per accepted ticket; none for a refused one.
//  E2 Outcome::ok: every byte is visible at the target.
//  E3 Outcome::failed: quiesced. No byte of this batch will land any more.
//  E4 An engine that cannot prove E3 answers Outcome::unsettled, keeps watching, and completes the
//     same ticket later, once, with Outcome::settled. Until then a byte may still land.
//  E5 Admission::busy is back-pressure: nothing was taken, submit again after progress().
//  E6 The batch and its source memory must stay valid and unchanged from submit() to the completion
//     (with E4: to Outcome::settled); they may be reused after it.
//  E7 No call-backs. Completions appear only in progress(), in the calling thread.
//  E8 A lost peer completes every open ticket.
//  E9 No byte is written outside the regions that the peer registered; such a batch fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/result.hpp"
#include "baton/types.hpp"

namespace baton {

// Copy `length_bytes` from `source` (an address here) to `target` (an address in the peer).
struct WriteRun {
  std::uint64_t source = 0;
  std::uint64_t target = 0;
  std::uint64_t length_bytes = 0;

  friend bool operator==(const WriteRun&, const WriteRun&) = default;
};

// Runs are independent of each other; their order means nothing. An empty batch completes `ok`.
using WriteBatch = std::span<const WriteRun>;

// An engine's name for a connected peer.
using EnginePeer = StrongId<struct EnginePeerTag, std::uint32_t>;
// An engine's name for a registered region.
using RegionId = StrongId<struct RegionIdTag, std::uint32_t>;

enum class Admission : std::uint8_t { accepted, busy };

enum class Outcome : std::uint8_t { ok, failed, unsettled, settled };

std::string_view to_string(Outcome outcome);

// The end (or, for `unsettled`, the last but one word) of one ticket.
struct Completion {
  Ticket ticket;
  Outcome outcome = Outcome::ok;
  Error error;             // says why, unless ok
  bool peer_lost = false;  // the failure means that the whole peer is gone, not just this batch

  friend bool operator==(const Completion&, const Completion&) = default;
};

// Facts about an engine, asked once.
struct Capabilities {
  std::string name;                  // "local", "mooncake_tcp", ...
  std::size_t batch_runs_max = 0;    // most runs in one batch; 0: no limit
  std::size_t tickets_open_max = 0;  // beyond this submit() answers busy; 0: no limit
  bool device_memory = false;        // can it read and write MemoryKind::device
};

// Threads: register_region, unregister_region, connect, disconnect and local_descriptor may be
// called from any thread. submit, cancel and progress belong to one thread at a time (the transfer
// worker). No call blocks on a peer: connecting happens in the background, and a peer that cannot
// be reached shows as failed completions.
class TransferEngine {
 public:
  virtual ~TransferEngine() = default;

  virtual const Capabilities& capabilities() const = 0;

  // The region must stay mapped until unregister_region succeeds. Overlapping regions are allowed;
  // the same region twice is refused (already_exists).
  virtual Result<RegionId> register_region(const Region& region) = 0;
  // Refused (misuse) for an id that is not registered. After it returns, no peer can write there.
  virtual Result<void> unregister_region(RegionId region) = 0;

  // What a peer needs to reach this engine; travels as the session id of the registration message,
  // so it has no NUL and ends in ":<decimal>" (the reference sums that number to choose a queue).
  virtual Result<std::string> local_descriptor() const = 0;
  // Cheap and idempotent: the same descriptor gives the same peer while it lives. After the peer
  // was lost it gives a fresh connection. Malformed descriptors are refused (malformed).
  virtual Result<EnginePeer> connect(std::string_view descriptor) = 0;
  // Open tickets to the peer complete as failed (or unsettled, E4). Unknown ids are ignored.
  virtual void disconnect(EnginePeer peer) = 0;

  // Never blocks. An error means refused: no completion will come.
  virtual Result<Admission> submit(Ticket ticket, EnginePeer peer, WriteBatch batch) = 0;
  // A wish: the completion still comes, and may still be `ok`.
  virtual void cancel(Ticket ticket) = 0;
  // Moves bytes and appends completions. Returns how many were appended. Does not block.
  virtual std::size_t progress(std::vector<Completion>& out) = 0;
  // Becomes readable when progress() may have something to do; the engine clears it itself.
  // -1: the engine must be polled. Only meaningful while tickets are open.
  virtual int event_descriptor() const = 0;
};

// Options that every engine understands; unknown ones are ignored by engines without that part.
struct EngineOptions {
  std::string host = "127.0.0.1";          // the address that peers reach this process at
  std::uint16_t port = 0;                  // rpc port to listen on; 0: any
  std::uint32_t connections_per_peer = 4;  // parallel streams (mooncake_tcp)
};

// Makes an engine by name: "local" or "mooncake_tcp". An unknown name is an error that lists the
// known ones.
Result<std::unique_ptr<TransferEngine>> make_engine(std::string_view name,
                                                    const EngineOptions& options);
std::vector<std::string> engine_names();

}  // namespace baton
