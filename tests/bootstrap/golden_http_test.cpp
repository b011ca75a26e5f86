// The bootstrap server against recorded traffic of the reference, byte for byte, and our client's
// registration against the reference's. tests/golden/http.json names its origin.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bootstrap/client.hpp"
#include "bootstrap/server.hpp"
#include "net/raw_http.hpp"

namespace baton::bootstrap {
namespace {

using Json = nlohmann::ordered_json;

struct Recorded {
  std::string name;
  Json config;
  std::string request, answer;
};

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t index = 0; index + 1 < hex.size(); index += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(index, 2), nullptr, 16));
  }
  return bytes;
}

std::vector<Recorded> read_recording() {
  std::ifstream file(BATON_SOURCE_DIR "/tests/golden/http.json");
  const Json document = Json::parse(file);
  std::vector<Recorded> entries;
  for (const Json& entry : document.at("entries")) {
    entries.push_back({entry.at("config").at("case").get<std::string>(), entry.at("config"),
                       from_hex(entry.at("frames").at(0).get<std::string>()),
                       from_hex(entry.at("frames").at(1).get<std::string>())});
  }
  return entries;
}

std::string header(const std::string& message, const std::string& name) {
  const std::size_t at = message.find("\r\n" + name + ": ");
  if (at == std::string::npos || at > message.find("\r\n\r\n")) return "(none)";
  const std::size_t start = at + name.size() + 4;
  return message.substr(start, message.find("\r\n", start) - start);
}

std::string body(const std::string& message) {
  return message.substr(message.find("\r\n\r\n") + 4);
}

std::string value_or_none(const net::RawReply& reply, const std::string& name) {
  const auto found = reply.headers.find(name);
  return found == reply.headers.end() ? "(none)" : found->second;
}

void expect_same(const Recorded& recorded, const net::RawReply& reply) {
  SCOPED_TRACE(recorded.name);
  const std::size_t status_at = recorded.answer.find(' ') + 1;
  EXPECT_EQ(std::to_string(reply.status), recorded.answer.substr(status_at, 3));
  EXPECT_EQ(value_or_none(reply, "content-type"), header(recorded.answer, "Content-Type"));
  EXPECT_EQ(value_or_none(reply, "content-length"), header(recorded.answer, "Content-Length"));
  EXPECT_EQ(value_or_none(reply, "allow"), header(recorded.answer, "Allow"));
  EXPECT_EQ(value_or_none(reply, "connection"), header(recorded.answer, "Connection"));
  EXPECT_EQ(reply.body, body(recorded.answer));
}

// No difference is allowed but Date (never sent) and Server.
TEST(GoldenHttp, RecordedConversationsGetTheRecordedAnswers) {
  const std::vector<Recorded> recording = read_recording();
  ASSERT_EQ(recording.size(), 40u);
  std::string recorded_host;  // each recorded server had a port of its own
  std::unique_ptr<BootstrapServer> server;
  for (const Recorded& recorded : recording) {
    if (header(recorded.request, "Host") != recorded_host) {
      recorded_host = header(recorded.request, "Host");
      auto started = BootstrapServer::start("127.0.0.1", 0);
      ASSERT_TRUE(started) << started.error().text;
      server = std::move(started.value());
    }
    net::RawHttp client(server->port());
    ASSERT_TRUE(client.send(recorded.request));
    expect_same(recorded, client.read_reply());
  }
}

TEST(GoldenHttp, RegistrationBodiesAreTheRecordedOnes) {
  int compared = 0;
  for (const Recorded& recorded : read_recording()) {
    // These four come from the reference's own prefill manager, the others from a script.
    if (!recorded.config.contains("local_ip")) continue;
    RankRegistration registration;
    registration.topology.attn_tp_size = recorded.config.at("attn_tp_size");
    registration.topology.attn_tp_rank = recorded.config.at("attn_tp_rank");
    registration.topology.pp_size = recorded.config.at("pp_size");
    registration.topology.pp_rank = recorded.config.at("pp_rank");
    registration.endpoint = {recorded.config.at("local_ip"), recorded.config.at("rank_port")};
    registration.page_size = 16;
    registration.kv_cache_dtype = "bfloat16";
    registration.prefill_http_port = 30000;
    EXPECT_EQ(*encode_registration(registration), body(recorded.request)) << recorded.name;
    ++compared;
  }
  EXPECT_EQ(compared, 4);
}

TEST(GoldenHttp, RecordedTopologiesAndRoutesAreRead) {
  int topologies = 0, routes = 0;
  for (const Recorded& recorded : read_recording()) {
    const bool is_get = recorded.request.starts_with("GET /route");
    if (!is_get || !recorded.answer.starts_with("HTTP/1.1 200")) continue;
    const Json expected = Json::parse(body(recorded.answer));
    if (expected.contains("rank_ip")) {
      const Result<Endpoint> endpoint = decode_route(body(recorded.answer));
      ASSERT_TRUE(endpoint) << endpoint.error().text;
      EXPECT_EQ(endpoint->host, expected.at("rank_ip"));
      EXPECT_EQ(endpoint->port, expected.at("rank_port"));
      ++routes;
      continue;
    }
    const Result<PrefillInfo> info = decode_topology(body(recorded.answer));
    ASSERT_TRUE(info) << info.error().text;
    EXPECT_EQ(info->attn_tp_size, expected.at("attn_tp_size"));
    EXPECT_EQ(info->dp_size, expected.at("dp_size"));
    EXPECT_EQ(info->pp_size, expected.at("pp_size"));
    EXPECT_EQ(info->page_size, 16u);
    EXPECT_EQ(info->kv_cache_dtype, "bfloat16");
    EXPECT_EQ(info->follow_bootstrap_room, expected.at("follow_bootstrap_room"));
    EXPECT_EQ(info->dsv41_spec_layout.has_value(), expected.contains("dsv41_spec_layout"));
    EXPECT_EQ(info->decode_allocation_policy, "early");
    ++topologies;
  }
  EXPECT_EQ(topologies, 5);
  EXPECT_EQ(routes, 4);
}

}  // namespace
}  // namespace baton::bootstrap
