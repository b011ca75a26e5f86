// Asks the operating system for this machine's addresses.
#include "net/local_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/address.hpp"

namespace baton::net {

namespace {

// Well-known hosts far away; connecting a UDP socket only looks up the route to them.
constexpr const char* kFarAwayIpv4 = "8.8.8.8";
constexpr const char* kFarAwayIpv6 = "2001:4860:4860::8888";
constexpr std::uint16_t kFarAwayPort = 80;

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::string read_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::optional<std::string> in_digits(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return std::nullopt;
  }
  return std::string(text.data());
}

socklen_t length_of(const sockaddr* address) {
  return address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::optional<std::string> source_towards(const sockaddr* target) {
  const int socket = ::socket(target->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return std::nullopt;
  std::optional<std::string> source;
  sockaddr_storage own{};
  socklen_t own_length = sizeof own;
  auto* own_address = reinterpret_cast<sockaddr*>(&own);
  if (::connect(socket, target, length_of(target)) == 0 &&
      ::getsockname(socket, own_address, &own_length) == 0) {
    source = in_digits(own_address, own_length);
  }
  ::close(socket);
  return source;
}

class SystemSources : public AddressSources {
 public:
  std::vector<InterfaceAddress> interface_addresses() const override {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return {};
    std::vector<InterfaceAddress> found;
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      const sockaddr* address = entry->ifa_addr;
      const bool is_ip =
          address != nullptr && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
      if (!is_ip) continue;
      if (const auto text = in_digits(address, length_of(address))) {
        found.push_back({entry->ifa_name, *text});
      }
    }
    ::freeifaddrs(list);
    return found;
  }

  std::optional<std::string> route_address() const override {
    sockaddr_in ipv4{};
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(kFarAwayPort);
    ::inet_pton(AF_INET, kFarAwayIpv4, &ipv4.sin_addr);
    if (const auto found = source_towards(reinterpret_cast<const sockaddr*>(&ipv4))) return found;
    sockaddr_in6 ipv6{};
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = htons(kFarAwayPort);
    ::inet_pton(AF_INET6, kFarAwayIpv6, &ipv6.sin6_addr);
    return source_towards(reinterpret_cast<const sockaddr*>(&ipv6));
  }

  std::optional<std::string> hostname_address() const override {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return std::nullopt;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(name.data(), nullptr, &hints, &found) != 0) return std::nullopt;
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    return in_digits(found->ai_addr, found->ai_addrlen);
  }
};

}  // namespace

AddressEnvironment read_address_environment() {
  return {read_variable("SGLANG_HOST_IP"), read_variable("HOST_IP"),
          read_variable("SGLANG_LOCAL_IP_NIC")};
}

std::optional<std::string> choose_interface_address(std::span<const InterfaceAddress> addresses,
                                                    const std::string& interface_name) {
  for (const InterfaceAddress& candidate : addresses) {
    if (candidate.interface_name != interface_name || is_ipv6_literal(candidate.address)) continue;
    if (!is_loopback(candidate.address)) return candidate.address;
  }
  for (const InterfaceAddress& candidate : addresses) {
    if (candidate.interface_name != interface_name || !is_ipv6_literal(candidate.address)) continue;
    const std::string address = candidate.address.substr(0, candidate.address.find('%'));
    if (!is_loopback(address) && !address.starts_with("fe80::")) return address;
  }
  return std::nullopt;
}

const AddressSources& system_address_sources() {
  static const SystemSources sources;
  return sources;
}

Result<std::string> local_address(const AddressEnvironment& environment,
                                  const AddressSources& sources) {
  if (!environment.sglang_host_ip.empty()) return environment.sglang_host_ip;
  if (!environment.host_ip.empty()) return environment.host_ip;
  if (!environment.interface_name.empty()) {
    const std::vector<InterfaceAddress> addresses = sources.interface_addresses();
    if (auto found = choose_interface_address(addresses, environment.interface_name)) return *found;
  }
  if (auto found = sources.route_address()) return *found;
  if (auto found = sources.hostname_address(); found && !is_loopback(*found)) return *found;
  return Error{Errc::not_found,
               "this machine has no address that peers could use; set SGLANG_HOST_IP to one"};
}

}  // namespace baton::net
