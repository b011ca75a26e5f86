// The transfer worker's loop: collect, plan, submit, progress, report, sleep.
#include "runtime/transfer_queue.hpp"

#include <poll.h>
#include <pthread.h>

#include <chrono>
#include <utility>

#include "plan/kv_plan.hpp"
#include "runtime/clock.hpp"

namespace baton::runtime {

namespace {

// How long stop() waits for writes in flight. An engine that is stuck for longer is left to its
// destructor, which must fence the memory.
constexpr Duration kStopTimeout = std::chrono::seconds(5);
// A safety net only: every reason to wake up has a descriptor.
constexpr int kSleepMilliseconds = 100;
// Planned writes with kept capacity, for reuse.
constexpr std::size_t kSpareWritesMax = 256;

}  // namespace

TransferQueue::TransferQueue(const KvArgs& local, TransferEngine& engine, Handlers handlers)
    : local_(local), engine_(engine), handlers_(std::move(handlers)) {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "baton-transfer");
}

TransferQueue::~TransferQueue() { stop(); }

void TransferQueue::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  wake_.raise();
  thread_.join();
}

void TransferQueue::run() {
  std::optional<Instant> give_up;
  while (true) {
    wake_.lower();
    plan_new();
    submit_planned();
    const bool progressed = report_ended();
    if (stopping_) {
      if (!give_up) give_up = now() + kStopTimeout;
      if ((open_.empty() && planned_.empty()) || now() >= *give_up) return;
    }
    if (!progressed) sleep();
  }
}

void TransferQueue::plan_new() {
  handlers_.collect(incoming_);
  for (const core::SubmitWrite& write : incoming_) {
    Result<Write> planned = plan(write);
    if (!planned) {
      fail(write.ticket, planned.error().text, false);
      continue;
    }
    planned_.push_back(std::make_unique<Write>(std::move(*planned)));
  }
}

void TransferQueue::submit_planned() {
  while (!planned_.empty()) {
    std::unique_ptr<Write>& write = planned_.front();
    const Result<Admission> admission =
        engine_.submit(write->ticket, write->engine_peer, write->runs);
    if (!admission) {
      fail(write->ticket, admission.error().text, true);
    } else if (*admission == Admission::busy) {
      return;  // back-pressure: again after progress() [E5]
    } else {
      open_.emplace(write->ticket, std::move(write));
    }
    planned_.pop_front();
  }
}

bool TransferQueue::report_ended() {
  if (open_.empty()) return false;
  completions_.clear();
  engine_.progress(completions_);
  for (Completion& completion : completions_) {
    const auto found = open_.find(completion.ticket);
    if (found == open_.end()) continue;  // an engine that breaks E1 must not break us
    Write& write = *found->second;
    if (completion.peer_lost) peers_.erase(write.session_id);
    const bool ok = completion.outcome == Outcome::ok;
    core::WriteDone done{completion.ticket, completion.outcome, std::move(completion.error.text),
                         !ok && completion.outcome != Outcome::settled, ok ? write.bytes : 0};
    if (completion.outcome != Outcome::unsettled) {
      if (spare_.size() < kSpareWritesMax) spare_.push_back(std::move(found->second));
      open_.erase(found);
    }
    handlers_.on_done(std::move(done));
  }
  return !completions_.empty();
}

void TransferQueue::sleep() const {
  pollfd descriptors[2] = {{wake_.descriptor(), POLLIN, 0}, {-1, POLLIN, 0}};
  int timeout = kSleepMilliseconds;
  if (!open_.empty()) {
    descriptors[1].fd = engine_.event_descriptor();
    if (descriptors[1].fd < 0) timeout = 0;  // such an engine must be polled
  }
  poll(descriptors, 2, timeout);
}

void TransferQueue::fail(Ticket ticket, const std::string& reason, bool session_broken) {
  handlers_.on_done(core::WriteDone{ticket, Outcome::failed, reason, session_broken, 0});
}

// --- planning -----------------------------------------------------------------------------------

