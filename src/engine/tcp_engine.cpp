// The mooncake_tcp engine: shares one progress() call fairly between peers.
#include "engine/tcp_engine.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/address.hpp"
#include "engine/regions.hpp"
#include "engine/tcp_protocol.hpp"

namespace baton::engine {
namespace {

constexpr std::uint64_t kBudgetBytes = 8U << 20U;
constexpr std::size_t kTicketsOpenMax = 4096;

}  // namespace

Result<std::unique_ptr<TransferEngine>> TcpEngine::create(const EngineOptions& options) {
  auto server = tcp::TcpServer::start(Endpoint{options.host, options.port});
  if (!server) return server.error();
  Result<Waker> waker = Waker::create();
  if (!waker) return waker.error();
  const std::uint32_t lanes =
      std::clamp<std::uint32_t>(options.connections_per_peer, 1, tcp::TcpPeer::kLanesMax);
  return std::unique_ptr<TransferEngine>(
      new TcpEngine(std::move(*server), std::move(*waker), lanes));
}

TcpEngine::TcpEngine(std::unique_ptr<tcp::TcpServer> server, Waker waker, std::uint32_t lanes_count)
    : lanes_count_(lanes_count), server_(std::move(server)), waker_(std::move(waker)) {
  capabilities_.name = "mooncake_tcp";
  capabilities_.tickets_open_max = kTicketsOpenMax;
}

Result<RegionId> TcpEngine::register_region(const Region& region) {
  return server_->regions().add(region);
}

Result<void> TcpEngine::unregister_region(RegionId region) {
  const Result<Region> removed = server_->regions().remove(region);
  if (!removed) return removed.error();
  return {};
}

Result<EnginePeer> TcpEngine::connect(std::string_view descriptor) {
  const Result<Endpoint> endpoint = parse_endpoint(descriptor);
  if (!endpoint) return Error{Errc::malformed, endpoint.error().text};
  if (endpoint->port == 0) return Error{Errc::malformed, "descriptor with port 0"};
  return directory_.connect(descriptor);
}

void TcpEngine::disconnect(EnginePeer peer) { directory_.disconnect(peer); }

void TcpEngine::read_news() {
  if (!directory_.has_news()) return;
  const Instant now = Clock::now();
  for (const PeerDirectory::News& news : directory_.take_news()) {
    if (news.is_connect()) {
      // A peer needs to know no regions of ours to be written by us.
      const std::string metadata =
          tcp::encode_metadata({server_->name(), server_->data_port(), 2, server_->identity()}, {});
      peers_[news.peer] = std::make_unique<tcp::TcpPeer>(
          parse_endpoint(news.descriptor).value(), news.peer.value, lanes_count_, metadata, now);
      continue;
    }
    const auto peer = peers_.find(news.peer);
    if (peer != peers_.end()) peer->second->leave(now, waiting_);
  }
}

Result<Admission> TcpEngine::submit(Ticket ticket, EnginePeer peer, WriteBatch batch) {
  read_news();
  const auto entry = peers_.find(peer);
  if (entry == peers_.end() || entry->second->has_left()) {
    return Error{Errc::not_found, "peer " + std::to_string(peer.value) + " is not connected"};
  }
  if (Result<void> usable = check_runs(batch); !usable) return usable.error();
  if (open_count_ >= kTicketsOpenMax) return Admission::busy;
  ++open_count_;
  entry->second->submit(ticket, batch);
  waker_.set_work(true);
  return Admission::accepted;
}

void TcpEngine::cancel(Ticket ticket) {
  const Instant now = Clock::now();
  for (const auto& [id, peer] : peers_) peer->cancel(ticket, now, waiting_);
  if (!waiting_.empty()) waker_.set_work(true);
}

void TcpEngine::read_events() {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(waker_.epoll_descriptor(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == Waker::kOwnKey) continue;
    const auto peer = peers_.find(EnginePeer{tcp::TcpPeer::number_of(event.data.u64)});
    if (peer == peers_.end()) continue;
    peer->second->on_events(tcp::TcpPeer::channel_of(event.data.u64), event.events);
  }
}

std::size_t TcpEngine::progress(std::vector<Completion>& out) {
  const std::size_t before = out.size();
  read_news();
  read_events();
  take_turns(waiting_);
  for (Completion& completion : waiting_) {
    if (completion.outcome != Outcome::unsettled) --open_count_;
    out.push_back(std::move(completion));
  }
  waiting_.clear();
  std::erase_if(peers_, [](const auto& entry) { return entry.second->is_over(); });
  sleep_or_not();
  return out.size() - before;
}

// One turn for every peer, again and again, until nothing moves or the budget is spent.
void TcpEngine::take_turns(std::vector<Completion>& out) {
  const Instant now = Clock::now();
  std::uint64_t spent = 0;
  for (bool has_moved = true; has_moved && spent < kBudgetBytes;) {
    has_moved = false;
    for (const auto& [id, peer] : peers_) {
      const bool was_lost = peer->is_lost();
      const std::uint64_t moved = peer->advance(waker_, now, out);
      spent += moved;
      has_moved = has_moved || moved > 0;
      if (peer->is_lost() && !was_lost) directory_.forget(id);
    }
  }
}

// The waker stays readable while another progress() call would move something.
void TcpEngine::sleep_or_not() {
  bool has_work = directory_.has_news();
  std::optional<Instant> deadline;
  for (const auto& [id, peer] : peers_) {
    has_work = has_work || peer->can_advance();
    if (const auto wanted = peer->deadline(); wanted && (!deadline || *wanted < *deadline)) {
      deadline = wanted;
    }
  }
  waker_.set_work(has_work);
  waker_.set_deadline(deadline);
}

}  // namespace baton::engine
