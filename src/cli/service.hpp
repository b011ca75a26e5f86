// What the prefill and the decode process have in common: engine, HTTP, and waiting for the end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "baton/engine.hpp"
#include "baton/result.hpp"
#include "cli/messages.hpp"
#include "cli/options.hpp"
#include "cli/rank.hpp"
#include "cli/signals.hpp"
#include "net/http_server.hpp"

namespace baton::cli {

// Requests that wait to be looked at; beyond, the client is told to come back later.
constexpr std::size_t kWaitingMax = 1024;

// Prints "baton ROLE: text" on stderr and answers kExitFailed.
int fail(std::string_view role, const std::string& text);

Result<std::unique_ptr<TransferEngine>> make_rank_engine(const RankOptions& options);

net::HttpResponse error_response(int status, const std::string& text);

// Serves GET /health and POST /generate; a request that parses and fits goes to `submit`, which
// answers false when too many wait. `rank` and what `submit` uses must outlive the server.
using Submit = std::function<bool(ServeRequest, net::HttpResponder)>;
Result<std::unique_ptr<net::HttpServer>> serve(std::string_view role, const RankOptions& options,
                                               const Rank& rank, Submit submit);

// Tells whoever started us where we serve ("ready HOST:PORT"), and waits for SIGINT or SIGTERM.
int announce_and_wait(const std::string& address, const StopSignals& signals);

}  // namespace baton::cli
