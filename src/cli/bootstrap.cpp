// `baton bootstrap`: the bootstrap server as a process.
#include "baton/bootstrap.hpp"

#include "cli/options.hpp"
#include "cli/service.hpp"

namespace baton::cli {

int run_bootstrap(const BootstrapOptions& options) {
  constexpr std::string_view kRole = "bootstrap";
  const Result<StopSignals> signals = StopSignals::create();
  if (!signals) return fail(kRole, signals.error().text);
  const Result<std::unique_ptr<BootstrapServer>> server =
      BootstrapServer::start(options.host, options.port);
  if (!server) return fail(kRole, server.error().text);
  return announce_and_wait((*server)->address(), *signals);
}

}  // namespace baton::cli
