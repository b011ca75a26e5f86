// How a prefill engine drives KvSender: open, poll, init, send per chunk, poll, clear.
#include "cli/prefill_scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/service.hpp"
#include "refengine/digest.hpp"

namespace baton::cli {

namespace {

// Nothing depends on it: every change of a room raises the manager's event. It bounds how late a
// client that went away is noticed.
constexpr Duration kSleepLongest = std::chrono::milliseconds(50);

std::string failure_text(const std::optional<Failure>& failure) {
  return failure ? failure->text : "the hand-off failed for an unknown reason";
}

}  // namespace

PrefillScheduler::PrefillScheduler(Rank& rank, PrefillManager& manager, std::size_t chunk_tokens)
    : rank_(rank), manager_(manager), chunk_tokens_(chunk_tokens), thread_([this] { run(); }) {}

PrefillScheduler::~PrefillScheduler() {
  stopping_ = true;
  intake_.wakeup().raise();
  thread_.join();
}

bool PrefillScheduler::submit(ServeRequest request, net::HttpResponder responder) {
  return intake_.put({std::move(request), std::move(responder)}, kWaitingMax);
}

void PrefillScheduler::run() {
  while (!stopping_) {
    manager_.clear_event();
    intake_.wakeup().clear();
    admit();
    is_short_ = false;
    for (Job& job : jobs_) advance(job);
    jobs_.remove_if([this](Job& job) { return is_over(job); });
    if (!compute_oldest()) {
      sleep_on(manager_.event_descriptor(), intake_.wakeup().descriptor(), kSleepLongest);
    }
  }
  jobs_.clear();
}

void PrefillScheduler::admit() {
  while (std::optional<Arrival> arrival = intake_.take()) {
    Result<KvSender> sender = manager_.open(arrival->request.room);
    if (!sender) {
      const int status = sender.error().code == Errc::already_exists ? 409 : 500;
      arrival->responder.respond(error_response(status, sender.error().text));
      continue;
    }
    jobs_.push_back({std::move(arrival->request),
                     std::move(arrival->responder),
                     std::move(*sender),
                     Phase::waiting,
                     {},
                     {},
                     std::nullopt,
                     0,
                     {}});
  }
}

void PrefillScheduler::advance(Job& job) {
  if (job.phase == Phase::draining) return;
  if (job.responder.client_gone()) job.sender.abort();
  const KvPoll status = job.sender.poll();
  if (status == KvPoll::failed) return fail(job, 502, failure_text(job.sender.failure()));
  switch (job.phase) {
    case Phase::waiting:
      if (status == KvPoll::waiting_for_input && !is_short_) allocate(job);
      break;
    case Phase::sending:
      if (status == KvPoll::success) succeed(job);
      break;
    case Phase::computing:
    case Phase::draining: break;
  }
}

void PrefillScheduler::allocate(Job& job) {
  const std::size_t tokens = job.request.generate.prompt.size();
  const std::size_t page_size = rank_.pool.shape().page_size;
  const std::size_t count = rank_.pages_for(tokens);
  if (rank_.pages.free_count() < count || rank_.aux_rows.free_count() == 0) {
    is_short_ = true;
    return;
  }
  job.pages = *rank_.pages.take(count);
  job.aux_row = *rank_.aux_rows.take(1);
  job.phase = Phase::computing;
  // Decode has the prefix; the prompt is computed whole all the same, only the rest is sent.
  job.pages_sent = job.sender.prefix_tokens() / page_size;
  if (job.pages_sent > count) return fail(job, 502, "decode claims a prefix beyond the prompt");
  const auto to_send = static_cast<std::uint32_t>(count - job.pages_sent);
  const auto aux_index = static_cast<std::uint32_t>(job.aux_row[0]);
  if (Result<void> done = job.sender.init(to_send, aux_index); !done) {
    return fail(job, 500, done.error().text);
  }
  job.sequence.emplace(rank_.model, rank_.pool, job.pages, 0);
}

bool PrefillScheduler::compute_oldest() {
  const auto oldest = std::find_if(jobs_.begin(), jobs_.end(),
                                   [](const Job& job) { return job.phase == Phase::computing; });
  if (oldest == jobs_.end()) return false;
  if (Result<void> done = compute_chunk(*oldest); !done) fail(*oldest, 500, done.error().text);
  return true;
}

// A page that this chunk begins and a later one fills goes with the later one.
Result<void> PrefillScheduler::compute_chunk(Job& job) {
  const std::vector<std::int32_t>& prompt = job.request.generate.prompt;
  const std::size_t first = job.sequence->tokens_count();
  const std::size_t wanted = chunk_tokens_ == 0 ? prompt.size() : chunk_tokens_;
  const std::size_t count = std::min(wanted, prompt.size() - first);
  Result<void> done = job.sequence->extend(std::span(prompt).subspan(first, count));
  if (!done) return done;
  const bool last = first + count == prompt.size();
  if (last) fill_aux(job);
  const std::size_t full = last ? job.pages.size() : (first + count) / rank_.pool.shape().page_size;
  const std::size_t begin = job.pages_sent;
  if (full <= begin && !last) return {};
  Chunk chunk;
  chunk.pages = std::span(job.pages).subspan(begin, full - begin);
  chunk.last = last;
  job.pages_sent = full;
  if (last) job.phase = Phase::sending;
  return job.sender.send(chunk);
}

void PrefillScheduler::fill_aux(Job& job) {
  const refengine::GenerateRequest& request = job.request.generate;
  const std::vector<float> logits = job.sequence->logits();
  job.reply.first_token = job.sequence->choose(logits, request.sampling);
  job.reply.logits_digest = refengine::logits_digest(logits);
  refengine::AuxRow row =
      refengine::make_aux_row(job.sequence->hidden(), logits, job.reply.first_token,
                              static_cast<std::int32_t>(request.prompt.size()));
  row.bootstrap_room[0] = job.request.room.value;
  rank_.aux.write(static_cast<std::uint32_t>(job.aux_row[0]), row);
}

void PrefillScheduler::succeed(Job& job) {
  const TransferMetric metric = job.sender.metric();
  job.reply.pages = metric.pages;
  job.reply.chunks = metric.chunks;
  job.reply.bytes = metric.bytes;
  if (metric.transfer_latency) {
    job.reply.transfer_seconds = std::chrono::duration<double>(*metric.transfer_latency).count();
  }
  if (metric.last_write_done) {
    job.reply.last_write_done_ns =
        std::chrono::nanoseconds(metric.last_write_done->time_since_epoch()).count();
  }
  net::HttpResponse response;
  response.content_type = net::kJsonContent;
  response.body = encode(job.reply);
  job.responder.respond(std::move(response));
  job.sender.clear();
  job.phase = Phase::draining;
}

void PrefillScheduler::fail(Job& job, int status, const std::string& text) {
  job.responder.respond(error_response(status, text));
  job.sender.clear();
  job.phase = Phase::draining;
}

// Pages go back only when no write reads them any more: that the request is over is not enough.
bool PrefillScheduler::is_over(Job& job) {
  if (job.phase != Phase::draining || !job.sender.quiesced()) return false;
  rank_.pages.give_back(job.pages);
  for (const PageIndex row : job.aux_row) rank_.aux.clear(static_cast<std::uint32_t>(row));
  rank_.aux_rows.give_back(job.aux_row);
  return true;
}

}  // namespace baton::cli
