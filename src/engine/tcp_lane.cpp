// Pipelined sending with sendmsg, and the matching of answers.
#include "engine/tcp_lane.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace baton::engine::tcp {
namespace {

constexpr std::size_t kPartsMax = 128;  // of one sendmsg: header and payload of 64 pieces
constexpr std::uint64_t kSendBytesMax = 1U << 20U;  // of one sendmsg, for the sake of other lanes

}  // namespace

// Unanswered writes: the kernel must not go on delivering what it holds.
Lane::~Lane() {
  if (socket_ && !is_idle()) abort_on_close(socket_.get());
}

void Lane::open(const SocketAddress& address, Waker& waker, std::uint64_t key, Instant deadline) {
  state_ = State::connecting;
  deadline_ = deadline;
  ring_.resize(kPiecesMax);
  is_readable_ = is_writable_ = is_ending_ = false;
  partial_bytes_ = 0;
  was_rejected_ = answers_are_over_ = false;
  local_name_.clear();
  Result<Fd> socket = connect_tcp(address);
  if (!socket) {
    return break_off(socket.error().code == Errc::unreachable ? ECONNREFUSED : ENETUNREACH);
  }
  socket_ = std::move(*socket);
  tune_data_socket(socket_.get());
  // Edge-triggered: an idle but writable socket must not keep the waker readable.
  if (!waker.watch(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, key)) {
    break_off(ENOMEM);
  }
}

void Lane::on_events(std::uint32_t events) {
  if (state_ == State::closed) return;
  if (state_ == State::connecting) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
    if (const int fault = connect_result(socket_.get()); fault != 0) return break_off(fault);
    state_ = State::open;
    local_name_ = print_address(local_address(socket_.get()));
  }
  if ((events & EPOLLOUT) != 0) is_writable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) is_ending_ = true;
  if (is_ending_ || (events & EPOLLIN) != 0) is_readable_ = true;
}

// One place stays free for the barrier.
bool Lane::has_room() const { return tail_ - head_ + 1 < kPiecesMax; }

void Lane::push(const Piece& piece) {
  at(tail_++) = piece;
  unsent_bytes_ += kHeaderBytes + piece.length_bytes;
}

void Lane::end_burst() {
  if (has_status_ || head_ == tail_ || at(tail_ - 1).is_barrier) return;
  const Piece& last = at(tail_ - 1);
  Piece barrier;
  barrier.is_barrier = true;
  const std::uint64_t byte = last.target + last.length_bytes - 1;
  barrier.header = encode_header({1, byte, Opcode::read, false});
  push(barrier);
}

bool Lane::can_advance() const {
  if (is_broken()) return true;
  if (state_ != State::open) return false;
  return is_readable_ || (is_writable_ && sent_ != tail_);
}

std::uint64_t Lane::advance(std::vector<std::uint32_t>& acknowledged) {
  if (state_ != State::open || is_broken()) return 0;
  std::uint64_t bytes = 0;
  if (is_writable_ && sent_ != tail_) bytes = send_some();
  // After a failed send too: a rejection may be waiting in front of the reset.
  if (is_readable_ || is_broken()) receive(acknowledged);
  return bytes;
}

std::uint64_t Lane::send_some() {
  std::array<iovec, kPartsMax> parts{};
  std::size_t count = 0;
  std::uint64_t bytes = 0, skip = sent_of_piece_;
  const auto add = [&](void* data, std::uint64_t length) {
    const std::uint64_t skipped = std::min(skip, length);
    skip -= skipped;
    if (skipped == length) return;
    parts[count++] = {static_cast<char*>(data) + skipped, length - skipped};
    bytes += length - skipped;
  };
  for (std::size_t i = sent_; i != tail_ && count + 2 <= kPartsMax && bytes < kSendBytesMax; ++i) {
    Piece& piece = at(i);
    add(piece.header.data(), kHeaderBytes);
    if (!piece.is_barrier) add(reinterpret_cast<void*>(piece.source), piece.length_bytes);
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) {
    if (errno == EAGAIN) {
      is_writable_ = false;
    } else if (errno != EINTR) {
      broken_.emplace().cause = errno;
    }
    return 0;
  }
  // A short count means that the socket buffer is full; the next edge tells when it is not.
  if (static_cast<std::uint64_t>(sent) < bytes) is_writable_ = false;
  advance_sent(static_cast<std::uint64_t>(sent));
  return static_cast<std::uint64_t>(sent);
}

