// The life of one TCP peer: resolve, ask for metadata, write, and prove how broken writes ended.
#include "engine/tcp_peer.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace baton::engine::tcp {
namespace {

constexpr auto kConnectTime = std::chrono::seconds(10);
// Between attempts to open lanes after one broke.
constexpr auto kReopenPause = std::chrono::milliseconds(20);
// Without an open lane or an answer for so long, the peer counts as lost.
constexpr auto kGiveUpTime = std::chrono::seconds(10);
// Lanes can share a run that is longer than this.
constexpr std::uint64_t kSharedSliceBytes = 1U << 20U;
constexpr std::uint64_t kSoleSliceBytes = 16U << 20U;
constexpr std::uint32_t kMetadataChannel = 254;
constexpr std::uint32_t kFenceChannel = 255;

std::string cause_text(int cause) {
  return cause == 0 ? "the peer closed the connection"
                    : "the connection broke: " + std::generic_category().message(cause);
}

}  // namespace

TcpPeer::TcpPeer(Endpoint rpc, std::uint32_t number, std::uint32_t lanes_count,
                 std::string metadata, Instant now)
    : rpc_(std::move(rpc)),
      number_(number),
      metadata_(std::move(metadata)),
      give_up_at_(now + kConnectTime),
      resolver_(rpc_),
      book_(lanes_count > 1 ? kSharedSliceBytes : kSoleSliceBytes, true),
      lanes_(lanes_count) {}

void TcpPeer::cancel(Ticket ticket, Instant now, std::vector<Completion>& out) {
  book_.doom_ticket(ticket, {Errc::closed, "the write was cancelled"}, now, out);
}

void TcpPeer::leave(Instant now, std::vector<Completion>& out) {
  has_left_ = true;
  book_.doom_all({Errc::closed, name() + " was disconnected"}, false, now, out);
}

void TcpPeer::on_events(std::uint32_t channel, std::uint32_t epoll_events) {
  if (channel < lanes_.size()) lanes_[channel].on_events(epoll_events);
}

bool TcpPeer::has_open_lane() const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.state() == Lane::State::open; });
}

std::uint64_t TcpPeer::advance(Waker& waker, Instant now, std::vector<Completion>& out) {
  std::uint64_t moved = 0;
  switch (state_) {
    case State::resolving: resolve(waker, now, out); break;
    case State::asking: ask(now, out); break;
    case State::ready: moved = run_lanes(waker, now, out); break;
    case State::lost: book_.doom_all(loss_, true, now, out); break;
  }
  if (fence_) question(waker, now, out);
  book_.report_unsettled(now, out);
  return moved;
}

void TcpPeer::resolve(Waker& waker, Instant now, std::vector<Completion>& out) {
  const std::optional<Result<SocketAddress>> address = resolver_->poll();
  if (!address) {
    if (now >= give_up_at_) end({Errc::timeout, name() + ": the name look-up hangs"}, now, out);
    return;
  }
  if (!*address) return end((*address).error(), now, out);
  address_ = **address;
  call_.emplace(address_, RpcCall::Question{RpcType::metadata, metadata_}, give_up_at_, waker,
                key(kMetadataChannel));
  state_ = State::asking;
  ask(now, out);
}

void TcpPeer::ask(Instant now, std::vector<Completion>& out) {
  const std::optional<Result<RpcCall::Answer>> answer = call_->advance(now);
  if (!answer) return;
  call_.reset();
  if (!*answer) return end((*answer).error(), now, out);
  Result<Metadata> metadata = decode_metadata((*answer)->json);
  if (!metadata) {
    return end({metadata.error().code, name() + ": " + metadata.error().text}, now, out);
  }
  target_ = {address_, metadata->data_port, metadata->identity};
  book_.set_protocol(metadata->protocol_version);
  for (Lane& lane : lanes_) lane.set_protocol(metadata->protocol_version);
  state_ = State::ready;
}

std::uint64_t TcpPeer::run_lanes(Waker& waker, Instant now, std::vector<Completion>& out) {
  if (book_.has_pieces()) open_lanes(waker, now);
  std::uint64_t moved = 0;
  for (Lane& lane : lanes_) {
    if (lane.state() == Lane::State::connecting && now >= lane.deadline()) {
      lane.break_off(ETIMEDOUT);
    }
    if (lane.state() == Lane::State::open && !lane.is_broken()) {
      if (book_.has_pieces() && lane.wants_pieces()) book_.feed(lane, now, out);
      moved += lane.advance(acknowledged_);
      moved += acknowledged_.size();
      for (const std::uint32_t slot : acknowledged_) book_.settle_piece(slot, out);
      acknowledged_.clear();
    }
    if (lane.is_broken()) on_break(lane, now, out);
    if (state_ == State::lost) break;
  }
  return moved;
}

