// Serving WRITE and READ requests of protocol 1 and 2. [spec 4.3]
#include "engine/tcp_data_session.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <utility>

#include "engine/remote_write.hpp"

namespace baton::engine::tcp {
namespace {

// One client's turn, so that a thousand connections share the thread.
constexpr std::uint64_t kBudgetBytes = 2U << 20U;
constexpr std::uint64_t kRequestCost = 256;  // of the budget, beside the bytes
// The longest stretch received under the lock that unregister_region waits for.
constexpr std::uint64_t kReceiveBytesMax = 1U << 20U;
// Up to this, a copy out of a small buffer is cheaper than a system call for each payload: at 4 KiB
// the rate is 1.4 times as high (bench/engine_bench.cpp); from 16 KiB on it makes no difference.
constexpr std::uint64_t kSmallPayload = 8192;
constexpr std::size_t kStagedBytes = 32U << 10U;
// Acknowledgements are sent together once the input is drained, or at this size.
constexpr std::size_t kOutboxFlushBytes = 2048;
// A client that sends requests but reads no answers is not served any further.
constexpr std::size_t kOutboxBytesMax = 64U << 10U;
// After a rejection the client may still be sending a payload. Reading it to the end lets the
// status word arrive; closing at once would reset the connection and could destroy the word.
constexpr std::uint64_t kDiscardBytesMax = 1U << 30U;
constexpr auto kDiscardTime = std::chrono::seconds(5);

char* memory_at(std::uint64_t address) { return reinterpret_cast<char*>(address); }

}  // namespace

DataSession::DataSession(Fd socket, std::string peer, const RegionTable& regions)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      regions_(regions),
      staged_(kHeaderBytes) {}

bool DataSession::on_event() {
  budget_bytes_ = kBudgetBytes;
  is_drained_ = false;
  while (state_ != State::closed && budget_bytes_ > 0) {
    if (outbox_.size() >= kOutboxFlushBytes && !flush()) return false;
    if (outbox_.size() >= kOutboxBytesMax) break;
    if (advance() == Step::would_block) break;
  }
  return flush() && state_ != State::closed;
}

DataSession::Step DataSession::advance() {
  switch (state_) {
    case State::header: return receive_header();
    case State::payload: return receive_payload();
    case State::reply: return send_reply();
    case State::refused: return discard();
    case State::closed: break;
  }
  return Step::would_block;
}

std::uint32_t DataSession::interest() const {
  std::uint32_t events = 0;
  if (state_ != State::reply && outbox_.size() < kOutboxBytesMax) events |= EPOLLIN;
  if (state_ == State::reply || !outbox_.empty()) events |= EPOLLOUT;
  return events;
}

bool DataSession::is_overdue(Instant now) const {
  return state_ == State::refused && now - refused_at_ > kDiscardTime;
}

// For big payloads only the next header: what follows it can then be received into place.
std::size_t DataSession::read_ahead_bytes() const {
  return request_.length_bytes <= kSmallPayload ? kStagedBytes : kHeaderBytes;
}

DataSession::Step DataSession::receive_header() {
  if (staged_end_ - staged_begin_ >= kHeaderBytes) {
    on_header();
    return Step::moved;
  }
  if (is_drained_) return Step::would_block;
  std::memmove(staged_.data(), staged_.data() + staged_begin_, staged_end_ - staged_begin_);
  staged_end_ -= std::exchange(staged_begin_, 0);
  staged_.resize(std::max(staged_.size(), read_ahead_bytes()));
  const std::size_t wanted = read_ahead_bytes() - staged_end_;
  const ssize_t got = ::recv(socket_.get(), staged_.data() + staged_end_, wanted, MSG_DONTWAIT);
  if (got <= 0) return after_error(got);
  is_drained_ = static_cast<std::size_t>(got) < wanted;
  staged_end_ += static_cast<std::size_t>(got);
  return Step::moved;
}

void DataSession::on_header() {
  const std::optional<Header> header = decode_header(staged_.data() + staged_begin_);
  staged_begin_ += kHeaderBytes;
  if (!header) {
    state_ = State::closed;  // not this protocol: there is no answer that it would understand
    return;
  }
  request_ = *header;
  done_bytes_ = 0;
  budget_bytes_ -= std::min(budget_bytes_, kRequestCost);
  const std::lock_guard lock(regions_.mutex());
  checked_at_ = regions_.removals_locked();
  if (regions_.index_locked().find(request_.address, request_.length_bytes) == nullptr) {
    refuse();
  } else if (request_.opcode == Opcode::read) {
    state_ = State::reply;
    if (request_.wants_status) {
      outbox_.resize(outbox_.size() + kStatusBytes);
      store_u64(outbox_.data() + outbox_.size() - kStatusBytes, kStatusApplied);
    }
  } else if (request_.length_bytes == 0) {
    on_payload_done();
  } else {
    state_ = State::payload;
  }
}

// Whether the request still lies in a registered region; looks only if one was removed since.
bool DataSession::is_registered_locked() {
  if (checked_at_ == regions_.removals_locked()) return true;
  checked_at_ = regions_.removals_locked();
  return regions_.index_locked().find(request_.address, request_.length_bytes) != nullptr;
}

std::uint64_t DataSession::take_staged(char* target, std::uint64_t wanted) {
  const std::size_t count = std::min<std::uint64_t>(wanted, staged_end_ - staged_begin_);
  remote_copy(target, staged_.data() + staged_begin_, count);
  staged_begin_ += count;
  return count;
}

DataSession::Step DataSession::receive_payload() {
  regions_.yield_to_removals();
  // The race it prevents (test: McTcpServer.UnregisterCutsAWriteBeingReceived):
  //  1. unregister_region removes the region and returns; its memory is freed.
  //  2. This thread would receive into freed memory. Receiving happens under the table's mutex and
  //     only after another look, so a removal is either before it (and refused) or after it.
  const std::lock_guard lock(regions_.mutex());
  if (!is_registered_locked()) {
    refuse();
    return Step::moved;
  }
  const std::uint64_t left = request_.length_bytes - done_bytes_;
  char* target = memory_at(request_.address + done_bytes_);
  if (staged_begin_ < staged_end_) {
    done_bytes_ += take_staged(target, left);
  } else if (is_drained_) {
    return Step::would_block;
  } else {
    staged_begin_ = staged_end_ = 0;
    staged_.resize(std::max(staged_.size(), read_ahead_bytes()));
    std::array<iovec, 2> parts{};
    parts[0] = {target, std::min(left, kReceiveBytesMax)};
    parts[1] = {staged_.data(), read_ahead_bytes()};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = left <= kReceiveBytesMax ? 2 : 1;
    const ssize_t got = remote_receive(socket_.get(), &message, MSG_DONTWAIT);
    if (got <= 0) return after_error(got);
    const auto bytes = static_cast<std::uint64_t>(got);
    is_drained_ = bytes < parts[0].iov_len + (message.msg_iovlen == 2 ? parts[1].iov_len : 0);
    const std::uint64_t in_place = std::min(bytes, parts[0].iov_len);
    done_bytes_ += in_place;
    staged_end_ = bytes - in_place;
    budget_bytes_ -= std::min(budget_bytes_, in_place);
  }
  if (done_bytes_ == request_.length_bytes) on_payload_done();
  return Step::moved;
}

void DataSession::on_payload_done() {
  state_ = State::header;
  if (!request_.wants_status) return;
  outbox_.resize(outbox_.size() + kStatusBytes);
  store_u64(outbox_.data() + outbox_.size() - kStatusBytes, kStatusApplied);
}

DataSession::Step DataSession::send_reply() {
  // The status word goes first.
  if (!outbox_.empty()) {
    if (!flush()) state_ = State::closed;
    return outbox_.empty() ? Step::moved : Step::would_block;
  }
  const std::lock_guard lock(regions_.mutex());
  if (!is_registered_locked()) {
    state_ = State::closed;  // the status is long sent; only the end of the stream can say it
    return Step::moved;
  }
  const std::uint64_t left = request_.length_bytes - done_bytes_;
  if (left == 0) {
    state_ = State::header;
    return Step::moved;
  }
  const ssize_t sent = ::send(socket_.get(), memory_at(request_.address + done_bytes_),
                              std::min(left, kReceiveBytesMax), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent <= 0) return after_error(sent);
  done_bytes_ += static_cast<std::uint64_t>(sent);
  budget_bytes_ -= std::min(budget_bytes_, static_cast<std::uint64_t>(sent));
  return Step::moved;
}

void DataSession::refuse() {
  // Protocol 1 has no word for it: the connection just ends.
  if (!request_.wants_status) {
    state_ = State::closed;
    return;
  }
  outbox_.resize(outbox_.size() + kStatusBytes);
  store_u64(outbox_.data() + outbox_.size() - kStatusBytes, kStatusRejected);
  refused_at_ = Clock::now();
  state_ = State::refused;
}

DataSession::Step DataSession::discard() {
  if (!flush()) {
    state_ = State::closed;
    return Step::moved;
  }
  if (outbox_.empty()) ::shutdown(socket_.get(), SHUT_WR);
  // MSG_TRUNC throws the bytes away inside the kernel.
  const ssize_t got = ::recv(socket_.get(), nullptr, kReceiveBytesMax, MSG_DONTWAIT | MSG_TRUNC);
  if (got <= 0) return after_error(got);
  discarded_bytes_ += static_cast<std::uint64_t>(got);
  budget_bytes_ -= std::min(budget_bytes_, static_cast<std::uint64_t>(got));
  if (discarded_bytes_ > kDiscardBytesMax) state_ = State::closed;
  return Step::moved;
}

bool DataSession::flush() {
  if (outbox_.empty()) return true;
  const ssize_t sent =
      ::send(socket_.get(), outbox_.data(), outbox_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  outbox_.erase(0, static_cast<std::size_t>(sent));
  return true;
}

// The end of the stream, an error, or nothing to do for now.
DataSession::Step DataSession::after_error(std::int64_t result) {
  const bool is_waiting = result < 0 && (errno == EAGAIN || errno == EINTR);
  if (!is_waiting) state_ = State::closed;
  return Step::would_block;
}

}  // namespace baton::engine::tcp
