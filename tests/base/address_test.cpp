// parse_endpoint and to_string(Endpoint): what is accepted, what is refused.
#include "base/address.hpp"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(Address, ParsesHostAndPort) {
  const auto parsed = [](std::string_view text) {
    const Result<Endpoint> endpoint = parse_endpoint(text);
    return endpoint ? *endpoint : Endpoint{endpoint.error().text, 0};
  };
  EXPECT_EQ(parsed("10.0.0.1:8998"), (Endpoint{"10.0.0.1", 8998}));
  EXPECT_EQ(parsed("some-host:0"), (Endpoint{"some-host", 0}));
  EXPECT_EQ(parsed("[::1]:65535"), (Endpoint{"::1", 65535}));
}

TEST(Address, RefusesEverythingElse) {
  for (const std::string_view text :
       {"", ":", ":80", "host", "host:", "host:x", "host:65536", "host:-1", "host:+1", "host: 1",
        "host:80 ", "::1:80", "[::1]", "[]:80", "[::1:80", "host:99999999999999999999"}) {
    const Result<Endpoint> endpoint = parse_endpoint(text);
    ASSERT_FALSE(endpoint) << text;
    EXPECT_EQ(endpoint.error().code, Errc::invalid_argument);
    EXPECT_NE(endpoint.error().text.find(text), std::string::npos);
  }
}

TEST(Address, PrintsWhatItParses) {  // [spec 4.7.3]
  for (const std::string_view text : {"10.0.0.1:1", "[fe80::2]:80", "name:65535"}) {
    EXPECT_EQ(to_string(*parse_endpoint(text)), text);
  }
}

}  // namespace
}  // namespace baton
