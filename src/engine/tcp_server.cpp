// One thread, one epoll: accepts, serves sessions in turn, sweeps the overdue ones.
#include "engine/tcp_server.hpp"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "engine/tcp_protocol.hpp"
#include "engine/tcp_socket.hpp"

namespace baton::engine::tcp {
namespace {

constexpr std::uint64_t kStopKey = 0;
constexpr std::uint64_t kRpcListenerKey = 1;
constexpr std::uint64_t kDataListenerKey = 2;
constexpr int kBacklog = 1024;
// Beyond these a new connection is closed at once.
constexpr std::size_t kDataSessionsMax = 4096;
constexpr std::size_t kRpcSessionsMax = 2048;
constexpr int kSweepMs = 1000;
constexpr int kOutOfDescriptorsPauseUs = 20'000;

bool watch(int epoll, int descriptor, std::uint32_t events, std::uint64_t key, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return ::epoll_ctl(epoll, operation, descriptor, &event) == 0;
}

std::uint16_t port_of(int socket) {
  const Result<Endpoint> endpoint = parse_endpoint(print_address(local_address(socket)));
  return endpoint ? endpoint->port : 0;
}

}  // namespace

Result<std::unique_ptr<TcpServer>> TcpServer::start(const Endpoint& rpc) {
  std::unique_ptr<TcpServer> server(new TcpServer);
  if (Result<void> listening = server->listen(rpc); !listening) return listening.error();
  server->handler_ = [raw = server.get()](std::uint8_t type, std::string_view json,
                                          const std::string& client) {
    return raw->answer(type, json, client);
  };
  server->thread_ = std::thread([raw = server.get()] { raw->serve(); });
  return server;
}

Result<void> TcpServer::listen(const Endpoint& rpc) {
  std::uint64_t nonce = 0;
  if (::getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) return system_error("getrandom", errno);
  identity_ = std::to_string(nonce);
  const Result<SocketAddress> address = resolve_blocking(rpc);
  if (!address) return address.error();
  // Only the configured address: a pool that strangers can write must not be on every interface.
  Result<Fd> rpc_listener = listen_tcp(*address, kBacklog);
  if (!rpc_listener) return rpc_listener.error();
  Result<Fd> data_listener = listen_tcp(with_port(*address, 0), kBacklog);
  if (!data_listener) return data_listener.error();
  rpc_listener_ = std::move(*rpc_listener);
  data_listener_ = std::move(*data_listener);
  data_port_ = port_of(data_listener_.get());
  name_ = to_string(Endpoint{rpc.host, port_of(rpc_listener_.get())});
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return system_error("epoll_create1", errno);
  stop_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_) return system_error("eventfd", errno);
  const bool watched =
      watch(epoll_.get(), stop_.get(), EPOLLIN, kStopKey, EPOLL_CTL_ADD) &&
      watch(epoll_.get(), rpc_listener_.get(), EPOLLIN, kRpcListenerKey, EPOLL_CTL_ADD) &&
      watch(epoll_.get(), data_listener_.get(), EPOLLIN, kDataListenerKey, EPOLL_CTL_ADD);
  if (!watched) return system_error("epoll_ctl", errno);
  return {};
}

TcpServer::~TcpServer() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    const ssize_t written = ::write(stop_.get(), &one, sizeof one);
    static_cast<void>(written);  // cannot fail: the counter is far from its limit
    thread_.join();
  }
  // Sessions before listeners: a client takes "connection refused" as proof that no session of
  // this process receives any more (tcp_fence.hpp).
  data_.clear();
  rpc_.clear();
}

void TcpServer::serve() {
  ::pthread_setname_np(::pthread_self(), "baton-tcp");
  std::array<epoll_event, 64> events{};
  Instant swept_at = Clock::now();
  while (true) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), kSweepMs);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
      if (key == kStopKey) return;
      on_event(key);
    }
    if (const Instant now = Clock::now(); now - swept_at >= std::chrono::milliseconds(kSweepMs)) {
      swept_at = now;
      sweep();
    }
  }
}

