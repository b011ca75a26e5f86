// BootstrapClient: prefill's and decode's view of the bootstrap server. [spec 6]
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "baton/result.hpp"
#include "baton/types.hpp"
#include "core/messages.hpp"
#include "net/http_client.hpp"

namespace baton::bootstrap {

// The code of "not every prefill rank has registered yet" (503): ask again later.
inline constexpr Errc kNotReady = Errc::unsupported;

struct BootstrapClientOptions {
  Duration timeout = std::chrono::seconds(5);  // one HTTP call
  int register_attempts = 5;
  Duration register_pause = std::chrono::seconds(1);       // doubles after each attempt ...
  Duration register_pause_max = std::chrono::seconds(30);  // ... up to this
};

// How long to wait after failed attempt `attempt` (0-based): the doubled pause, shortened by up to
// a quarter so that ranks that started together do not knock together. `fraction` is in [0, 1).
Duration register_pause(const BootstrapClientOptions& options, int attempt, double fraction);

// The PUT body of a rank, byte for byte as the reference writes it (state R1).
// invalid_argument: dsv41_spec_layout is not JSON.
Result<std::string> encode_registration(const RankRegistration& registration);
// Unknown keys are ignored; dsv41_spec_layout comes out as canonical_json (json_text.hpp), so that
// texts compare. malformed: says which key is wrong.
Result<PrefillInfo> decode_topology(const std::string& body);
// A rank's address: the control socket that it registered.
Result<Endpoint> decode_route(const std::string& body);

using DpRanks = std::map<RoomId, std::uint32_t>;
// The answer of /query_dp_ranks.
Result<DpRanks> decode_dp_ranks(const std::string& body);

// Addresses are "host:port" of the bootstrap server. Call-backs come exactly once, on the client
// thread, never from inside the call. Errors keep apart: kNotReady (503), not_found (404: no such
// rank), unreachable, timeout, malformed (an answer that makes no sense), incompatible (the server
// refused the registration, 400), invalid_argument (the address), io (any other status), closed.
class BootstrapClient {
 public:
  explicit BootstrapClient(const BootstrapClientOptions& options = {});

  // Blocks for up to all attempts and pauses; the error is that of the last attempt.
  Result<void> register_rank(const std::string& address, const RankRegistration& registration);

  void fetch_topology(const std::string& address, std::function<void(Result<PrefillInfo>)> done);
  void fetch_route(const RouteKey& key, std::function<void(Result<Endpoint>)> done);
  void fetch_health(const std::string& address, std::function<void(Result<void>)> done);
  void register_dp_rank(const std::string& address, RoomId room, std::uint32_t dp_rank,
                        std::function<void(Result<void>)> done);
  // Unknown rooms are absent from the answer. Any number of rooms: large batches are split.
  void query_dp_ranks(const std::string& address, std::vector<RoomId> rooms,
                      std::function<void(Result<DpRanks>)> done);

 private:
  struct DpQuery;
  void query_next_batch(std::shared_ptr<DpQuery> query);
  // Sends the call, or reports a malformed address through `done`.
  void send(const std::string& address, net::HttpCall call, net::HttpClient::Callback done);

  BootstrapClientOptions options_;
  net::HttpClient http_;  // last: its destructor ends the open calls
};

}  // namespace baton::bootstrap
