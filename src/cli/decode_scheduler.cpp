// How a decode engine drives KvReceiver: open, poll, publish, poll, check the aux row, clear.
#include "cli/decode_scheduler.hpp"

#include <chrono>
#include <utility>

#include "cli/service.hpp"
#include "refengine/digest.hpp"

namespace baton::cli {

namespace {

// See PrefillScheduler.
constexpr Duration kSleepLongest = std::chrono::milliseconds(50);
// While a row is awaited that Success promised, nothing else will wake us.
constexpr Duration kSleepForRow = std::chrono::milliseconds(1);
// How long after Success the aux row may be missing before that is called a failure.
constexpr Duration kRowTimeout = std::chrono::seconds(5);

std::string failure_text(const std::optional<Failure>& failure) {
  return failure ? failure->text : "the hand-off failed for an unknown reason";
}

}  // namespace

DecodeScheduler::DecodeScheduler(Rank& rank, DecodeManager& manager)
    : rank_(rank), manager_(manager), thread_([this] { run(); }) {}

DecodeScheduler::~DecodeScheduler() {
  stopping_ = true;
  intake_.wakeup().raise();
  thread_.join();
}

bool DecodeScheduler::submit(ServeRequest request, net::HttpResponder responder) {
  return intake_.put({std::move(request), std::move(responder)}, kWaitingMax);
}

void DecodeScheduler::run() {
  while (!stopping_) {
    manager_.clear_event();
    intake_.wakeup().clear();
    admit();
    is_short_ = false;
    bool is_generating = false;
    bool awaits_row = false;
    for (Job& job : jobs_) {
      advance(job);
      if (job.phase == Phase::generating) is_generating |= generate_one(job);
      awaits_row |= job.phase == Phase::receiving && job.succeeded_at.has_value();
    }
    jobs_.remove_if([this](Job& job) { return is_over(job); });
    if (is_generating) continue;
    sleep_on(manager_.event_descriptor(), intake_.wakeup().descriptor(),
             awaits_row ? kSleepForRow : kSleepLongest);
  }
  jobs_.clear();
}

void DecodeScheduler::admit() {
  while (std::optional<Arrival> arrival = intake_.take()) {
    if (arrival->request.bootstrap.empty()) {
      arrival->responder.respond(error_response(400, "the request: \"bootstrap\" is missing"));
      continue;
    }
    Result<KvReceiver> receiver = manager_.open(arrival->request.room, arrival->request.bootstrap);
    if (!receiver) {
      const int status = receiver.error().code == Errc::already_exists ? 409 : 500;
      arrival->responder.respond(error_response(status, receiver.error().text));
      continue;
    }
    net::HttpResponse head;
    head.content_type = "application/x-ndjson";
    arrival->responder.begin(std::move(head));
    jobs_.push_back({std::move(arrival->request),
                     std::move(arrival->responder),
                     std::move(*receiver),
                     Phase::waiting,
                     {},
                     {},
                     std::nullopt,
                     std::nullopt,
                     0,
                     0,
                     {},
                     {}});
  }
}

void DecodeScheduler::advance(Job& job) {
  if (job.phase == Phase::draining) return;
  if (job.responder.client_gone()) {
    job.receiver.abort();
    return fail(job, "the client went away");
  }
  if (job.phase == Phase::generating) return;
  const KvPoll status = job.receiver.poll();
  if (status == KvPoll::failed) return fail(job, failure_text(job.receiver.failure()));
  switch (job.phase) {
    case Phase::waiting:
      if (status == KvPoll::waiting_for_input && !is_short_) allocate(job);
      break;
    case Phase::receiving:
      if (status == KvPoll::success) on_success(job);
      break;
    case Phase::generating:
    case Phase::draining: break;
  }
}

void DecodeScheduler::allocate(Job& job) {
  const refengine::GenerateRequest& request = job.request.generate;
  // The last token is sampled and never computed.
  const std::size_t count = rank_.pages_for(request.prompt.size() + request.tokens_count - 1);
  if (rank_.pages.free_count() < count || rank_.aux_rows.free_count() == 0) {
    is_short_ = true;
    return;
  }
  job.pages = *rank_.pages.take(count);
  job.aux_row = *rank_.aux_rows.take(1);
  job.phase = Phase::receiving;
  Destination destination;
  destination.pages = std::span(job.pages).first(rank_.pages_for(request.prompt.size()));
  destination.aux_index = static_cast<std::uint32_t>(job.aux_row[0]);
  if (Result<void> done = job.receiver.publish(destination); !done) {
    fail(job, done.error().text);
  }
}

// Success says that prefill's writes have landed; the room word says so for the row itself. Zero is
// "not yet", another room's number is somebody else's row.
void DecodeScheduler::on_success(Job& job) {
  const Instant now = Clock::now();
  if (!job.succeeded_at) job.succeeded_at = now;
  const auto row = static_cast<std::uint32_t>(job.aux_row[0]);
  switch (rank_.aux.check(row, job.request.room)) {
    case refengine::RoomWord::arrived: return commit(job);
    case refengine::RoomWord::corrupt:
      return fail(job, "aux row " + std::to_string(row) + " of room " +
                           std::to_string(job.request.room.value) + " holds room " +
                           std::to_string(rank_.aux.room_word(row)) +
                           ": the transfer was misdirected");
    case refengine::RoomWord::not_yet:
      if (now - *job.succeeded_at < kRowTimeout) return;
      return fail(job, "the aux row of room " + std::to_string(job.request.room.value) +
                           " did not arrive although prefill reported Success");
  }
}

void DecodeScheduler::commit(Job& job) {
  const auto row_index = static_cast<std::uint32_t>(job.aux_row[0]);
  const refengine::AuxRow row = rank_.aux.read(row_index);
  const std::size_t prompt_tokens = job.request.generate.prompt.size();
  job.done.success_seen_ns = std::chrono::nanoseconds(job.succeeded_at->time_since_epoch()).count();
  job.done.kv_digests = refengine::kv_digests(rank_.pool, job.pages, prompt_tokens);
  job.done.aux_digest = refengine::bytes_digest(refengine::aux_bytes(row));
  job.done.room_word = row.bootstrap_room[0];
  job.receiver.clear();
  job.sequence.emplace(rank_.model, rank_.pool, job.pages, prompt_tokens);
  job.phase = Phase::generating;
  emit(job, row.output_ids[0]);
}

// False: the request is over.
bool DecodeScheduler::generate_one(Job& job) {
  const refengine::GenerateRequest& request = job.request.generate;
  if (job.tokens_count == request.tokens_count || job.token == refengine::Tokenizer::kEos) {
    finish(job);
    return false;
  }
  if (Result<void> done = job.sequence->extend({&job.token, 1}); !done) {
    fail(job, done.error().text);
    return false;
  }
  const std::vector<float> logits = job.sequence->logits();
  job.done.logits_digests.push_back(refengine::logits_digest(logits));
  emit(job, job.sequence->choose(logits, request.sampling));
  return true;
}

void DecodeScheduler::emit(Job& job, std::int32_t token) {
  job.token = token;
  ++job.tokens_count;
  const std::string text = job.text.push(rank_.tokenizer.bytes(token));
  job.responder.write(encode(DecodeLine(TokenLine{token, text})) + "\n");
}

void DecodeScheduler::finish(Job& job) {
  job.done.text = job.text.finish();
  job.responder.write(encode(DecodeLine(std::move(job.done))) + "\n");
  job.responder.end();
  job.phase = Phase::draining;
}

void DecodeScheduler::fail(Job& job, const std::string& text) {
  job.responder.write(encode(DecodeLine(ErrorLine{text})) + "\n");
  job.responder.end();
  job.receiver.clear();
  job.phase = Phase::draining;
}

// Pages go back only when prefill cannot write into them any more: that the request is over is not
// enough. The aux row is zeroed, or its old room word would look like an arrival.
bool DecodeScheduler::is_over(Job& job) {
  if (job.phase != Phase::draining || !job.receiver.quiesced()) return false;
  rank_.pages.give_back(job.pages);
  for (const PageIndex row : job.aux_row) rank_.aux.clear(static_cast<std::uint32_t>(row));
  rank_.aux_rows.give_back(job.aux_row);
  return true;
}

}  // namespace baton::cli