void Lane::advance_sent(std::uint64_t bytes) {
  unsent_bytes_ -= bytes;
  sent_of_piece_ += bytes;
  while (sent_ != tail_) {
    const std::uint64_t size = kHeaderBytes + at(sent_).length_bytes;
    if (sent_of_piece_ < size) return;
    sent_of_piece_ -= size;
    ++sent_;
  }
}

void Lane::receive(std::vector<std::uint32_t>& acknowledged) {
  const std::size_t unit = has_status_ ? kStatusBytes : 1;
  std::array<char, 4096> bytes{};
  while (true) {
    std::memcpy(bytes.data(), partial_.data(), partial_bytes_);
    const ssize_t got = ::recv(socket_.get(), bytes.data() + partial_bytes_,
                               bytes.size() - partial_bytes_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      is_readable_ = false;
      return;
    }
    if (got <= 0) {
      if (!is_broken()) broken_.emplace().cause = got == 0 ? 0 : errno;
      return;
    }
    const std::size_t have = partial_bytes_ + static_cast<std::size_t>(got);
    std::size_t used = 0;
    for (; have - used >= unit && !answers_are_over_; used += unit) {
      if (has_status_) {
        on_status(load_u64(bytes.data() + used), acknowledged);
      } else {
        on_barrier(acknowledged);
      }
    }
    if (answers_are_over_) return;
    partial_bytes_ = have - used;
    std::memcpy(partial_.data(), bytes.data() + used, partial_bytes_);
    // Less than asked for: drained, and the next bytes make a new edge. But the edge of an end that
    // has been seen already does not come again.
    if (have < bytes.size() && !is_ending_) {
      is_readable_ = false;
      return;
    }
  }
}

// Answers come in the order of the requests. [spec 4.3]
void Lane::on_status(std::uint64_t word, std::vector<std::uint32_t>& acknowledged) {
  // A partly sent piece can only be rejected, not applied.
  const bool is_answerable = head_ != sent_ || (sent_ != tail_ && sent_of_piece_ >= kHeaderBytes);
  if (word == kStatusApplied && head_ != sent_) {
    acknowledged.push_back(at(head_++).slot);
    return;
  }
  was_rejected_ = word == kStatusRejected && is_answerable;
  answers_are_over_ = true;
  if (!is_broken()) broken_.emplace();
  broken_->cause = was_rejected_ ? 0 : EPROTO;
}

void Lane::on_barrier(std::vector<std::uint32_t>& acknowledged) {
  while (head_ != sent_) {
    const Piece& piece = at(head_++);
    if (piece.is_barrier) return;
    acknowledged.push_back(piece.slot);
  }
  answers_are_over_ = true;  // an answer to nothing
  if (!is_broken()) broken_.emplace();
  broken_->cause = EPROTO;
}

void Lane::break_off(int cause) {
  if (!is_broken()) broken_.emplace().cause = cause;
}

Lane::Break Lane::take_break() {
  Break result = std::move(*broken_);
  broken_.reset();
  result.local_name = std::move(local_name_);
  result.was_rejected = was_rejected_;
  const std::size_t touched = sent_of_piece_ > 0 ? sent_ + 1 : sent_;
  for (; head_ != tail_; ++head_) {
    const Piece& piece = at(head_);
    if (piece.is_barrier) continue;
    // A server reads nothing behind a request that it rejects, so all later pieces are unsent in
    // every sense that matters. The rejected one comes first.
    const bool may_have_landed = head_ < touched && (!was_rejected_ || result.unanswered.empty());
    (may_have_landed ? result.unanswered : result.unsent).push_back(piece);
  }
  head_ = sent_ = tail_ = 0;
  sent_of_piece_ = unsent_bytes_ = partial_bytes_ = 0;
  was_rejected_ = false;
  // An orderly close would let the kernel deliver the rest of the send buffer in the background.
  if (socket_) abort_on_close(socket_.get());
  socket_.reset();
  state_ = State::closed;
  local_name_.clear();
  return result;
}

}  // namespace baton::engine::tcp
