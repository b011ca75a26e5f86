// The vocabulary of Baton: ids, room status, failures, memory description, topology, metrics.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/result.hpp"

namespace baton {

// An integer that cannot be mixed up with another integer.
template <class Tag, class Rep>
struct StrongId {
  Rep value{};
  friend auto operator<=>(const StrongId&, const StrongId&) = default;
};

// The request id that prefill and decode share; chosen by the router, below 2^63. It may be used
// again by a later request, so inside Baton a room is always a RoomId *and* a Life.
using RoomId = StrongId<struct RoomIdTag, std::uint64_t>;
// Which use of a room number: counts up per manager, never repeats.
using Life = StrongId<struct LifeTag, std::uint64_t>;
// One accepted submission to a transfer engine.
using Ticket = StrongId<struct TicketTag, std::uint64_t>;

// Index of a page in a KV pool (the wire carries int32). A page holds `page_size` tokens.
using PageIndex = std::int32_t;

// Time is monotonic everywhere; no call reads a wall clock.
using Clock = std::chrono::steady_clock;
using Instant = Clock::time_point;
using Duration = Clock::duration;

// What poll() answers. The numbers travel on the wire and are ordered on purpose: a MIN over ranks
// gives "Failed if any rank failed". [spec 1.1]
enum class KvPoll : std::uint8_t {
  failed = 0,             // terminal: failure() tells why
  bootstrapping = 1,      // prefill: decode's metadata is missing; decode: peers not resolved yet
  waiting_for_input = 2,  // prefill: may send; decode: resolved, before or after publish()
  transferring = 3,       // chunks are on their way
  success = 4,            // terminal: every byte is at its place
};

constexpr bool is_terminal(KvPoll status) {
  return status == KvPoll::failed || status == KvPoll::success;
}

std::string_view to_string(KvPoll status);

// Stable codes of room failures; the text says the rest.
enum class FailureCode : std::uint8_t {
  aborted_here,       // abort() on this side
  aborted_by_peer,    // the other side sent ABORT
  bootstrap_timeout,  // prefill: decode's metadata did not come in time
  waiting_timeout,    // decode: not every prefill rank reported in time
  peer_lost,          // the peer is dead, or its session is known to be broken
  write_failed,       // a KV, state or aux write failed
  reported_by_peer,   // prefill reported Failed
  unresolved,         // bootstrap information could not be had
  incompatible,       // the two sides' layouts do not fit
  send_failed,        // a control message could not be sent
  bad_metadata,       // what the peer asked for cannot be written (page out of range, ...)
  unknown,            // no reason is known on this rank
};

std::string_view to_string(FailureCode code);

// Why a room failed. The first cause wins and is kept for the life of the handle.
struct Failure {
  FailureCode code = FailureCode::unknown;
  std::string text;
  bool is_from_another_rank = false;  // this rank recorded no cause of its own

  friend bool operator==(const Failure&, const Failure&) = default;
};

// Where memory lives. Only host memory is written by the engines of this version.
enum class MemoryKind : std::uint8_t { host, device };

// A piece of this process's memory that an engine may read from or that peers may write into.
// `shared_fd` (a memfd or shm descriptor, borrowed, -1 if none) lets a peer on the same host map
// it: `address` is then byte `shared_offset_bytes` of that file.
struct Region {
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
  MemoryKind kind = MemoryKind::host;
  int shared_fd = -1;
  std::uint64_t shared_offset_bytes = 0;

  friend bool operator==(const Region&, const Region&) = default;
};

// One registered tensor. `item_bytes` is the size of one page (KV), of one slot (state) or of one
// request's row (aux).
struct KvBuffer {
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t item_bytes = 0;

  friend bool operator==(const KvBuffer&, const KvBuffer&) = default;
};

// Kinds of per-request state beside KV. The strings are stable. [spec 1.2]
enum class StateKind : std::uint8_t {
  mamba,
  qsa_pending,
  qsa_compressed,
  swa,
  dsa,
  dsa_tail,
  minimax_index_k,
  minimax_dense_kv,
  swa_ring,
  c128_state,
  block_scale,
  block_scale_swa,
};

std::string_view to_string(StateKind kind);
std::optional<StateKind> parse_state_kind(std::string_view text);

// One state component: tensors that are indexed by the same list of slots.
struct StateComponent {
  StateKind kind = StateKind::mamba;
  std::vector<KvBuffer> tensors;
  std::vector<std::uint32_t> layer_ids;       // one per tensor, or empty: positional
  std::vector<std::uint32_t> dim_per_tensor;  // size of the TP-sliced axis here, or empty

  friend bool operator==(const StateComponent&, const StateComponent&) = default;
};

// The memory of one rank, as described to peers (`KvArgs` of the reference). [spec 1.5]
// Order of `kv` for MHA: K of every local layer, then V of every local layer.
struct KvArgs {
  std::uint32_t page_size = 0;              // tokens per page; must equal the peer's
  std::string kv_cache_dtype;               // compared with the peer's; empty: not compared
  std::vector<KvBuffer> kv;                 // item_bytes = bytes of one page
  std::vector<std::uint32_t> kv_layer_ids;  // one per entry of `kv`, or empty: positional
  std::vector<KvBuffer> aux;                // item_bytes = bytes of one request's slot
  std::vector<StateComponent> state;
  std::uint32_t kv_head_num = 0;        // heads on this rank (MHA, GQA)
  std::uint32_t total_kv_head_num = 0;  // heads in the model
  // Allocations that contain all the buffers above; empty: every buffer is registered by itself.
  std::vector<Region> memory;

  friend bool operator==(const KvArgs&, const KvArgs&) = default;
};

// Where this rank stands in its deployment. This version hands over between equal ranks.
struct Topology {
  std::uint32_t attn_tp_size = 1, attn_tp_rank = 0;
  std::uint32_t attn_cp_size = 1, attn_cp_rank = 0;
  std::uint32_t attn_dp_size = 1, attn_dp_rank = 0;
  std::uint32_t pp_size = 1, pp_rank = 0;
  std::uint32_t system_dp_size = 1, system_dp_rank = 0;

  friend bool operator==(const Topology&, const Topology&) = default;
};

// A half-open range of positions, in pages, inside a request's suffix.
struct IndexSlice {
  std::uint32_t start = 0, stop = 0;

  friend bool operator==(const IndexSlice&, const IndexSlice&) = default;
};

// What one hand-off cost, seen from one side. A duration stays empty until it is known.
struct TransferMetric {
  std::uint64_t bytes = 0;  // bytes this rank wrote (prefill)
  std::uint32_t pages = 0, chunks = 0;
  // First send() (decode: publish()) to the poll() that saw Success. [spec 2.7]
  std::optional<Duration> transfer_latency;
  std::optional<Duration> bootstrap_wait;  // open to metadata (prefill) or to publish (decode)
  std::optional<Instant> last_write_done;  // prefill: when the last write had landed
  std::optional<Instant> concluded_at;     // when the room became terminal on this side

  friend bool operator==(const TransferMetric&, const TransferMetric&) = default;
};

}  // namespace baton

template <class Tag, class Rep>
struct std::hash<baton::StrongId<Tag, Rep>> {
  std::size_t operator()(const baton::StrongId<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
