// Starts and stops a prefill rank.
#include "runtime/prefill_runtime.hpp"

#include <utility>

#include "bootstrap/client.hpp"
#include "core/topology.hpp"
#include "runtime/setup.hpp"

namespace baton::runtime {

namespace {

Result<void> register_with_bootstrap(const PrefillConfig& config, const Endpoint& endpoint) {
  RankRegistration registration;
  registration.topology = config.topology;
  registration.endpoint = endpoint;
  registration.page_size = config.kv.page_size;
  if (!config.kv.kv_cache_dtype.empty()) registration.kv_cache_dtype = config.kv.kv_cache_dtype;
  return bootstrap::BootstrapClient().register_rank(config.bootstrap_address, registration);
}

}  // namespace

Result<std::shared_ptr<PrefillRuntime>> PrefillRuntime::create(
    PrefillConfig config, std::unique_ptr<TransferEngine> engine) {
  Result<RankParts> parts = set_up_rank(config, std::move(engine), wire::Side::prefill);
  if (!parts) return parts.error();
  core::PrefillConfig node;
  node.unique_rank = core::unique_prefill_rank(config.topology);
  node.bootstrap_timeout = config.bootstrap_timeout;
  const Endpoint endpoint = parts->endpoint;
  std::shared_ptr<PrefillRuntime> runtime(
      new PrefillRuntime(core::PrefillNode(node), config.kv, std::move(parts->engine),
                         std::move(parts->regions), std::move(parts->channel)));
  runtime->start();
  // Registered last: whoever finds this rank may write to it at once.
  if (Result<void> registered = register_with_bootstrap(config, endpoint); !registered) {
    return registered.error();
  }
  return runtime;
}

void PrefillRuntime::start() {
  TransferQueue::Handlers handlers;
  handlers.collect = [this](std::vector<core::SubmitWrite>& into) { runner_.take_writes(into); };
  handlers.on_done = [this](core::WriteDone done) { apply(std::move(done)); };
  transfers_ = std::make_unique<TransferQueue>(kv_, *engine_, std::move(handlers));
  start_channel();
}

void PrefillRuntime::carry_out(const Wake& wake) {
  if (wake.hub) channel_->wake();
  if (wake.transfer) transfers_->wake();
}

void PrefillRuntime::shutdown() {
  if (stopped_.exchange(true)) return;
  close_rooms();
  transfers_->stop();  // before the channel: what settles now must still be told
  channel_->stop();
  unregister_memory(*engine_, regions_);
}

}  // namespace baton::runtime