void TcpPeer::open_lanes(Waker& waker, Instant now) {
  if (now < reopen_at_) return;
  const SocketAddress data = with_port(address_, target_.data_port);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].state() != Lane::State::closed || lanes_[i].is_broken()) continue;
    lanes_[i].open(data, waker, key(static_cast<std::uint32_t>(i)), now + kConnectTime);
  }
}

// See tcp_fence.hpp for what is proven when.
void TcpPeer::on_break(Lane& lane, Instant now, std::vector<Completion>& out) {
  Lane::Break broken = lane.take_break();
  if (broken.was_rejected) {
    const std::uint32_t slot = broken.unanswered.front().slot;
    book_.doom(slot, {Errc::invalid_argument, name() + ": the target address is in no region"},
               false, now, out);
    book_.settle_piece(slot, out);
  } else {
    const Error error{Errc::io, name() + ": " + cause_text(broken.cause)};
    Doubt doubt{broken.local_name, broken.cause == 0, {}};
    for (const Piece& piece : broken.unanswered) {
      book_.doom(piece.slot, error, false, now, out);
      doubt.slots.push_back(piece.slot);
    }
    if (!doubt.slots.empty()) doubts_.push_back(std::move(doubt));
    reopen_at_ = now + kReopenPause;
    start_fence(now);
  }
  for (const Piece& piece : broken.unsent) book_.retry(piece, out);
}

void TcpPeer::start_fence(Instant now) {
  std::vector<std::string> connections;
  for (const Doubt& doubt : doubts_) {
    if (!doubt.is_quiet) connections.push_back(doubt.connection);
  }
  if (fence_) {
    fence_->set_connections(std::move(connections));
  } else {
    fence_.emplace(target_, std::move(connections));
    fence_give_up_at_ = now + kGiveUpTime;
  }
}

void TcpPeer::question(Waker& waker, Instant now, std::vector<Completion>& out) {
  switch (fence_->advance(now, waker, key(kFenceChannel))) {
    case Fence::Verdict::unknown:
      if (state_ != State::lost && now >= fence_give_up_at_ && !has_open_lane()) {
        give_up({Errc::timeout, name() + ": no answer; last: " + fence_->reason()}, now, out);
      }
      return;
    case Fence::Verdict::quiet: settle_doubts(false, out); break;
    case Fence::Verdict::alive:
      settle_doubts(true, out);
      fence_give_up_at_ = now + kGiveUpTime;
      break;
    case Fence::Verdict::gone:
      end({Errc::unreachable, name() + " is gone: " + fence_->reason()}, now, out);
      break;
  }
  if (doubts_.empty()) fence_.reset();
}

void TcpPeer::settle_doubts(bool only_quiet, std::vector<Completion>& out) {
  std::vector<Doubt> settled;
  for (auto doubt = doubts_.begin(); doubt != doubts_.end();) {
    if (only_quiet && !doubt->is_quiet) {
      ++doubt;
      continue;
    }
    settled.push_back(std::move(*doubt));
    doubt = doubts_.erase(doubt);
  }
  for (const Doubt& doubt : settled) {
    for (const std::uint32_t slot : doubt.slots) book_.settle_piece(slot, out);
  }
}

void TcpPeer::end(const Error& error, Instant now, std::vector<Completion>& out) {
  state_ = State::lost;
  loss_ = error;
  doubts_.clear();
  book_.doom_all(error, true, now, out);
  book_.settle_all(out);
  lanes_.clear();
}

void TcpPeer::give_up(const Error& error, Instant now, std::vector<Completion>& out) {
  state_ = State::lost;
  loss_ = error;
  settle_doubts(true, out);
  book_.doom_all(error, true, now, out);
  lanes_.clear();
}

bool TcpPeer::can_advance() const {
  if (state_ == State::lost) return book_.open_count() > 0 && doubts_.empty();
  if (state_ != State::ready) return false;
  return std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
    const bool can_feed =
        lane.state() == Lane::State::open && book_.has_pieces() && lane.wants_pieces();
    const bool can_open = lane.state() == Lane::State::closed && book_.has_pieces() && !fence_;
    return lane.can_advance() || can_feed || can_open;
  });
}

std::optional<Instant> TcpPeer::deadline() const {
  std::optional<Instant> earliest = book_.deadline();
  const auto consider = [&](Instant instant) {
    if (!earliest || instant < *earliest) earliest = instant;
  };
  if (state_ == State::resolving) consider(Clock::now() + std::chrono::milliseconds(5));
  if (call_) consider(call_->deadline());
  if (fence_) consider(fence_->deadline());
  if (state_ == State::ready && book_.has_pieces() && reopen_at_ != Instant{}) consider(reopen_at_);
  for (const Lane& lane : lanes_) {
    if (lane.state() == Lane::State::connecting) consider(lane.deadline());
  }
  return earliest;
}

}  // namespace baton::engine::tcp
