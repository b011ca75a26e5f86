// Pairing by layer id or position, and writes whose every bound is checked before the first one.
#include "plan/kv_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <string>

namespace baton::plan {

namespace {

std::string counted(std::string_view what, std::size_t local_count, std::size_t remote_count) {
  return "local has " + std::to_string(local_count) + " " + std::string(what) +
         " entries, peer has " + std::to_string(remote_count);
}

// --- pairing ------------------------------------------------------------------------------------

// Lists that describe the same buffers must be equally long, or absent.
Result<void> check_lists(std::string_view what, std::span<const KvBuffer> local,
                         std::span<const std::uint32_t> local_layer_ids,
                         const RemoteBuffers& remote) {
  const auto fits = [](std::size_t list, std::size_t entries) {
    return list == 0 || list == entries;
  };
  const auto text = [&](const char* side, std::size_t list, const char* of, std::size_t entries) {
    return std::string(side) + " published " + std::to_string(list) + " " + of + " for " +
           std::to_string(entries) + " " + std::string(what) + " entries";
  };
  const std::size_t count = remote.addresses.size();
  if (!fits(local_layer_ids.size(), local.size())) {
    return Error{Errc::invalid_argument,
                 text("local", local_layer_ids.size(), "layer ids", local.size())};
  }
  if (!fits(remote.layer_ids.size(), count)) {
    return Error{Errc::malformed, text("peer", remote.layer_ids.size(), "layer ids", count)};
  }
  if (!fits(remote.item_bytes.size(), count)) {
    return Error{Errc::malformed, text("peer", remote.item_bytes.size(), "item sizes", count)};
  }
  return {};
}

// For each local entry, the position of its partner.
using Partners = std::vector<std::size_t>;

// Ids repeat (K and V of a layer, several tensors of a state), so a used partner is taken out.
Result<Partners> partners_by_layer(std::string_view what,
                                   std::span<const std::uint32_t> local_layer_ids,
                                   std::span<const std::uint32_t> remote_layer_ids) {
  std::multimap<std::uint32_t, std::size_t> unused;
  for (std::size_t index = 0; index < remote_layer_ids.size(); ++index) {
    unused.emplace(remote_layer_ids[index], index);
  }
  Partners partners;
  for (std::size_t index = 0; index < local_layer_ids.size(); ++index) {
    const std::uint32_t id = local_layer_ids[index];
    const auto found = unused.lower_bound(id);
    if (found == unused.end() || found->first != id) {
      return Error{Errc::incompatible,
                   counted(what, local_layer_ids.size(), remote_layer_ids.size()) +
                       ": the peer has no unused entry of layer " + std::to_string(id) +
                       " for local entry " + std::to_string(index)};
    }
    partners.push_back(found->second);
    unused.erase(found);
  }
  return partners;
}

Result<Partners> partners_by_position(std::string_view what, std::size_t local_count,
                                      std::size_t remote_count) {
  if (local_count != remote_count) {
    return Error{Errc::incompatible,
                 counted(what, local_count, remote_count) +
                     ": without layer ids on both sides the counts must be equal"};
  }
  Partners partners(local_count);
  for (std::size_t index = 0; index < local_count; ++index) partners[index] = index;
  return partners;
}

// --- bounds -------------------------------------------------------------------------------------

// How far the runs reach; one look at them serves every pair.
struct Reach {
  std::uint64_t source_end = 0, target_end = 0;  // one past the last item
};

Result<Reach> reach_of(std::span<const PageRun> runs) {
  Reach reach;
  const auto negative = [](const char* side, PageIndex index) {
    return Error{Errc::invalid_argument, std::string(side) + " item " + std::to_string(index) +
                                             " is negative: indices start at 0"};
  };
  for (const PageRun& run : runs) {
    if (run.count == 0) continue;
    if (run.source < 0) return negative("source", run.source);
    if (run.target < 0) return negative("target", run.target);
    reach.source_end =
        std::max(reach.source_end, static_cast<std::uint64_t>(run.source) + run.count);
    reach.target_end =
        std::max(reach.target_end, static_cast<std::uint64_t>(run.target) + run.count);
  }
  return reach;
}

Result<void> check_end(const char* side, std::uint64_t address, std::uint64_t items_count,
                       std::uint64_t item_bytes) {
  const std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  if (items_count == 0 || item_bytes <= (limit - address) / items_count) return {};
  return Error{Errc::invalid_argument,
               std::string(side) + " address " + std::to_string(address) + " + " +
                   std::to_string(items_count) + " items of " + std::to_string(item_bytes) +
                   " bytes exceeds the largest address, " + std::to_string(limit)};
}

Result<void> check_pair(const BufferPair& pair, const Reach& reach) {
  if (reach.source_end > pair.source_items_count) {
    return Error{Errc::invalid_argument,
                 "source item " + std::to_string(reach.source_end - 1) + " does not exist: " +
                     std::to_string(pair.source_items_count) + " items are registered"};
  }
  const Result<void> source =
      check_end("source", pair.source_address, reach.source_end, pair.item_bytes);
  if (!source) return source;
  return check_end("target", pair.target_address, reach.target_end, pair.item_bytes);
}

// --- writes -------------------------------------------------------------------------------------

WriteRun write_of(const BufferPair& pair, const PageRun& run) {
  return {pair.source_address + static_cast<std::uint64_t>(run.source) * pair.item_bytes,
          pair.target_address + static_cast<std::uint64_t>(run.target) * pair.item_bytes,
          run.count * pair.item_bytes};
}

bool continues(const WriteRun& before, const WriteRun& after) {
  return before.source + before.length_bytes == after.source &&
         before.target + before.length_bytes == after.target;
}

}  // namespace

Result<std::vector<BufferPair>> pair_buffers(std::string_view what, std::span<const KvBuffer> local,
                                             std::span<const std::uint32_t> local_layer_ids,
                                             const RemoteBuffers& remote) {
  const Result<void> checked = check_lists(what, local, local_layer_ids, remote);
  if (!checked) return checked.error();
  // A rank without a single local layer has nothing to send to a peer that names its layers.
  const bool by_layer = !remote.layer_ids.empty() && (local.empty() || !local_layer_ids.empty());
  const Result<Partners> partners =
      by_layer ? partners_by_layer(what, local_layer_ids, remote.layer_ids)
               : partners_by_position(what, local.size(), remote.addresses.size());
  if (!partners) return partners.error();
  std::vector<BufferPair> pairs;
  pairs.reserve(local.size());
  for (std::size_t index = 0; index < local.size(); ++index) {
    const KvBuffer& buffer = local[index];
    const std::size_t partner = (*partners)[index];
    const std::string entry = std::string(what) + " entry " + std::to_string(index);
    if (buffer.item_bytes == 0) {
      return Error{Errc::invalid_argument, entry + ": local item_bytes is 0"};
    }
    if (!remote.item_bytes.empty() && remote.item_bytes[partner] != buffer.item_bytes) {
      return Error{Errc::incompatible, entry + ": local items have " +
                                           std::to_string(buffer.item_bytes) +
                                           " bytes, the peer's entry " + std::to_string(partner) +
                                           " has " + std::to_string(remote.item_bytes[partner])};
    }
    pairs.push_back({buffer.address, remote.addresses[partner], buffer.item_bytes,
                     buffer.length_bytes / buffer.item_bytes});
  }
  return pairs;
}

Result<void> append_writes(std::span<const BufferPair> pairs, std::span<const PageRun> runs,
                           std::vector<WriteRun>& out) {
  const Result<Reach> reach = reach_of(runs);
  if (!reach) return reach.error();
  for (const BufferPair& pair : pairs) {
    if (Result<void> checked = check_pair(pair, *reach); !checked) return checked;
  }
  for (const BufferPair& pair : pairs) {
    const std::size_t first = out.size();
    for (const PageRun& run : runs) {
      const WriteRun write = write_of(pair, run);
      if (write.length_bytes == 0) continue;
      if (out.size() > first && continues(out.back(), write)) {
        out.back().length_bytes += write.length_bytes;
      } else {
        out.push_back(write);
      }
    }
  }
  return {};
}

}  // namespace baton::plan
