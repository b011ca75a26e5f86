// Which address of this machine peers should be told: environment, interface, route, host name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "baton/result.hpp"

namespace baton::net {

// The variables that decide, as text; unset and empty mean the same. [spec 8.2]
struct AddressEnvironment {
  std::string sglang_host_ip;  // SGLANG_HOST_IP: taken verbatim
  std::string host_ip;         // HOST_IP: likewise
  std::string interface_name;  // SGLANG_LOCAL_IP_NIC
};

AddressEnvironment read_address_environment();

struct InterfaceAddress {
  std::string interface_name;
  std::string address;  // IPv6 possibly with a "%scope"
};

// The first usable address of that interface: IPv4 but loopback, else IPv6 but link-local and
// loopback, without its scope.
std::optional<std::string> choose_interface_address(std::span<const InterfaceAddress> addresses,
                                                    const std::string& interface_name);

// What this machine can be asked for; tests replace it.
class AddressSources {
 public:
  virtual ~AddressSources() = default;
  virtual std::vector<InterfaceAddress> interface_addresses() const = 0;
  // The source address of packets to the internet. Nothing is sent.
  virtual std::optional<std::string> route_address() const = 0;
  // What this host's name resolves to.
  virtual std::optional<std::string> hostname_address() const = 0;
};

const AddressSources& system_address_sources();

// not_found: none of the sources has an address that peers could use.
Result<std::string> local_address(const AddressEnvironment& environment,
                                  const AddressSources& sources = system_address_sources());

}  // namespace baton::net
