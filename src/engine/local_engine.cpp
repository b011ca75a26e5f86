// The local engine: shares one progress() call fairly between peers and batches.
#include "engine/local_engine.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "engine/regions.hpp"

namespace baton::engine {
namespace {

constexpr std::uint64_t kBudgetBytes = 8U << 20U;
constexpr std::size_t kTicketsOpenMax = 4096;

Result<LocalDescriptor> make_descriptor() {
  std::array<std::uint8_t, 16> nonce{};
  if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    return system_error("getrandom", errno);
  }
  std::string text = "local-";
  for (const std::uint8_t byte : nonce) {
    text += "0123456789abcdef"[byte / 16];
    text += "0123456789abcdef"[byte % 16];
  }
  return parse_local_descriptor(text + ":" + std::to_string(::getpid()));
}

}  // namespace

Result<std::unique_ptr<TransferEngine>> LocalEngine::create() {
  Result<LocalDescriptor> descriptor = make_descriptor();
  if (!descriptor) return descriptor.error();
  auto service = LocalService::start(descriptor->socket_name);
  if (!service) return service.error();
  Result<Waker> waker = Waker::create();
  if (!waker) return waker.error();
  return std::unique_ptr<TransferEngine>(
      new LocalEngine(std::move(*descriptor), std::move(*service), std::move(*waker)));
}

LocalEngine::LocalEngine(LocalDescriptor descriptor, std::unique_ptr<LocalService> service,
                         Waker waker)
    : descriptor_(std::move(descriptor)), service_(std::move(service)), waker_(std::move(waker)) {
  capabilities_.name = "local";
  capabilities_.tickets_open_max = kTicketsOpenMax;
}

Result<RegionId> LocalEngine::register_region(const Region& region) {
  return service_->add(region);
}

Result<void> LocalEngine::unregister_region(RegionId region) { return service_->remove(region); }

Result<EnginePeer> LocalEngine::connect(std::string_view descriptor) {
  if (const auto parsed = parse_local_descriptor(descriptor); !parsed) return parsed.error();
  return directory_.connect(descriptor);
}

void LocalEngine::disconnect(EnginePeer peer) { directory_.disconnect(peer); }

void LocalEngine::read_news() {
  if (!directory_.has_news()) return;
  for (const PeerDirectory::News& news : directory_.take_news()) {
    if (news.is_connect()) {
      peers_[news.peer] = std::make_unique<LocalPeer>(
          parse_local_descriptor(news.descriptor).value(), news.peer.value, Clock::now());
      continue;
    }
    const auto peer = peers_.find(news.peer);
    if (peer == peers_.end()) continue;
    peer->second->fail_all({Errc::closed, "the peer was disconnected"}, false, waiting_);
    peers_.erase(peer);
  }
}

Result<Admission> LocalEngine::submit(Ticket ticket, EnginePeer peer, WriteBatch batch) {
  read_news();
  const auto entry = peers_.find(peer);
  if (entry == peers_.end()) {
    return Error{Errc::not_found, "peer " + std::to_string(peer.value) + " is not connected"};
  }
  if (Result<void> usable = check_runs(batch); !usable) return usable.error();
  if (open_count_ >= kTicketsOpenMax) return Admission::busy;
  ++open_count_;
  entry->second->submit(ticket, batch);
  waker_.set_work(true);
  return Admission::accepted;
}

void LocalEngine::cancel(Ticket ticket) {
  for (const auto& [id, peer] : peers_) peer->cancel(ticket);
}

void LocalEngine::refresh_peers() {
  const Instant now = Clock::now();
  for (const auto& [id, peer] : peers_) {
    if (peer->is_lost()) continue;
    peer->refresh(waker_, now);
    if (peer->is_lost()) directory_.forget(id);
  }
}

std::size_t LocalEngine::progress(std::vector<Completion>& out) {
  read_news();
  const std::size_t before = out.size();
  if (open_count_ > 0) {
    refresh_peers();
    copy_until_budget(out);
    out.insert(out.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
  }
  const std::size_t count = out.size() - before;
  open_count_ -= count;
  sleep_or_not();
  return count;
}

// One slice for every peer in turn, so that neither a huge batch nor a busy peer starves others.
void LocalEngine::copy_until_budget(std::vector<Completion>& out) {
  std::uint64_t spent = 0;
  for (bool has_copied = true; has_copied && spent < kBudgetBytes;) {
    has_copied = false;
    for (const auto& [id, peer] : peers_) {
      if (peer->is_lost()) {
        // Copies are synchronous, so a lost peer's batches are quiesced.
        peer->fail_all(peer->loss(), true, out);
      } else if (peer->can_copy()) {
        spent += peer->copy_slice(out);
        if (peer->is_lost()) directory_.forget(id);
        has_copied = true;
      }
    }
  }
}

// The waker stays readable while another progress() call would copy or complete something.
void LocalEngine::sleep_or_not() {
  bool has_work = directory_.has_news();
  std::optional<Instant> deadline;
  for (const auto& [id, peer] : peers_) {
    if (!peer->has_open()) continue;
    has_work = has_work || peer->can_copy() || peer->is_lost();
    if (const auto wanted = peer->deadline(); wanted && (!deadline || *wanted < *deadline)) {
      deadline = wanted;
    }
  }
  waker_.set_work(has_work);
  waker_.set_deadline(deadline);
}

}  // namespace baton::engine
