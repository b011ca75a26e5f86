// Endpoint: a host and a port, and the one place that parses and prints "host:port".
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "baton/result.hpp"

namespace baton {

// `host` is an IPv4 literal, an IPv6 literal without brackets, or a name.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// "host:port", IPv6 literals in brackets. [spec 4.7.3]
std::string to_string(const Endpoint& endpoint);
// Needs brackets around IPv6 and a port in 0..65535.
Result<Endpoint> parse_endpoint(std::string_view text);
bool is_ipv6_literal(std::string_view host);

}  // namespace baton
