// Starts and stops a decode rank, and carries its look-ups to the bootstrap server.
#include "runtime/decode_runtime.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "runtime/setup.hpp"

namespace baton::runtime {

namespace {

// How long shutdown() gives prefill to prove that it is quiet. After that the engine's
// unregister_region is the fence.
constexpr Duration kQuietTimeout = std::chrono::seconds(2);
constexpr Duration kQuietPause = std::chrono::milliseconds(1);

}  // namespace

Result<std::shared_ptr<DecodeRuntime>> DecodeRuntime::create(
    DecodeConfig config, std::unique_ptr<TransferEngine> engine) {
  Result<RankParts> parts = set_up_rank(config, std::move(engine), wire::Side::decode);
  if (!parts) return parts.error();
  core::DecodeConfig node;
  node.shape = {config.topology, config.kv.page_size, config.kv.kv_cache_dtype};
  node.registration = describe(config.kv, config.topology, parts->endpoint, parts->session_id);
  node.state_components = static_cast<std::uint32_t>(config.kv.state.size());
  node.waiting_timeout = config.waiting_timeout;
  node.release_timeout = config.release_timeout;
  node.resolve_timeout = config.resolve_timeout;
  std::shared_ptr<DecodeRuntime> runtime(
      new DecodeRuntime(core::DecodeNode(std::move(node)), config.kv, std::move(parts->engine),
                        std::move(parts->regions), std::move(parts->channel)));
  runtime->client_ = std::make_unique<bootstrap::BootstrapClient>();
  runtime->start_channel();
  return runtime;
}

void DecodeRuntime::carry_out(const Wake& wake) {
  if (wake.hub) channel_->wake();
  if (wake.requests) start_requests();
}

void DecodeRuntime::start_requests() {
  std::vector<Request> requests;
  runner_.take_requests(requests);
  const std::lock_guard lock(client_mutex_);
  if (client_ == nullptr) return;  // shutting down: nobody waits for the answers
  for (const Request& request : requests) {
    std::visit([this](const auto& one) { start_request(one); }, request);
  }
}

void DecodeRuntime::start_request(const core::RequestTopology& request) {
  const std::string address = request.bootstrap_address;
  client_->fetch_topology(address, [this, address](Result<PrefillInfo> info) {
    apply(core::TopologyReply{address, std::move(info)});
  });
}

void DecodeRuntime::start_request(const core::RequestRoute& request) {
  const RouteKey route = request.route;
  client_->fetch_route(route, [this, route](Result<Endpoint> endpoint) {
    apply(core::RouteReply{route, std::move(endpoint)});
  });
}

bool DecodeRuntime::wait_until_quiet(Duration limit) {
  const Instant give_up = now() + limit;
  while (!runner_.slots().empty()) {  // a closed room keeps its slot until its pages are quiet
    if (now() >= give_up) return false;
    std::this_thread::sleep_for(kQuietPause);
  }
  return true;
}

void DecodeRuntime::shutdown() {
  if (stopped_.exchange(true)) return;
  close_rooms();
  wait_until_quiet(kQuietTimeout);
  std::unique_ptr<bootstrap::BootstrapClient> client;
  {
    const std::lock_guard lock(client_mutex_);
    client = std::move(client_);
  }
  client.reset();  // outside the mutex: its call-backs may start requests
  channel_->stop();
  unregister_memory(*engine_, regions_);
}

}  // namespace baton::runtime
