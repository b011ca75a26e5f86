// Each ticket is a small story: wait, write, wait, complete; faults change the story.
#include "engine/faulty_engine.hpp"

#include <algorithm>
#include <utility>

#include "engine/regions.hpp"

namespace baton::engine {

FaultyEngine::FaultyEngine(std::unique_ptr<TransferEngine> inner, const FaultSettings& settings,
                           std::function<Instant()> now)
    : inner_(std::move(inner)), settings_(settings), now_(std::move(now)), random_(settings.seed) {}

FaultyEngine::~FaultyEngine() = default;

Result<RegionId> FaultyEngine::register_region(const Region& region) {
  return inner_->register_region(region);
}

Result<void> FaultyEngine::unregister_region(RegionId region) {
  return inner_->unregister_region(region);
}

Result<EnginePeer> FaultyEngine::connect(std::string_view descriptor) {
  const Result<EnginePeer> inner = inner_->connect(descriptor);
  if (!inner) return inner;
  const std::lock_guard lock(mutex_);
  for (auto& [peer, route] : routes_) {
    if (route.descriptor != descriptor || route.is_lost) continue;
    if (route.inner == *inner) return peer;
    route.is_lost = true;  // the inner engine lost it and has a fresh one
  }
  const EnginePeer peer{next_peer_++};
  routes_.emplace(peer, Route{*inner, std::string(descriptor), false});
  return peer;
}

void FaultyEngine::disconnect(EnginePeer peer) {
  const std::lock_guard lock(mutex_);
  const auto route = routes_.find(peer);
  if (route == routes_.end()) return;
  inner_->disconnect(route->second.inner);
  routes_.erase(route);
}

void FaultyEngine::drop_peer(EnginePeer peer) {
  const std::lock_guard lock(mutex_);
  if (const auto route = routes_.find(peer); route != routes_.end()) route->second.is_lost = true;
}

bool FaultyEngine::is_lost(EnginePeer peer) const {
  const std::lock_guard lock(mutex_);
  const auto route = routes_.find(peer);
  return route == routes_.end() || route->second.is_lost;
}

Fault FaultyEngine::draw_fault() {
  if (!scripted_.empty()) {
    const Fault fault = scripted_.front();
    scripted_.pop_front();
    return fault;
  }
  if (draw(settings_.fail_before_permille)) return Fault::fail_before;
  if (draw(settings_.fail_partly_permille)) return Fault::fail_partly;
  if (draw(settings_.fail_after_permille)) return Fault::fail_after;
  if (draw(settings_.stall_permille)) return Fault::stall;
  if (draw(settings_.unsettled_permille)) return Fault::unsettled;
  return Fault::none;
}

Duration FaultyEngine::draw_delay() {
  if (settings_.delay_max <= settings_.delay_min) return settings_.delay_min;
  const auto span = static_cast<std::uint64_t>((settings_.delay_max - settings_.delay_min).count());
  return settings_.delay_min + Duration(static_cast<Duration::rep>(random_() % (span + 1)));
}

Result<Admission> FaultyEngine::submit(Ticket ticket, EnginePeer peer, WriteBatch batch) {
  {
    const std::lock_guard lock(mutex_);
    if (!routes_.contains(peer)) {
      return Error{Errc::not_found, "peer " + std::to_string(peer.value) + " is not connected"};
    }
  }
  if (Result<void> usable = check_runs(batch); !usable) return usable.error();
  if (draw(settings_.busy_permille)) return Admission::busy;
  Work work;
  work.ticket = ticket;
  work.peer = peer;
  work.batch = batch;
  prepare(work);
  works_.push_back(std::move(work));
  return Admission::accepted;
}

void FaultyEngine::prepare(Work& work) {
  work.fault = draw_fault();
  work.due = now_() + draw_delay();
  work.ending = {work.ticket, Outcome::ok, {}, false};
  if (work.fault == Fault::stall) work.stage = Stage::stalled;
  if (work.fault == Fault::fail_partly) {
    for (const WriteRun& run : work.batch) {
      if (draw(500)) work.partial.push_back(run);
    }
  }
  if (work.fault == Fault::none && settings_.tamper != TamperMode::none &&
      draw(settings_.tamper_permille)) {
    work.tampered = tamper(settings_.tamper, work.batch, random_);
    if (work.tampered) ++tampered_count_;
  }
}

void FaultyEngine::cancel(Ticket ticket) {
  for (Work& work : works_) {
    if (work.ticket != ticket) continue;
    work.is_cancelled = true;
    if (work.stage == Stage::writing) inner_->cancel(work.inner_ticket);
  }
}

void FaultyEngine::release_stalled() {
  for (Work& work : works_) {
    if (work.stage == Stage::stalled) work.stage = Stage::delayed;
  }
}

std::size_t FaultyEngine::stalled_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(works_, [](const Work& work) { return work.stage == Stage::stalled; }));
}

WriteBatch FaultyEngine::runs_of(const Work& work) const {
  if (work.stage == Stage::late) return work.tampered->late_runs;
  if (work.fault == Fault::fail_partly) return work.partial;
  if (work.tampered) return work.tampered->runs;
  return work.batch;
}

