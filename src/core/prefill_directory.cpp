// Asks for topology and routes once for all rooms that wait for them.
#include "core/prefill_directory.hpp"

#include <utility>

#include "core/failures.hpp"

namespace baton::core {

using Peers = std::vector<PrefillPeer>;

Result<std::optional<Resolution>> PrefillDirectory::resolve(
    RoomId room, const std::string& address, std::optional<std::uint32_t> dp_rank,
    const Registration& registration, Actions& out, Failure& failure) {
  Deployment& deployment = deployments_[address];
  if (deployment.state != State::known) {
    if (deployment.state == State::unknown && !deployment.waits_for_retry) {
      deployment.state = State::asking;
      out.push_back(RequestTopology{address});
    }
    return std::optional<Resolution>();
  }
  const Result<RankMap> map = map_ranks(shape_, deployment.info);
  if (!map) {
    failure = failures::incompatible(address, map.error().text);
    return map.error();
  }
  const Result<std::uint32_t> dp = choose_dp_rank(room, dp_rank, deployment.info);
  if (!dp) {
    failure = failures::no_topology(address, dp.error().text);
    return dp.error();
  }
  Result<std::optional<Peers>> peers = find_routes(address, *dp, *map, out, failure);
  if (!peers) return peers.error();
  if (!peers->has_value()) return std::optional<Resolution>();
  for (const PrefillPeer& peer : **peers) {
    Route& route = routes_.at(peer.route);
    if (!std::exchange(route.is_registered, true)) {
      out.push_back(SendMessage{peer.endpoint, registration});
    }
  }
  return std::optional<Resolution>(Resolution{std::move(**peers), map->required_dst_info_num,
                                              map->required_prefill_response_num});
}

Result<std::optional<Peers>> PrefillDirectory::find_routes(const std::string& address,
                                                           std::uint32_t dp_rank,
                                                           const RankMap& map, Actions& out,
                                                           Failure& failure) {
  Peers peers;
  for (const TargetRank& target : map.targets) {
    const RouteKey key{address, dp_rank, target.cp_rank, target.tp_rank, target.pp_rank};
    Route& route = routes_[key];
    if (route.error) {
      failure = failures::no_route(key.dp_rank, key.cp_rank, key.tp_rank, key.pp_rank,
                                   route.error->text);
      return *route.error;
    }
    if (route.state == State::unknown) {
      route.state = State::asking;
      out.push_back(RequestRoute{key});
    }
    if (route.state == State::known) {
      peers.push_back({key, route.endpoint, target.is_dummy, route.generation});
    }
  }
  if (peers.size() < map.targets.size()) return std::optional<Peers>();
  return std::optional<Peers>(std::move(peers));
}

bool PrefillDirectory::on_topology(const TopologyReply& reply, Instant now) {
  const auto found = deployments_.find(reply.bootstrap_address);
  if (found == deployments_.end() || found->second.state != State::asking) return false;
  Deployment& deployment = found->second;
  if (reply.info) {
    deployment.state = State::known;
    deployment.info = *reply.info;
    deployment.error.clear();
    return true;
  }
  deployment.state = State::unknown;
  deployment.error = reply.info.error().text;
  deployment.waits_for_retry = true;
  retries_.set(reply.bootstrap_address, now + retry_interval_);
  return true;
}

bool PrefillDirectory::on_route(const RouteReply& reply) {
  const auto found = routes_.find(reply.route);
  if (found == routes_.end() || found->second.state != State::asking) return false;
  Route& route = found->second;
  if (!reply.endpoint) {
    route.state = State::unknown;
    route.error = reply.endpoint.error();
    return true;
  }
  route.state = State::known;
  route.endpoint = *reply.endpoint;
  route.generation = next_generation_++;
  return true;
}

void PrefillDirectory::forget_failed(const RouteKey& key) {
  const auto found = routes_.find(key);
  if (found != routes_.end() && found->second.error) routes_.erase(found);
}

std::string PrefillDirectory::last_error(const std::string& address) const {
  const auto found = deployments_.find(address);
  if (found == deployments_.end()) return {};
  if (found->second.state == State::known) return "no answer about the rank's address yet";
  if (found->second.error.empty()) return "no answer yet";
  return found->second.error;
}

void PrefillDirectory::invalidate(const PrefillPeer& peer) {
  const auto found = routes_.find(peer.route);
  if (found == routes_.end() || found->second.generation != peer.route_generation) return;
  routes_.erase(found);
  const auto deployment = deployments_.find(peer.route.bootstrap_address);
  if (deployment != deployments_.end() && deployment->second.state == State::known) {
    deployments_.erase(deployment);
  }
}

void PrefillDirectory::invalidate(const Endpoint& endpoint) {
  Peers stale;
  for (const auto& [key, route] : routes_) {
    if (route.state == State::known && route.endpoint == endpoint) {
      stale.push_back({key, route.endpoint, false, route.generation});
    }
  }
  for (const PrefillPeer& peer : stale) invalidate(peer);
}

std::optional<std::string> PrefillDirectory::take_due(Instant now) {
  std::optional<std::string> address = retries_.take_due(now);
  if (address) deployments_[*address].waits_for_retry = false;
  return address;
}

}  // namespace baton::core
