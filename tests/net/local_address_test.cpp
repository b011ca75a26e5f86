// The order of the sources of the local address. [spec 8.2]
#include "net/local_address.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace baton::net {
namespace {

struct FakeSources : AddressSources {
  std::vector<InterfaceAddress> interfaces;
  std::optional<std::string> route, hostname;

  std::vector<InterfaceAddress> interface_addresses() const override { return interfaces; }
  std::optional<std::string> route_address() const override { return route; }
  std::optional<std::string> hostname_address() const override { return hostname; }
};

TEST(LocalAddress, SourcesInTheirOrder) {
  FakeSources sources;
  sources.interfaces = {{"lo", "127.0.0.1"}, {"eth0", "10.0.0.3"}};
  sources.route = "10.0.0.4";
  sources.hostname = "10.0.0.5";
  AddressEnvironment environment{"10.0.0.1", "10.0.0.2", "eth0"};
  EXPECT_EQ(*local_address(environment, sources), "10.0.0.1");
  environment.sglang_host_ip.clear();
  EXPECT_EQ(*local_address(environment, sources), "10.0.0.2");
  environment.host_ip.clear();
  EXPECT_EQ(*local_address(environment, sources), "10.0.0.3");
  environment.interface_name = "eth9";
  EXPECT_EQ(*local_address(environment, sources), "10.0.0.4");
  sources.route.reset();
  EXPECT_EQ(*local_address(environment, sources), "10.0.0.5");
  for (const char* loopback : {"127.0.1.1", "::1"}) {
    sources.hostname = loopback;
    const Result<std::string> none = local_address(environment, sources);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Errc::not_found);
    EXPECT_NE(none.error().text.find("SGLANG_HOST_IP"), std::string::npos);
  }
}

TEST(LocalAddress, EnvironmentIsTakenVerbatim) {
  EXPECT_EQ(*local_address({"prefill-3.cluster", "", ""}, FakeSources()), "prefill-3.cluster");
}

TEST(LocalAddress, InterfaceAddressRules) {
  const std::vector<InterfaceAddress> addresses = {
      {"a", "127.0.0.1"}, {"a", "fe80::1%a"}, {"a", "fd00::7%a"}, {"a", "10.1.1.1"},
      {"b", "127.0.0.1"}, {"b", "::1"},       {"b", "fe80::2%b"}, {"b", "fd00::8%b"},
      {"c", "127.0.0.1"}, {"c", "::1"},       {"c", "fe80::3%c"}};
  EXPECT_EQ(choose_interface_address(addresses, "a"), "10.1.1.1");
  EXPECT_EQ(choose_interface_address(addresses, "b"), "fd00::8");
  EXPECT_EQ(choose_interface_address(addresses, "c"), std::nullopt);
  EXPECT_EQ(choose_interface_address(addresses, "d"), std::nullopt);
}

TEST(LocalAddress, SystemKnowsItsLoopback) {
  const auto addresses = system_address_sources().interface_addresses();
  const bool has_loopback = std::any_of(addresses.begin(), addresses.end(), [](const auto& entry) {
    return entry.address == "127.0.0.1";
  });
  EXPECT_TRUE(has_loopback);
  // Whatever this machine answers, asking must not fail or hang.
  (void)system_address_sources().route_address();
  (void)system_address_sources().hostname_address();
}

}  // namespace
}  // namespace baton::net
