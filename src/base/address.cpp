// Parsing and printing of host:port.
#include "base/address.hpp"

#include <charconv>

namespace baton {

bool is_ipv6_literal(std::string_view host) { return host.find(':') != std::string_view::npos; }

std::string to_string(const Endpoint& endpoint) {
  const std::string port = std::to_string(endpoint.port);
  if (is_ipv6_literal(endpoint.host)) return "[" + endpoint.host + "]:" + port;
  return endpoint.host + ":" + port;
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  const auto malformed = [&] {
    return Error{Errc::invalid_argument,
                 "address \"" + std::string(text) +
                     "\": expected host:port with a port in 0..65535 (IPv6 hosts in brackets)"};
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return malformed();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.front() == '[') {
    if (host.size() < 3 || host.back() != ']') return malformed();
    host = host.substr(1, host.size() - 2);
  } else if (is_ipv6_literal(host)) {
    return malformed();
  }
  unsigned port = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || fault != std::errc() || end != digits.data() + digits.size() ||
      port > 65535) {
    return malformed();
  }
  return Endpoint{std::string(host), static_cast<std::uint16_t>(port)};
}

}  // namespace baton
