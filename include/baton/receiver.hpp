// KvReceiver: the decode half of one room.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "baton/result.hpp"
#include "baton/types.hpp"

namespace baton {

namespace runtime {
class DecodeRuntime;
struct RoomSlot;
}  // namespace runtime

// Where the request's KV shall go. `pages` covers the part after the prefix that decode already
// has (`prefix_tokens`, page-aligned); it may be empty (full prefix hit).
struct Destination {
  std::span<const PageIndex> pages;
  std::uint32_t aux_index = 0;
  std::vector<std::vector<std::int32_t>> state;  // one list per state component, or empty
  std::uint64_t prefix_tokens = 0;
};

// Order: open -> (poll until waiting_for_input) -> allocate -> publish -> (poll until terminal) ->
// clear. Calls never block. Two questions, two answers: poll() ends the *request*, quiesced() frees
// the *memory*.
class KvReceiver {
 public:
  KvReceiver(KvReceiver&&) noexcept;
  KvReceiver& operator=(KvReceiver&&) noexcept;
  ~KvReceiver();

  RoomId room() const;
  // One atomic load. Terminal answers are final and survive clear().
  KvPoll poll() const;

  // Tells every prefill rank where to write. Allowed once, in waiting_for_input.
  Result<void> publish(const Destination& destination);

  // Fails the room at once on this side and tells prefill (ABORT). The pages stay in use until
  // quiesced().
  void abort();
  // Forgets the room. Idempotent. Does not free anything that may still be written.
  void clear();

  // True when no prefill rank can write into the published pages any more: every rank reported
  // Success, or acknowledged the abort, or `release_timeout` passed, or nothing was published.
  bool quiesced() const;
  // Set once poll() is failed.
  std::optional<Failure> failure() const;
  TransferMetric metric() const;

 private:
  friend class DecodeManager;
  KvReceiver(std::shared_ptr<runtime::DecodeRuntime> runtime,
             std::shared_ptr<runtime::RoomSlot> slot);
  std::shared_ptr<runtime::DecodeRuntime> runtime_;
  std::shared_ptr<runtime::RoomSlot> slot_;
};

}  // namespace baton
