// Reading a length-prefixed request with limits, answering it, half-closing. [spec 4.3]
#include "engine/tcp_rpc_session.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "engine/tcp_protocol.hpp"

namespace baton::engine::tcp {
namespace {

// For the whole exchange. Bounds what a silent client can hold on to.
constexpr auto kExchangeTime = std::chrono::seconds(10);

}  // namespace

RpcSession::RpcSession(Fd socket, std::string peer, Instant now)
    : socket_(std::move(socket)), peer_(std::move(peer)), give_up_at_(now + kExchangeTime) {}

std::uint32_t RpcSession::interest() const {
  return state_ == State::answering ? EPOLLOUT : EPOLLIN;
}

bool RpcSession::is_acceptable() const {
  if (request_.size() < kRpcLengthBytes) return true;
  const std::uint64_t length = load_u64(request_.data());
  return length >= 1 && length <= kRpcBytesMax && request_.size() - kRpcLengthBytes <= length;
}

bool RpcSession::is_complete() const {
  return request_.size() >= kRpcLengthBytes &&
         request_.size() - kRpcLengthBytes == load_u64(request_.data());
}

// The buffer grows with what really arrives, not with what the length claims.
bool RpcSession::receive() {
  std::array<char, 16384> part{};
  while (!is_complete()) {
    const ssize_t got = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    request_.append(part.data(), static_cast<std::size_t>(got));
    if (!is_acceptable()) return false;
  }
  return true;
}

bool RpcSession::on_event(const RpcHandler& handler) {
  if (state_ == State::receiving) {
    if (!receive()) return false;
    if (!is_complete()) return true;
    const auto type = static_cast<std::uint8_t>(request_[kRpcLengthBytes]);
    const std::string_view json = std::string_view(request_).substr(kRpcLengthBytes + 1);
    const std::optional<std::string> answer = handler(type, json, peer_);
    if (!answer) return false;
    answer_ = encode_rpc(type, *answer);
    state_ = State::answering;
  }
  if (state_ == State::answering) {
    const ssize_t sent =
        ::send(socket_.get(), answer_.data(), answer_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    answer_.erase(0, static_cast<std::size_t>(sent));
    if (!answer_.empty()) return true;
    ::shutdown(socket_.get(), SHUT_WR);
    state_ = State::lingering;
  }
  char surplus = 0;
  return ::recv(socket_.get(), &surplus, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

}  // namespace baton::engine::tcp
