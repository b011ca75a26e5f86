// Construction order of a rank: check, register memory, bind.
#include "runtime/setup.hpp"

#include <utility>

#include "net/local_address.hpp"
#include "runtime/memory.hpp"

namespace baton::runtime {

namespace {

Result<void> check_topology(const Topology& topology) {
  const auto check = [](const char* name, std::uint32_t size, std::uint32_t rank) -> Result<void> {
    if (size != 0 && rank < size) return {};
    return Error{Errc::invalid_argument, "Topology: " + std::string(name) + "_rank " +
                                             std::to_string(rank) + " is not below " + name +
                                             "_size " + std::to_string(size)};
  };
  const Result<void> checks[] = {
      check("attn_tp", topology.attn_tp_size, topology.attn_tp_rank),
      check("attn_cp", topology.attn_cp_size, topology.attn_cp_rank),
      check("attn_dp", topology.attn_dp_size, topology.attn_dp_rank),
      check("pp", topology.pp_size, topology.pp_rank),
      check("system_dp", topology.system_dp_size, topology.system_dp_rank)};
  for (const Result<void>& result : checks) {
    if (!result) return result;
  }
  return {};
}

}  // namespace

Result<RankParts> set_up_rank(const NodeConfig& config, std::unique_ptr<TransferEngine> engine,
                              wire::Side side) {
  if (engine == nullptr) return Error{Errc::invalid_argument, "no transfer engine was given"};
  if (Result<void> checked = check_topology(config.topology); !checked) return checked.error();
  if (Result<void> checked = check_kv_args(config.kv); !checked) return checked.error();
  RankParts parts;
  parts.endpoint.host = config.host;
  if (config.host.empty()) {
    Result<std::string> chosen = net::local_address(net::read_address_environment());
    if (!chosen) return chosen.error();
    parts.endpoint.host = *chosen;
  }
  Result<std::unique_ptr<ControlChannel>> channel =
      ControlChannel::create(parts.endpoint.host, side, wire::mooncake());
  if (!channel) return channel.error();
  parts.endpoint.port = (*channel)->port();
  parts.channel = std::move(*channel);
  Result<std::vector<RegionId>> regions = register_memory(*engine, config.kv);
  if (!regions) return regions.error();
  parts.regions = std::move(*regions);
  Result<std::string> descriptor = engine->local_descriptor();
  if (!descriptor) return descriptor.error();
  parts.session_id = *descriptor;
  parts.engine = std::move(engine);
  return parts;
}

}  // namespace baton::runtime
