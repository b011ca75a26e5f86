// setup: what both kinds of rank need before their node can start.
#pragma once

#include <memory>
#include <vector>

#include "base/address.hpp"
#include "baton/engine.hpp"
#include "baton/manager.hpp"
#include "runtime/control_channel.hpp"

namespace baton::runtime {

struct RankParts {
  std::unique_ptr<TransferEngine> engine;
  std::vector<RegionId> regions;
  std::unique_ptr<ControlChannel> channel;  // bound, not started
  Endpoint endpoint;                        // where peers reach the channel
  std::string session_id;
};

// Checks the configuration, registers memory, binds the control socket. Each error says which part
// of the configuration to change.
Result<RankParts> set_up_rank(const NodeConfig& config, std::unique_ptr<TransferEngine> engine,
                              wire::Side side);

}  // namespace baton::runtime