void TcpServer::on_event(std::uint64_t key) {
  if (key == kRpcListenerKey) return accept_rpc();
  if (key == kDataListenerKey) {
    accept_data();
    return;
  }
  if (const auto session = data_.find(key); session != data_.end()) {
    if (session->second.session->on_event()) {
      update(key, session->second);
    } else {
      data_.erase(session);
    }
  } else if (const auto exchange = rpc_.find(key); exchange != rpc_.end()) {
    if (exchange->second.session->on_event(handler_)) {
      update(key, exchange->second);
    } else {
      rpc_.erase(exchange);
    }
  }
}

// EPOLL_CTL_MOD costs a system call; most turns end with the interest they began with.
template <class Session>
void TcpServer::update(std::uint64_t key, Watched<Session>& watched) {
  const std::uint32_t interest = watched.session->interest();
  if (interest == watched.interest) return;
  watched.interest = interest;
  watch(epoll_.get(), watched.session->socket(), interest, key, EPOLL_CTL_MOD);
}

// False: connections may be left in the backlog.
bool TcpServer::accept_data() {
  while (true) {
    Fd socket(::accept4(data_listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno == EAGAIN) return true;
      ::usleep(kOutOfDescriptorsPauseUs);  // or the level-triggered listener would spin
      return false;
    }
    if (data_.size() >= kDataSessionsMax) continue;
    tune_data_socket(socket.get());
    const std::uint64_t key = next_key_++;
    std::string peer = print_address(peer_address(socket.get()));
    if (!watch(epoll_.get(), socket.get(), EPOLLIN, key, EPOLL_CTL_ADD)) continue;
    auto session = std::make_unique<DataSession>(std::move(socket), std::move(peer), regions_);
    data_.emplace(key, Watched<DataSession>{std::move(session), EPOLLIN});
  }
}

void TcpServer::accept_rpc() {
  while (true) {
    Fd socket(::accept4(rpc_listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno != EAGAIN) ::usleep(kOutOfDescriptorsPauseUs);
      return;
    }
    if (rpc_.size() >= kRpcSessionsMax) continue;
    const std::uint64_t key = next_key_++;
    std::string peer = print_address(peer_address(socket.get()));
    if (!watch(epoll_.get(), socket.get(), EPOLLIN, key, EPOLL_CTL_ADD)) continue;
    auto session = std::make_unique<RpcSession>(std::move(socket), std::move(peer), Clock::now());
    rpc_.emplace(key, Watched<RpcSession>{std::move(session), EPOLLIN});
  }
}

void TcpServer::sweep() {
  const Instant now = Clock::now();
  std::erase_if(data_, [&](const auto& entry) { return entry.second.session->is_overdue(now); });
  std::erase_if(rpc_, [&](const auto& entry) { return entry.second.session->is_overdue(now); });
}

std::optional<std::string> TcpServer::answer(std::uint8_t type, std::string_view json,
                                             const std::string& client) {
  if (!nlohmann::json::accept(json)) return std::nullopt;
  switch (static_cast<RpcType>(type)) {
    case RpcType::metadata: {
      const std::lock_guard lock(regions_.mutex());
      return encode_metadata({name_, data_port_, 2, identity_}, regions_.index_locked());
    }
    case RpcType::probe: return R"({"status":"success"})";
    case RpcType::handshake: return R"({"reply_msg":"no RDMA transport here, use tcp"})";
    case RpcType::notify: return R"({"name":"","notify_msg":"unsupported"})";
    case RpcType::fence: return fence(json, client);
  }
  return std::nullopt;
}

// See tcp_fence.hpp. This thread is the only one that receives payloads, so once the sessions are
// gone no byte of theirs can land; a connection that still waits in the backlog is accepted first.
std::optional<std::string> TcpServer::fence(std::string_view json, const std::string& client) {
  const nlohmann::json body = nlohmann::json::parse(json, nullptr, false);
  if (!body.is_object() || !body.contains("connections")) return std::nullopt;
  std::set<std::string> wanted;
  for (const nlohmann::json& name : body["connections"]) {
    if (name.is_string()) wanted.insert(name.get<std::string>());
  }
  if (!accept_data()) return std::nullopt;
  std::erase_if(data_,
                [&](const auto& entry) { return wanted.contains(entry.second.session->peer()); });
  return nlohmann::json{{"seen", client}, {"identity", identity_}}.dump();
}

}  // namespace baton::engine::tcp
