// `baton prefill`: a process that computes prompts and hands their KV cache over.
#include <chrono>
#include <optional>
#include <utility>

#include "baton/manager.hpp"
#include "cli/options.hpp"
#include "cli/prefill_scheduler.hpp"
#include "cli/service.hpp"
#include "engine/faulty_engine.hpp"

namespace baton::cli {

namespace {

constexpr std::string_view kRole = "prefill";

Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

// Late enough that decode has read everything before the held-back bytes land.
constexpr Duration kLateBy = std::chrono::seconds(2);
// Which bytes are hit follows from it; with this one the first KV pages are.
constexpr std::uint64_t kTamperSeed = 1;

std::unique_ptr<TransferEngine> tampered(std::unique_ptr<TransferEngine> engine,
                                         const std::string& mode) {
  engine::FaultSettings settings;
  settings.seed = kTamperSeed;
  settings.late_by = kLateBy;
  if (mode == "flip-bit") settings.tamper = engine::TamperMode::flip_bit;
  if (mode == "swap-pages") settings.tamper = engine::TamperMode::swap_targets;
  if (mode == "drop-page") settings.tamper = engine::TamperMode::drop_run;
  if (mode == "early-success") settings.tamper = engine::TamperMode::early_completion;
  return std::make_unique<engine::FaultyEngine>(std::move(engine), settings, &Clock::now);
}

}  // namespace

// The order of the locals is the order of construction: each is used by those below it.
int run_prefill(const PrefillOptions& options) {
  const Result<StopSignals> signals = StopSignals::create();
  if (!signals) return fail(kRole, signals.error().text);
  std::optional<ExitOnStop> starting(std::in_place, *signals);
  const Result<std::unique_ptr<Rank>> rank = Rank::create(options, 1);
  if (!rank) return fail(kRole, rank.error().text);
  Result<std::unique_ptr<TransferEngine>> engine = make_rank_engine(options);
  if (!engine) return fail(kRole, engine.error().text);
  if (!options.tamper.empty()) *engine = tampered(std::move(*engine), options.tamper);
  PrefillConfig config;
  config.host = options.host;
  config.kv = (*rank)->kv_args();
  config.bootstrap_address = options.bootstrap;
  config.bootstrap_timeout = seconds(options.bootstrap_timeout_seconds);
  const Result<std::unique_ptr<PrefillManager>> manager =
      PrefillManager::create(std::move(config), std::move(*engine));
  if (!manager) return fail(kRole, manager.error().text);
  PrefillScheduler scheduler(**rank, **manager, options.chunk_tokens);
  const Result<std::unique_ptr<net::HttpServer>> server =
      serve(kRole, options, **rank, [&](ServeRequest request, net::HttpResponder responder) {
        return scheduler.submit(std::move(request), std::move(responder));
      });
  if (!server) return fail(kRole, server.error().text);
  starting.reset();
  return announce_and_wait((*server)->address(), *signals);
}

}  // namespace baton::cli
