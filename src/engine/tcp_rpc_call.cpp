// A non-blocking RPC exchange. [spec 4.3]
#include "engine/tcp_rpc_call.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace baton::engine::tcp {

RpcCall::RpcCall(const SocketAddress& address, const Question& question, Instant deadline,
                 Waker& waker, std::uint64_t key)
    : address_(address),
      type_(question.type),
      request_(encode_rpc(static_cast<std::uint8_t>(question.type), question.json)),
      deadline_(deadline) {
  Result<Fd> socket = connect_tcp(address);
  if (!socket) {
    refused_ = socket.error();
    return;
  }
  socket_ = std::move(*socket);
  const Result<void> watched =
      waker.watch(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, key);
  if (!watched) refused_ = watched.error();
}

Error RpcCall::failure(Errc code, const std::string& cause) const {
  return {code, "peer " + print_address(address_) + ": " + cause};
}

std::optional<Result<RpcCall::Answer>> RpcCall::advance(Instant now) {
  if (refused_) return Result<Answer>(failure(refused_->code, refused_->text));
  if (now >= deadline_) {
    return Result<Answer>(failure(Errc::timeout, "no answer on its RPC port in time"));
  }
  while (!request_.empty()) {
    const ssize_t sent =
        ::send(socket_.get(), request_.data(), request_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EINTR || errno == ENOTCONN) return std::nullopt;
      const int cause = errno;
      const Errc code = cause == ECONNREFUSED ? Errc::unreachable : Errc::io;
      return Result<Answer>(failure(code, std::generic_category().message(cause)));
    }
    request_.erase(0, static_cast<std::size_t>(sent));
  }
  return receive();
}

std::optional<Result<RpcCall::Answer>> RpcCall::receive() {
  std::array<char, 16384> part{};
  while (true) {
    const ssize_t got = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    if (got < 0) {
      return Result<Answer>(failure(Errc::io, std::generic_category().message(errno)));
    }
    if (got == 0) return Result<Answer>(failure(Errc::io, "it hung up without an answer"));
    reply_.append(part.data(), static_cast<std::size_t>(got));
    if (reply_.size() < kRpcLengthBytes) continue;
    const std::uint64_t length = load_u64(reply_.data());
    if (length == 0 || length > kRpcBytesMax || reply_.size() - kRpcLengthBytes > length) {
      return Result<Answer>(failure(Errc::malformed, "its answer has an impossible length"));
    }
    if (reply_.size() - kRpcLengthBytes < length) continue;
    if (static_cast<std::uint8_t>(reply_[kRpcLengthBytes]) != static_cast<std::uint8_t>(type_)) {
      return Result<Answer>(failure(Errc::malformed, "its answer has another type"));
    }
    return Result<Answer>(
        Answer{reply_.substr(kRpcLengthBytes + 1), print_address(local_address(socket_.get()))});
  }
}

}  // namespace baton::engine::tcp
