// BootstrapClient against the real server and against servers that answer nonsense.
#include "bootstrap/client.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "base/address.hpp"
#include "bootstrap/server.hpp"

namespace baton::bootstrap {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

BootstrapClientOptions patient() {
  BootstrapClientOptions options;
  options.timeout = seconds(60);
  options.register_pause = milliseconds(1);
  return options;
}

std::unique_ptr<BootstrapServer> start(std::uint16_t port = 0) {
  auto server = BootstrapServer::start("127.0.0.1", port);
  EXPECT_TRUE(server) << server.error().text;
  return server ? std::move(server.value()) : nullptr;
}

RankRegistration rank(std::uint32_t tp_size = 1, std::uint32_t tp_rank = 0) {
  RankRegistration registration;
  registration.topology.attn_tp_size = tp_size;
  registration.topology.attn_tp_rank = tp_rank;
  registration.endpoint = {"10.0.0.5", static_cast<std::uint16_t>(40000 + tp_rank)};
  registration.page_size = 64;
  registration.kv_cache_dtype = "bfloat16";
  return registration;
}

// Calls something that answers through a call-back, and waits.
template <class T, class Function>
Result<T> wait_for(Function&& function) {
  std::promise<Result<T>> promise;
  function([&](Result<T> result) { promise.set_value(std::move(result)); });
  return promise.get_future().get();
}

Result<PrefillInfo> topology(BootstrapClient& client, const std::string& address) {
  return wait_for<PrefillInfo>([&](auto done) { client.fetch_topology(address, done); });
}

Result<Endpoint> route(BootstrapClient& client, const RouteKey& key) {
  return wait_for<Endpoint>([&](auto done) { client.fetch_route(key, done); });
}

TEST(BootstrapClient, RegistrationTopologyAndRoutes) {
  const auto server = start();
  BootstrapClient client(patient());
  RankRegistration first = rank(2, 0);
  first.dsv41_spec_layout = R"({"version": 1, "a": [1, 2]})";
  first.prefill_http_port = 30000;
  first.load_balance_method = "round_robin";
  first.enable_dsa_cache_layer_split = true;
  ASSERT_TRUE(client.register_rank(server->address(), first));
  EXPECT_EQ(topology(client, server->address()).error().code, kNotReady);
  EXPECT_EQ(route(client, {server->address(), 0, 0, 0, 0}).error().code, kNotReady);
  RankRegistration second = first;
  second.topology.attn_tp_rank = 1;
  second.endpoint = {"fd00::7", 40001};
  ASSERT_TRUE(client.register_rank(server->address(), second));

  PrefillInfo expected;
  expected.attn_tp_size = 2;
  expected.page_size = 64;
  expected.kv_cache_dtype = "bfloat16";
  expected.follow_bootstrap_room = false;
  expected.enable_dsa_cache_layer_split = true;
  expected.dsv41_spec_layout = R"({"a":[1,2],"version":1})";
  expected.prefill_http_port = 30000;
  const Result<PrefillInfo> info = topology(client, server->address());
  ASSERT_TRUE(info) << info.error().text;
  EXPECT_EQ(*info, expected);
  EXPECT_EQ(*route(client, {server->address(), 0, 0, 1, 0}), second.endpoint);
  const Result<Endpoint> unknown = route(client, {server->address(), 0, 0, 7, 0});
  EXPECT_EQ(unknown.error().code, Errc::not_found);
  EXPECT_NE(unknown.error().text.find("tp_rank=7"), std::string::npos);
  EXPECT_TRUE(wait_for<void>([&](auto done) { client.fetch_health(server->address(), done); }));
}

TEST(BootstrapClient, LayoutConflictIsIncompatible) {
  const auto server = start();
  BootstrapClient client(patient());
  ASSERT_TRUE(client.register_rank(server->address(), rank()));
  RankRegistration other = rank();
  other.dsv41_spec_layout = "{}";
  const Result<void> refused = client.register_rank(server->address(), other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::incompatible);
  EXPECT_NE(refused.error().text.find("layout differs"), std::string::npos);
  other.dsv41_spec_layout = "{";
  EXPECT_EQ(client.register_rank(server->address(), other).error().code, Errc::invalid_argument);
}

TEST(BootstrapClient, DpRanksOfManyRooms) {
  const auto server = start();
  BootstrapClient client(patient());
  for (const std::uint64_t room : {7ull, 9223372036854775807ull}) {
    ASSERT_TRUE(wait_for<void>(
        [&](auto done) { client.register_dp_rank(server->address(), RoomId{room}, 3, done); }));
  }
  // Beyond what fits one request body.
  std::vector<RoomId> rooms;
  for (std::uint64_t room = 0; room < 100'000; ++room) {
    rooms.push_back(RoomId{9223372036854775807ull - room});
  }
  rooms.push_back(RoomId{7});
  const Result<DpRanks> found =
      wait_for<DpRanks>([&](auto done) { client.query_dp_ranks(server->address(), rooms, done); });
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(*found, (DpRanks{{RoomId{7}, 3}, {RoomId{9223372036854775807ull}, 3}}));
  const Result<DpRanks> none =
      wait_for<DpRanks>([&](auto done) { client.query_dp_ranks(server->address(), {}, done); });
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
}

TEST(BootstrapClient, FiveAttemptsToAnAbsentServer) {
  auto server = start();
  const std::string address = server->address();
  server.reset();
  BootstrapClient client(patient());
  const Result<void> outcome = client.register_rank(address, rank());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::unreachable);
  EXPECT_NE(outcome.error().text.find("5 times"), std::string::npos) << outcome.error().text;
  EXPECT_NE(outcome.error().text.find(address), std::string::npos);
}

