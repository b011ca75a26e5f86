// `baton decode`: a process that receives KV cache and generates from it.
#include <chrono>
#include <optional>
#include <utility>

#include "baton/manager.hpp"
#include "cli/decode_scheduler.hpp"
#include "cli/options.hpp"
#include "cli/service.hpp"

namespace baton::cli {

namespace {

constexpr std::string_view kRole = "decode";

}  // namespace

// The order of the locals is the order of construction: each is used by those below it.
int run_decode(const DecodeOptions& options) {
  const Result<StopSignals> signals = StopSignals::create();
  if (!signals) return fail(kRole, signals.error().text);
  std::optional<ExitOnStop> starting(std::in_place, *signals);
  const Result<std::unique_ptr<Rank>> rank = Rank::create(options, 2);
  if (!rank) return fail(kRole, rank.error().text);
  Result<std::unique_ptr<TransferEngine>> engine = make_rank_engine(options);
  if (!engine) return fail(kRole, engine.error().text);
  DecodeConfig config;
  config.host = options.host;
  config.kv = (*rank)->kv_args();
  config.waiting_timeout = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(options.waiting_timeout_seconds));
  const Result<std::unique_ptr<DecodeManager>> manager =
      DecodeManager::create(std::move(config), std::move(*engine));
  if (!manager) return fail(kRole, manager.error().text);
  DecodeScheduler scheduler(**rank, **manager);
  const Result<std::unique_ptr<net::HttpServer>> server =
      serve(kRole, options, **rank, [&](ServeRequest request, net::HttpResponder responder) {
        return scheduler.submit(std::move(request), std::move(responder));
      });
  if (!server) return fail(kRole, server.error().text);
  starting.reset();
  return announce_and_wait((*server)->address(), *signals);
}

}  // namespace baton::cli
