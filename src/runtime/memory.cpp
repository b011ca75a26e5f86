// Validation and registration of one rank's memory.
#include "runtime/memory.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace baton::runtime {

namespace {

Error bad(const std::string& what) { return {Errc::invalid_argument, "KvArgs: " + what}; }

bool contains(const Region& region, const KvBuffer& buffer) {
  return buffer.address >= region.address &&
         buffer.address - region.address <= region.length_bytes &&
         buffer.length_bytes <= region.length_bytes - (buffer.address - region.address);
}

Result<void> check_buffers(const std::string& name, std::span<const KvBuffer> buffers,
                           std::span<const Region> memory) {
  for (std::size_t index = 0; index < buffers.size(); ++index) {
    const KvBuffer& buffer = buffers[index];
    const std::string entry = name + "[" + std::to_string(index) + "]";
    if (buffer.address == 0) return bad(entry + " has address 0");
    if (buffer.item_bytes == 0) return bad(entry + " has item_bytes 0");
    if (buffer.length_bytes == 0 || buffer.length_bytes % buffer.item_bytes != 0) {
      return bad(entry + " has " + std::to_string(buffer.length_bytes) +
                 " bytes, not a whole number of items of " + std::to_string(buffer.item_bytes));
    }
    if (buffer.length_bytes > std::numeric_limits<std::uint64_t>::max() - buffer.address) {
      return bad(entry + " runs beyond the end of the address space");
    }
    const auto holds = [&](const Region& region) { return contains(region, buffer); };
    if (!memory.empty() && std::none_of(memory.begin(), memory.end(), holds)) {
      return bad(entry + " lies outside every region of `memory`");
    }
  }
  return {};
}

std::vector<Region> regions_of(const KvArgs& kv) {
  if (!kv.memory.empty()) return kv.memory;
  std::vector<Region> regions;
  const auto add = [&](const std::vector<KvBuffer>& buffers) {
    for (const KvBuffer& buffer : buffers) {
      const Region region{buffer.address, buffer.length_bytes, MemoryKind::host, -1, 0};
      if (std::find(regions.begin(), regions.end(), region) == regions.end()) {
        regions.push_back(region);
      }
    }
  };
  add(kv.kv);
  add(kv.aux);
  for (const StateComponent& component : kv.state) add(component.tensors);
  return regions;
}

}  // namespace

Result<void> check_kv_args(const KvArgs& kv) {
  if (kv.page_size == 0) return bad("page_size is 0");
  if (!kv.kv_layer_ids.empty() && kv.kv_layer_ids.size() != kv.kv.size()) {
    return bad(std::to_string(kv.kv_layer_ids.size()) + " kv_layer_ids for " +
               std::to_string(kv.kv.size()) + " KV entries");
  }
  if (Result<void> checked = check_buffers("kv", kv.kv, kv.memory); !checked) return checked;
  if (Result<void> checked = check_buffers("aux", kv.aux, kv.memory); !checked) return checked;
  for (const StateComponent& component : kv.state) {
    const std::string name = "state " + std::string(to_string(component.kind));
    if (Result<void> checked = check_buffers(name, component.tensors, kv.memory); !checked) {
      return checked;
    }
    for (const KvBuffer& tensor : component.tensors) {
      if (tensor.item_bytes > std::numeric_limits<std::uint32_t>::max()) {
        return bad(name + " has slots of " + std::to_string(tensor.item_bytes) +
                   " bytes; the wire carries less than 4 GiB");
      }
    }
    if (!component.layer_ids.empty() && component.layer_ids.size() != component.tensors.size()) {
      return bad(name + " has " + std::to_string(component.layer_ids.size()) + " layer ids for " +
                 std::to_string(component.tensors.size()) + " tensors");
    }
  }
  return {};
}

Result<std::vector<RegionId>> register_memory(TransferEngine& engine, const KvArgs& kv) {
  std::vector<RegionId> registered;
  for (const Region& region : regions_of(kv)) {
    Result<RegionId> id = engine.register_region(region);
    if (!id) {
      unregister_memory(engine, registered);
      return id.error();
    }
    registered.push_back(*id);
  }
  return registered;
}

void unregister_memory(TransferEngine& engine, const std::vector<RegionId>& regions) {
  // A refusal cannot be acted upon here; it would mean that the engine lost our region already.
  for (const RegionId region : regions) (void)engine.unregister_region(region);
}

Registration describe(const KvArgs& kv, const Topology& topology, const Endpoint& endpoint,
                      const std::string& session_id) {
  Registration registration;
  registration.endpoint = endpoint;
  registration.session_id = session_id;
  for (const KvBuffer& buffer : kv.kv) {
    registration.kv_ptrs.push_back(buffer.address);
    registration.kv_item_bytes_all.push_back(buffer.item_bytes);
  }
  for (const KvBuffer& buffer : kv.aux) registration.aux_ptrs.push_back(buffer.address);
  for (const StateComponent& component : kv.state) {
    auto& addresses = registration.state_ptrs.emplace_back();
    auto& sizes = registration.state_item_bytes.emplace_back();
    for (const KvBuffer& buffer : component.tensors) {
      addresses.push_back(buffer.address);
      sizes.push_back(static_cast<std::uint32_t>(buffer.item_bytes));
    }
    registration.state_dims.push_back(component.dim_per_tensor);
    registration.state_layer_ids.push_back(component.layer_ids);
  }
  registration.engine_rank = topology.attn_tp_rank;
  registration.attn_tp_size = topology.attn_tp_size;
  registration.kv_item_bytes = kv.kv.empty() ? 0 : kv.kv.front().item_bytes;
  registration.kv_layer_ids = kv.kv_layer_ids;
  return registration;
}

}  // namespace baton::runtime
