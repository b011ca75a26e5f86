// Pairing of buffers and expansion of page runs into writes, for ranks of equal geometry.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "baton/engine.hpp"
#include "baton/result.hpp"
#include "baton/types.hpp"
#include "plan/geometry.hpp"
#include "plan/page_runs.hpp"

namespace baton::plan {

// What a peer published about one group of buffers (KV, aux, or one state component).
struct RemoteBuffers {
  std::span<const std::uint64_t> addresses;
  std::span<const std::uint64_t> item_bytes;  // one per address, or empty: not known
  std::span<const std::uint32_t> layer_ids;   // one per address, or empty: positional
};

// Pairs every local buffer with one of the peer's. If both sides publish layer ids: with the peer's
// next unused buffer of the same id, and the peer may have more. Otherwise by position, and the
// counts must agree. `what` names the group in errors ("KV", "aux", "state mamba").
// Errors: incompatible (the two sides do not fit), malformed (the peer contradicts itself),
// invalid_argument (the local side does). [spec 4.11.1, 4.11.2, 4.12, 4.13.2]
Result<std::vector<BufferPair>> pair_buffers(std::string_view what, std::span<const KvBuffer> local,
                                             std::span<const std::uint32_t> local_layer_ids,
                                             const RemoteBuffers& remote);

// Appends one write per pair and run. A run that continues the one before it joins its write; two
// pairs never share one, because they may lie in different regions, and no engine writes across a
// region's end. Aux rows and state slots are runs with count 1.
// On an error (an index is negative or beyond the pair's items, an address overflows) nothing is
// appended. The target's upper end is not known here: the engine checks it (E9). [spec 4.11.0]
Result<void> append_writes(std::span<const BufferPair> pairs, std::span<const PageRun> runs,
                           std::vector<WriteRun>& out);

}  // namespace baton::plan
