// Calls to the bootstrap server and what their answers mean.
#include "bootstrap/client.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/address.hpp"

namespace baton::bootstrap {

namespace {

using net::HttpCall;
using net::HttpReply;

// The server's limit is 1 MiB a body; a room takes up to 21 bytes of it.
constexpr std::size_t kRoomsPerQueryMax = 40'000;
constexpr std::size_t kQuotedBytesMax = 200;  // of a server's answer, in our error texts

Error refusal(const HttpReply& reply, const std::string& address) {
  const Errc code = reply.status == 503   ? kNotReady
                    : reply.status == 404 ? Errc::not_found
                    : reply.status == 400 ? Errc::incompatible
                                          : Errc::io;
  return Error{code, "bootstrap server " + address + " answered " + std::to_string(reply.status) +
                         ": " + reply.body.substr(0, kQuotedBytesMax)};
}

// Turns the reply to a call into what the call was made for.
template <class T, class Decode>
Result<T> interpret(const Result<HttpReply>& reply, const std::string& address, Decode&& decode) {
  if (!reply) return reply.error();
  if (reply->status != 200) return refusal(*reply, address);
  Result<T> decoded = decode(reply->body);
  if (decoded) return decoded;
  return Error{decoded.error().code,
               "answer of bootstrap server " + address + ": " + decoded.error().text};
}

HttpCall get_route(const std::string& dp, const std::string& cp, const std::string& tp,
                   const std::string& pp) {
  HttpCall call;
  call.target = "/route?prefill_dp_rank=" + dp + "&prefill_cp_rank=" + cp +
                "&target_tp_rank=" + tp + "&target_pp_rank=" + pp;
  return call;
}

// Both POST routes may be repeated: registering overwrites, querying changes nothing. [spec 6.5]
HttpCall post(std::string target, std::string body) {
  HttpCall call;
  call.method = "POST";
  call.target = std::move(target);
  call.body = std::move(body);
  call.idempotent = true;
  return call;
}

Result<void> expect_200(const Result<HttpReply>& reply, const std::string& address) {
  if (!reply) return reply.error();
  if (reply->status != 200) return refusal(*reply, address);
  return {};
}

// [0, 1), from the clock: different in ranks that started at different moments.
double clock_fraction() {
  const std::chrono::duration<double> now = Clock::now().time_since_epoch();
  return now.count() - static_cast<double>(static_cast<std::int64_t>(now.count()));
}

}  // namespace

Duration register_pause(const BootstrapClientOptions& options, int attempt, double fraction) {
  Duration pause = options.register_pause;
  for (int doubled = 0; doubled < attempt && pause < options.register_pause_max; ++doubled) {
    pause *= 2;
  }
  pause = std::min(pause, options.register_pause_max);
  const double factor = 0.75 + 0.25 * fraction;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(pause) * factor);
}

BootstrapClient::BootstrapClient(const BootstrapClientOptions& options)
    : options_(options), http_([] {
        net::HttpClientOptions http;
        http.thread_name = "baton-resolver";
        return http;
      }()) {}

void BootstrapClient::send(const std::string& address, HttpCall call,
                           net::HttpClient::Callback done) {
  const Result<Endpoint> to = parse_endpoint(address);
  if (!to) {
    http_.defer([done = std::move(done), error = to.error()] { done(error); });
    return;
  }
  call.to = *to;
  call.timeout = options_.timeout;
  http_.send(std::move(call), std::move(done));
}

Result<void> BootstrapClient::register_rank(const std::string& address,
                                            const RankRegistration& registration) {
  const Result<Endpoint> to = parse_endpoint(address);
  if (!to) return to.error();
  Result<std::string> body = encode_registration(registration);
  if (!body) return body.error();
  HttpCall call;
  call.to = *to;
  call.method = "PUT";
  call.target = "/route";
  call.body = std::move(body.value());
  call.timeout = options_.timeout;
  Result<void> outcome = Error{Errc::invalid_argument, "no attempt to register was allowed"};
  for (int attempt = 0; attempt < options_.register_attempts; ++attempt) {
    if (attempt > 0) {
      std::this_thread::sleep_for(register_pause(options_, attempt - 1, clock_fraction()));
    }
    outcome = expect_200(http_.send_and_wait(call), address);
    if (outcome || outcome.error().code == Errc::closed) return outcome;
  }
  return Error{outcome.error().code, "registration failed " +
                                         std::to_string(options_.register_attempts) +
                                         " times, at last: " + outcome.error().text};
}

void BootstrapClient::fetch_topology(const std::string& address,
                                     std::function<void(Result<PrefillInfo>)> done) {
  send(address, get_route("-1", "-1", "-1", "-1"),
       [address, done = std::move(done)](const Result<HttpReply>& reply) {
         done(interpret<PrefillInfo>(reply, address, decode_topology));
       });
}

void BootstrapClient::fetch_route(const RouteKey& key, std::function<void(Result<Endpoint>)> done) {
  HttpCall call = get_route(std::to_string(key.dp_rank), std::to_string(key.cp_rank),
                            std::to_string(key.tp_rank), std::to_string(key.pp_rank));
  send(key.bootstrap_address, std::move(call),
       [address = key.bootstrap_address, done = std::move(done)](const Result<HttpReply>& reply) {
         done(interpret<Endpoint>(reply, address, decode_route));
       });
}

void BootstrapClient::fetch_health(const std::string& address,
                                   std::function<void(Result<void>)> done) {
  HttpCall call;
  call.target = "/health";
  send(address, std::move(call), [address, done = std::move(done)](const Result<HttpReply>& reply) {
    done(expect_200(reply, address));
  });
}

void BootstrapClient::register_dp_rank(const std::string& address, RoomId room,
                                       std::uint32_t dp_rank,
                                       std::function<void(Result<void>)> done) {
  std::string body = "{\"bootstrap_room\": " + std::to_string(room.value) +
                     ", \"dp_rank\": " + std::to_string(dp_rank) + "}";
  send(address, post("/register_dp_rank", std::move(body)),
       [address, done = std::move(done)](const Result<HttpReply>& reply) {
         done(expect_200(reply, address));
       });
}

struct BootstrapClient::DpQuery {
  std::string address;
  std::vector<RoomId> rooms;
  std::size_t asked = 0;
  DpRanks found;
  std::function<void(Result<DpRanks>)> done;
};

void BootstrapClient::query_dp_ranks(const std::string& address, std::vector<RoomId> rooms,
                                     std::function<void(Result<DpRanks>)> done) {
  query_next_batch(
      std::make_shared<DpQuery>(DpQuery{address, std::move(rooms), 0, {}, std::move(done)}));
}

void BootstrapClient::query_next_batch(std::shared_ptr<DpQuery> query) {
  const std::size_t end = std::min(query->asked + kRoomsPerQueryMax, query->rooms.size());
  std::string body = "{\"bootstrap_rooms\": [";
  for (std::size_t index = query->asked; index < end; ++index) {
    if (index > query->asked) body += ", ";
    body += std::to_string(query->rooms[index].value);
  }
  query->asked = end;
  send(query->address, post("/query_dp_ranks", body + "]}"),
       [this, query](const Result<HttpReply>& reply) {
         const Result<DpRanks> batch = interpret<DpRanks>(reply, query->address, decode_dp_ranks);
         if (!batch) return query->done(batch.error());
         query->found.insert(batch->begin(), batch->end());
         if (query->asked < query->rooms.size()) return query_next_batch(query);
         query->done(std::move(query->found));
       });
}

}  // namespace baton::bootstrap