Result<TransferQueue::Write> TransferQueue::plan(const core::SubmitWrite& write) {
  const Result<const Peer*> peer = peer_for(write.target);
  if (!peer) return peer.error();
  Write planned;
  if (!spare_.empty()) {
    planned = std::move(*spare_.back());
    spare_.pop_back();
    planned.runs.clear();
    planned.bytes = 0;
  }
  planned.ticket = write.ticket;
  planned.session_id = write.target->session_id;
  planned.engine_peer = (*peer)->engine_peer;
  if (const Result<void> done = plan_runs(write, **peer, planned.runs); !done) return done.error();
  for (const WriteRun& run : planned.runs) planned.bytes += run.length_bytes;
  return planned;
}

Result<void> TransferQueue::plan_runs(const core::SubmitWrite& write, const Peer& peer,
                                      std::vector<WriteRun>& runs) {
  const auto append = [&](std::span<const plan::BufferPair> pairs,
                          std::span<const PageIndex> source, std::span<const PageIndex> target) {
    page_runs_.clear();
    plan::coalesce(source, target, page_runs_);
    return plan::append_writes(pairs, page_runs_, runs);
  };
  switch (write.part) {
    case core::WritePart::kv: return append(peer.kv, write.source_pages, write.target_pages);
    case core::WritePart::aux: {
      const PageIndex source[] = {static_cast<PageIndex>(write.source_aux)};
      const PageIndex target[] = {static_cast<PageIndex>(write.target_aux)};
      return append(peer.aux, source, target);
    }
    case core::WritePart::state:
      for (const core::StateSlots& slots : write.state) {
        if (slots.component >= peer.state.size()) {
          return Error{Errc::invalid_argument,
                       "state component " + std::to_string(slots.component) +
                           " is sent, but only " + std::to_string(peer.state.size()) +
                           " are registered"};
        }
        const Result<void> done = append(peer.state[slots.component], slots.source, slots.target);
        if (!done) return done;
      }
      return {};
  }
  return {};
}

Result<const TransferQueue::Peer*> TransferQueue::peer_for(
    const std::shared_ptr<const Registration>& registration) {
  const auto found = peers_.find(registration->session_id);
  if (found != peers_.end() && found->second.registration == registration) return &found->second;
  Result<Peer> peer = pair_with(registration);
  if (!peer) return peer.error();
  return &(peers_[registration->session_id] = std::move(*peer));
}

Result<TransferQueue::Peer> TransferQueue::pair_with(
    const std::shared_ptr<const Registration>& registration) const {
  Peer peer;
  peer.registration = registration;
  Result<std::vector<plan::BufferPair>> kv = plan::pair_buffers(
      "KV", local_.kv, local_.kv_layer_ids,
      {registration->kv_ptrs, registration->kv_item_bytes_all, registration->kv_layer_ids});
  if (!kv) return kv.error();
  peer.kv = std::move(*kv);
  Result<std::vector<plan::BufferPair>> aux =
      plan::pair_buffers("aux", local_.aux, {}, {registration->aux_ptrs, {}, {}});
  if (!aux) return aux.error();
  peer.aux = std::move(*aux);
  if (registration->state_ptrs.size() != local_.state.size()) {
    return Error{Errc::incompatible, "prefill has " + std::to_string(local_.state.size()) +
                                         " state components, decode has " +
                                         std::to_string(registration->state_ptrs.size())};
  }
  for (std::size_t index = 0; index < local_.state.size(); ++index) {
    const StateComponent& component = local_.state[index];
    std::vector<std::uint64_t> sizes;
    if (index < registration->state_item_bytes.size()) {
      sizes.assign(registration->state_item_bytes[index].begin(),
                   registration->state_item_bytes[index].end());
    }
    std::vector<std::uint32_t> layer_ids;
    if (index < registration->state_layer_ids.size()) {
      layer_ids = registration->state_layer_ids[index];
    }
    Result<std::vector<plan::BufferPair>> state = plan::pair_buffers(
        "state " + std::string(to_string(component.kind)), component.tensors, component.layer_ids,
        {registration->state_ptrs[index], sizes, layer_ids});
    if (!state) return state.error();
    peer.state.push_back(std::move(*state));
  }
  const Result<EnginePeer> engine_peer = engine_.connect(registration->session_id);
  if (!engine_peer) return engine_peer.error();
  peer.engine_peer = *engine_peer;
  return peer;
}

}  // namespace baton::runtime
