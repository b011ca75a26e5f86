// BootstrapServer: where prefill ranks register and decode ranks find them. One per deployment.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "baton/result.hpp"

namespace baton {

class BootstrapServer {
 public:
  // Listens on host:port (port 0: any) and serves from one thread of its own until destroyed.
  // already_exists: the port is in use.
  static Result<std::unique_ptr<BootstrapServer>> start(const std::string& host,
                                                        std::uint16_t port);
  virtual ~BootstrapServer() = default;

  virtual std::uint16_t port() const = 0;
  virtual std::string address() const = 0;  // "host:port", IPv6 in brackets
};

}  // namespace baton
