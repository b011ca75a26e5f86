// Two hosts: prefill and decode in network namespaces that only a virtual cable joins.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "e2e/process.hpp"

namespace baton::e2e {
namespace {

bool shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// Addresses 10.77.0.1 (prefill's host) and 10.77.0.2 (decode's).
class TwoHosts : public testing::Test {
 protected:
  void SetUp() override {
    const std::string link_a = "bt" + id_ + "a";
    const std::string link_b = "bt" + id_ + "b";
    const bool ready = shell("ip netns add " + host_a_) && shell("ip netns add " + host_b_) &&
                       shell("ip link add " + link_a + " netns " + host_a_ +
                             " type veth peer name " + link_b + " netns " + host_b_) &&
                       shell("ip -n " + host_a_ + " addr add 10.77.0.1/24 dev " + link_a) &&
                       shell("ip -n " + host_b_ + " addr add 10.77.0.2/24 dev " + link_b) &&
                       shell("ip -n " + host_a_ + " link set " + link_a + " up") &&
                       shell("ip -n " + host_b_ + " link set " + link_b + " up") &&
                       shell("ip -n " + host_a_ + " link set lo up") &&
                       shell("ip -n " + host_b_ + " link set lo up");
    if (!ready) GTEST_SKIP() << "this machine does not let us make network namespaces (ip netns)";
  }
  void TearDown() override {
    shell("ip netns del " + host_a_);
    shell("ip netns del " + host_b_);
  }

  static Arguments in(const std::string& host) { return {"ip", "netns", "exec", host}; }

  const std::string id_ = std::to_string(getpid() % 100000);
  const std::string host_a_ = "baton_a_" + id_;
  const std::string host_b_ = "baton_b_" + id_;
};

TEST_F(TwoHosts, HandOverThroughACable) {
  Process bootstrap({"bootstrap", "--host", "10.77.0.1"}, in(host_a_));
  const std::string bootstrap_address = bootstrap.ready_address();
  ASSERT_EQ(bootstrap_address.rfind("10.77.0.1:", 0), 0U) << bootstrap.err();
  Process prefill({"prefill", "--host", "10.77.0.1", "--bootstrap", bootstrap_address,
                   "--transport", "mooncake_tcp", "--chunk", "16"},
                  in(host_a_));
  const std::string prefill_address = prefill.ready_address();
  ASSERT_FALSE(prefill_address.empty()) << prefill.err();
  Process decode({"decode", "--host", "10.77.0.2", "--transport", "mooncake_tcp"}, in(host_b_));
  const std::string decode_address = decode.ready_address();
  ASSERT_EQ(decode_address.rfind("10.77.0.2:", 0), 0U) << decode.err();
  // The client is on decode's host and reaches prefill through the cable as well.
  Process client({"generate", "--prefill", prefill_address, "--decode", decode_address,
                  "--bootstrap", bootstrap_address, "--json", "--compare", "--tokens", "12"},
                 in(host_b_));
  EXPECT_EQ(client.wait(), 0) << client.out() << client.err();
  const nlohmann::json report = nlohmann::json::parse(client.out(), nullptr, false);
  ASSERT_TRUE(report.is_object()) << client.out() << client.err();
  for (const auto& [what, same] : report["identical"].items()) EXPECT_TRUE(same) << what;
  // Clocks of two hosts have nothing to do with each other.
  EXPECT_FALSE(report.contains("notice_seconds"));
}

}  // namespace
}  // namespace baton::e2e
