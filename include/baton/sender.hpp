// KvSender: the prefill half of one room.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "baton/result.hpp"
#include "baton/types.hpp"

namespace baton {

namespace runtime {
class PrefillRuntime;
struct RoomSlot;
}  // namespace runtime

// One send() call's worth. `state` has one entry per state component of KvArgs (nullopt: nothing
// for this component) and travels only with the last chunk.
struct Chunk {
  std::span<const PageIndex> pages;
  std::vector<std::optional<std::vector<std::int32_t>>> state;
  // The caller's own idea of "this is the last one"; checked against the page count if given.
  std::optional<bool> last;
};

// Order: open -> (poll until waiting_for_input) -> init -> fill the aux row -> send ... send ->
// (poll until terminal) -> clear. Calls never block. Destroying the handle aborts a live room and
// forgets it; `quiesced` on the pages then happens in the background.
class KvSender {
 public:
  KvSender(KvSender&&) noexcept;
  KvSender& operator=(KvSender&&) noexcept;
  ~KvSender();

  RoomId room() const;
  // One atomic load. Terminal answers are final and survive clear().
  KvPoll poll() const;

  // Tokens that decode already has; known from waiting_for_input on, 0 before. Page-aligned.
  std::uint64_t prefix_tokens() const;

  // How many pages will be sent in all, and the local aux row. pages_count =
  // ceil((prompt_tokens - prefix_tokens) / page_size). 0 is legal: one empty send() ends the room.
  Result<void> init(std::uint32_t pages_count, std::uint32_t aux_index);

  // Queues a chunk. The pages, and with the last chunk (the one that completes pages_count) the aux
  // row and the state slots, must hold their final bytes and stay untouched until quiesced().
  // misuse: before init, before decode's metadata, after the last chunk, more pages than announced.
  Result<void> send(const Chunk& chunk);

  // Fails the room at once on this side and tells decode. Writes in flight still finish.
  void abort();
  // Forgets the room (its number may be used again once quiesced). Idempotent.
  void clear();

  // True when no write of this room is in flight: the source pages may be reused.
  bool quiesced() const;
  // Set once poll() is failed.
  std::optional<Failure> failure() const;
  TransferMetric metric() const;

 private:
  friend class PrefillManager;
  KvSender(std::shared_ptr<runtime::PrefillRuntime> runtime,
           std::shared_ptr<runtime::RoomSlot> slot);
  std::shared_ptr<runtime::PrefillRuntime> runtime_;
  std::shared_ptr<runtime::RoomSlot> slot_;
};

}  // namespace baton
