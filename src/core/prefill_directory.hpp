// PrefillDirectory: what decode knows of prefill deployments, and which ranks it registered with.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "baton/result.hpp"
#include "core/actions.hpp"
#include "core/deadlines.hpp"
#include "core/topology.hpp"

namespace baton::core {

// One contacted prefill rank of a room. `route_generation` tells a cached route from a newer one
// under the same key, so that a late invalidation removes only what it means. [I28]
struct PrefillPeer {
  RouteKey route;
  Endpoint endpoint;
  bool is_dummy = false;
  std::uint64_t route_generation = 0;

  friend bool operator==(const PrefillPeer&, const PrefillPeer&) = default;
};

// What a room needs before it may publish.
struct Resolution {
  std::vector<PrefillPeer> peers;
  std::uint32_t required_dst_info_num = 1;
  std::uint32_t required_prefill_response_num = 1;

  friend bool operator==(const Resolution&, const Resolution&) = default;
};

// The connection pool of the reference, without its prefix match and with generations. [spec 3.4]
class PrefillDirectory {
 public:
  PrefillDirectory(DecodeShape shape, Duration retry_interval)
      : shape_(std::move(shape)), retry_interval_(retry_interval) {}

  // Resolved, or nullopt while answers are outstanding (asks for what is missing), or a failure.
  // Registers with ranks that do not know this decode rank yet. [I27]
  Result<std::optional<Resolution>> resolve(RoomId room, const std::string& address,
                                            std::optional<std::uint32_t> dp_rank,
                                            const Registration& registration, Actions& out,
                                            Failure& failure);

  // False: nobody asked.
  bool on_topology(const TopologyReply& reply, Instant now);
  bool on_route(const RouteReply& reply);
  // Every room that waited for the route has heard of its failure: the next one asks again.
  void forget_failed(const RouteKey& key);
  // Why the address could not be resolved so far; for the text of a time-out.
  std::string last_error(const std::string& address) const;

  // Forgets the route, and the deployment's shape, if it is still the same entry. [I29]
  void invalidate(const PrefillPeer& peer);
  void invalidate(const Endpoint& endpoint);

  std::optional<Instant> next_retry() const { return retries_.next(); }
  // Takes one address that should be asked again.
  std::optional<std::string> take_due(Instant now);

  friend bool operator==(const PrefillDirectory&, const PrefillDirectory&) = default;

 private:
  enum class State : std::uint8_t {
    unknown,  // nothing asked, or the last answer was an error
    asking,   // a request is on its way
    known,
  };
  struct Deployment {
    State state = State::unknown;
    bool waits_for_retry = false;
    PrefillInfo info;
    std::string error;

    friend bool operator==(const Deployment&, const Deployment&) = default;
  };
  struct Route {
    State state = State::unknown;
    Endpoint endpoint;
    std::uint64_t generation = 0;
    bool is_registered = false;
    std::optional<Error> error;

    friend bool operator==(const Route&, const Route&) = default;
  };

  Result<std::optional<std::vector<PrefillPeer>>> find_routes(const std::string& address,
                                                              std::uint32_t dp_rank,
                                                              const RankMap& map, Actions& out,
                                                              Failure& failure);

  DecodeShape shape_;
  Duration retry_interval_;
  std::map<std::string, Deployment> deployments_;
  std::map<RouteKey, Route> routes_;
  Deadlines<std::string> retries_;
  std::uint64_t next_generation_ = 1;
};

}  // namespace baton::core
