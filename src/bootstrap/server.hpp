// The bootstrap server as a process runs it: a Registry behind an HttpServer.
#pragma once

#include <memory>

#include "baton/bootstrap.hpp"
#include "baton/result.hpp"
#include "bootstrap/registry.hpp"
#include "net/http_server.hpp"

namespace baton::bootstrap {

struct ServerOptions {
  net::HttpServerOptions http;
  RegistryOptions registry;
};

// BootstrapServer::start with everything open to choice.
Result<std::unique_ptr<BootstrapServer>> start_server(const ServerOptions& options);

}  // namespace baton::bootstrap
