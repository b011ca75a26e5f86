// Joins the Registry to its HTTP server; all of it runs on the server's one thread.
#include "bootstrap/server.hpp"

#include <utility>

namespace baton {

namespace bootstrap {

namespace {

class RunningServer : public BootstrapServer {
 public:
  static Result<std::unique_ptr<BootstrapServer>> start(const ServerOptions& options) {
    auto server = std::unique_ptr<RunningServer>(new RunningServer(options.registry));
    auto http = net::HttpServer::start(
        options.http, [registry = &server->registry_](const net::HttpRequest& request,
                                                      net::HttpResponder responder) {
          responder.respond(registry->handle(request, Clock::now()));
        });
    if (!http) return http.error();
    server->http_ = std::move(http.value());
    return std::unique_ptr<BootstrapServer>(std::move(server));
  }

  std::uint16_t port() const override { return http_->port(); }
  std::string address() const override { return http_->address(); }

 private:
  explicit RunningServer(const RegistryOptions& options) : registry_(options) {}

  Registry registry_;                      // server thread only
  std::unique_ptr<net::HttpServer> http_;  // last: its destructor ends that thread
};

}  // namespace

Result<std::unique_ptr<BootstrapServer>> start_server(const ServerOptions& options) {
  return RunningServer::start(options);
}

}  // namespace bootstrap

Result<std::unique_ptr<BootstrapServer>> BootstrapServer::start(const std::string& host,
                                                                std::uint16_t port) {
  bootstrap::ServerOptions options;
  options.http.host = host;
  options.http.port = port;
  options.http.thread_name = "baton-bootstrap";
  return bootstrap::start_server(options);
}

}  // namespace baton