TEST(BootstrapClient, LaterAttemptSucceeds) {
  std::atomic<int> calls{0};
  auto server = net::HttpServer::start({}, [&](net::HttpRequest, net::HttpResponder responder) {
    net::HttpResponse response;
    response.status = ++calls < 3 ? 500 : 200;
    responder.respond(std::move(response));
  });
  ASSERT_TRUE(server);
  BootstrapClient client(patient());
  EXPECT_TRUE(client.register_rank((*server)->address(), rank()));
  EXPECT_EQ(calls, 3);
}

// [spec 6.2] 0.75..1, 1.5..2, 3..4, 6..8 s
TEST(BootstrapClient, PausesDoubleAndAreShortenedByTheClock) {
  const BootstrapClientOptions options;
  for (const auto& [attempt, longest] : {std::pair(0, 1), {1, 2}, {2, 4}, {3, 8}, {9, 30}}) {
    EXPECT_EQ(register_pause(options, attempt, 0.0), milliseconds(750) * longest);
    EXPECT_LE(register_pause(options, attempt, 0.999), seconds(longest));
    EXPECT_GT(register_pause(options, attempt, 0.999), milliseconds(999) * longest);
  }
}

TEST(BootstrapClient, AnswersThatMakeNoSense) {
  std::string body;
  int status = 200;
  auto server = net::HttpServer::start({}, [&](net::HttpRequest, net::HttpResponder responder) {
    net::HttpResponse response;
    response.status = status;
    response.body = body;
    responder.respond(std::move(response));
  });
  ASSERT_TRUE(server);
  const std::string address = (*server)->address();
  BootstrapClient client(patient());
  for (const char* nonsense :
       {"", "x", "[]", "{}",
        R"({"attn_tp_size": 0, "attn_cp_size": 1, "dp_size": 1, "pp_size": 1})",
        R"({"attn_tp_size": 1, "attn_cp_size": 1, "dp_size": 1, "pp_size": -1})",
        R"({"attn_tp_size": 1, "attn_cp_size": 1, "dp_size": 1, "pp_size": 1, "page_size": []})",
        R"({"rank_ip": "", "rank_port": 1})", R"({"rank_ip": "h", "rank_port": 65536})",
        R"({"rank_ip": 3, "rank_port": 1})"}) {
    body = nonsense;
    const Result<PrefillInfo> info = topology(client, address);
    ASSERT_FALSE(info) << nonsense;
    EXPECT_EQ(info.error().code, Errc::malformed) << info.error().text;
    EXPECT_NE(info.error().text.find(address), std::string::npos);
    EXPECT_EQ(route(client, {address, 0, 0, 0, 0}).error().code, Errc::malformed) << nonsense;
  }
  for (const char* nonsense : {"[]", R"({"x": 1})", R"({"1": "y"})", R"({"1": -1})"}) {
    body = nonsense;
    const auto ranks =
        wait_for<DpRanks>([&](auto done) { client.query_dp_ranks(address, {RoomId{1}}, done); });
    EXPECT_EQ(ranks.error().code, Errc::malformed);
  }
  body = R"({"attn_tp_size": 1, "attn_cp_size": 1, "dp_size": 1, "pp_size": 1, "new_key": {}})";
  EXPECT_TRUE(topology(client, address));  // from a later version
  status = 502;
  EXPECT_EQ(topology(client, address).error().code, Errc::io);
}

TEST(BootstrapClient, MalformedAddressesComeBackThroughTheCallback) {
  BootstrapClient client(patient());
  for (const char* address : {"", "host", "host:x", "::1:5", "host:0"}) {
    EXPECT_EQ(topology(client, address).error().code, Errc::invalid_argument) << address;
  }
  EXPECT_EQ(client.register_rank("host", rank()).error().code, Errc::invalid_argument);
}

TEST(BootstrapClient, DestructionEndsOpenCalls) {
  std::vector<net::HttpResponder> held;
  auto server = net::HttpServer::start({}, [&](net::HttpRequest, net::HttpResponder responder) {
    held.push_back(std::move(responder));
  });
  ASSERT_TRUE(server);
  std::atomic<int> closed{0};
  {
    BootstrapClient client(patient());
    client.fetch_topology((*server)->address(), [&](const Result<PrefillInfo>& info) {
      closed += !info && info.error().code == Errc::closed ? 1 : 0;
    });
    client.query_dp_ranks((*server)->address(), std::vector<RoomId>(100'000, RoomId{1}),
                          [&](const Result<DpRanks>& ranks) {
                            closed += !ranks && ranks.error().code == Errc::closed ? 1 : 0;
                          });
  }
  EXPECT_EQ(closed, 2);
}

TEST(BootstrapServer, PortInUseIsExplained) {
  const auto server = start();
  const auto second = BootstrapServer::start("127.0.0.1", server->port());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::already_exists);
  EXPECT_NE(second.error().text.find(server->address()), std::string::npos);
  EXPECT_EQ(server->address(), "127.0.0.1:" + std::to_string(server->port()));
}

}  // namespace
}  // namespace baton::bootstrap
