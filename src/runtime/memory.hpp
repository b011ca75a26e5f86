// memory: checks a KvArgs, registers its memory with an engine, and describes it to peers.
#pragma once

#include <string>
#include <vector>

#include "base/address.hpp"
#include "baton/engine.hpp"
#include "baton/result.hpp"
#include "baton/types.hpp"
#include "core/messages.hpp"

namespace baton::runtime {

// invalid_argument, naming the entry: zero sizes, lengths that are no whole number of items, lists
// that do not match, buffers outside the regions of `memory`.
Result<void> check_kv_args(const KvArgs& kv);

// Registers KvArgs::memory, or every distinct buffer; undoes what it did if one fails.
Result<std::vector<RegionId>> register_memory(TransferEngine& engine, const KvArgs& kv);
void unregister_memory(TransferEngine& engine, const std::vector<RegionId>& regions);

Registration describe(const KvArgs& kv, const Topology& topology, const Endpoint& endpoint,
                      const std::string& session_id);

}  // namespace baton::runtime