void FaultyEngine::fail(Work& work, Error error, bool peer_lost) {
  work.ending = {work.ticket, Outcome::failed, std::move(error), peer_lost};
  work.stage = Stage::held;
}

// Hands the runs to the inner engine; stays in its stage while that is busy.
void FaultyEngine::start(Work& work) {
  EnginePeer inner;
  {
    const std::lock_guard lock(mutex_);
    const auto route = routes_.find(work.peer);
    if (route != routes_.end()) inner = route->second.inner;
  }
  work.inner_ticket = Ticket{next_ticket_};
  const Result<Admission> admission = inner_->submit(work.inner_ticket, inner, runs_of(work));
  if (!admission && work.stage == Stage::late) {
    work.stage = Stage::over;  // it has completed long ago
    return;
  }
  if (!admission) {
    fail(work, admission.error(), false);
    return;
  }
  if (*admission == Admission::busy) return;
  ++next_ticket_;
  work.stage = work.stage == Stage::late ? Stage::late_writing : Stage::writing;
}

void FaultyEngine::on_inner(const Completion& completion) {
  const auto work = std::ranges::find_if(works_, [&](const Work& candidate) {
    const bool is_inside =
        candidate.stage == Stage::writing || candidate.stage == Stage::late_writing;
    return is_inside && candidate.inner_ticket == completion.ticket;
  });
  if (work == works_.end()) return;
  if (work->stage == Stage::late_writing) {
    work->stage = Stage::over;
    return;
  }
  // The inner engine's own `unsettled` passes through; its `settled` ends the ticket as usual.
  work->ending = completion;
  work->ending.ticket = work->ticket;
  if (completion.outcome == Outcome::unsettled) {
    work->due = now_();
    return;
  }
  if (completion.outcome == Outcome::ok) {
    const bool fails = work->fault == Fault::fail_partly || work->fault == Fault::fail_after;
    if (fails) fail(*work, {Errc::io, "injected: failed after writing"}, false);
    if (is_lost(work->peer)) fail(*work, {Errc::unreachable, "injected: the peer is lost"}, true);
  }
  if (completion.outcome == Outcome::settled && !work->is_told_unsettled) {
    work->ending.outcome = Outcome::failed;  // both words came before we could pass on the first
  }
  if (work->is_told_unsettled) {
    work->ending.outcome = Outcome::settled;
    if (work->ending.error.text.empty()) work->ending.error = {Errc::io, "injected: unsettled"};
  }
  work->stage = Stage::held;
  work->due = now_() + draw_delay();
}

void FaultyEngine::advance(Work& work, std::vector<Completion>& out) {
  const bool is_waiting = work.stage == Stage::delayed || work.stage == Stage::stalled;
  if (is_waiting && is_lost(work.peer)) {
    fail(work, {Errc::unreachable, "injected: the peer is lost"}, true);
  } else if (is_waiting && work.is_cancelled && !work.is_told_unsettled) {
    fail(work, {Errc::closed, "the write was cancelled"}, false);
  }
  switch (work.stage) {
    case Stage::stalled:
    case Stage::late_writing:
    case Stage::held:
    case Stage::over: return;
    case Stage::writing:
      if (work.ending.outcome == Outcome::unsettled && !work.is_told_unsettled) {
        work.is_told_unsettled = true;
        out.push_back(work.ending);
      }
      return;
    case Stage::delayed:
    case Stage::late: break;
  }
  if (now_() < work.due) return;
  if (work.fault == Fault::fail_before) {
    fail(work, {Errc::io, "injected: failed before writing"}, false);
  } else if (work.fault == Fault::unsettled && !work.is_told_unsettled) {
    work.is_told_unsettled = true;
    work.due = now_() + settings_.late_by;
    out.push_back({work.ticket, Outcome::unsettled, {Errc::io, "injected: unsettled"}, false});
  } else {
    start(work);
  }
}

// Appends the completion of a held work that is due. The work ends, unless it has a late write.
void FaultyEngine::complete(Work& work, std::vector<Completion>& out) {
  if (work.is_told_unsettled) work.ending.outcome = Outcome::settled;
  out.push_back(work.ending);
  const bool has_late_write =
      work.ending.outcome == Outcome::ok && work.tampered && !work.tampered->late_runs.empty();
  work.stage = has_late_write ? Stage::late : Stage::over;
  work.due = now_() + settings_.late_by;
}

std::size_t FaultyEngine::progress(std::vector<Completion>& out) {
  const auto before = static_cast<std::ptrdiff_t>(out.size());
  for (Work& work : works_) advance(work, out);
  inner_completions_.clear();
  inner_->progress(inner_completions_);
  for (const Completion& completion : inner_completions_) on_inner(completion);
  for (auto work = works_.begin(); work != works_.end();) {
    if (work->stage == Stage::held && now_() >= work->due) complete(*work, out);
    work = work->stage == Stage::over ? works_.erase(work) : std::next(work);
  }
  if (settings_.shuffles_completions) {
    std::shuffle(out.begin() + before, out.end(), random_);
    // `unsettled` must stay in front of the `settled` of the same ticket.
    std::stable_partition(out.begin() + before, out.end(), [](const Completion& completion) {
      return completion.outcome != Outcome::settled;
    });
  }
  return out.size() - static_cast<std::size_t>(before);
}

}  // namespace baton::engine
