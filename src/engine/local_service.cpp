// The serving half of the local engine.
#include "engine/local_service.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

namespace baton::engine {
namespace {

constexpr std::uint64_t kStopKey = 0;
constexpr std::uint64_t kListenerKey = 1;
constexpr std::uint64_t kFirstConnection = 2;
constexpr std::size_t kConnectionsMax = 4096;
// A copy lasts under a millisecond; a peer that needs longer is stopped or starved.
constexpr auto kPassageWait = std::chrono::seconds(3);
constexpr auto kPassageStep = std::chrono::microseconds(100);
constexpr int kRetryMs = 20;

// One connection is watched through two descriptors: its socket and its process.
constexpr std::uint64_t socket_key(std::uint64_t connection) { return connection * 2; }
constexpr std::uint64_t process_key(std::uint64_t connection) { return connection * 2 + 1; }

bool watch(int epoll, int descriptor, std::uint32_t events, std::uint64_t key, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return ::epoll_ctl(epoll, operation, descriptor, &event) == 0;
}

bool make_gate(Fd& file, Mapping& page) {
  file = Fd(::memfd_create("baton-gate", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ::ftruncate(file.get(), sizeof(LocalGate)) != 0) return false;
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return false;
  Result<Mapping> mapped = Mapping::map_file(file.get(), 0, sizeof(LocalGate));
  if (!mapped) return false;
  page = std::move(*mapped);
  new (page.data()) LocalGate;
  return true;
}

LocalMessage describe(const RegionEntry& entry) {
  LocalMessage message;
  message.kind = LocalMessage::Kind::added;
  message.region = entry.id.value;
  message.address = entry.region.address;
  message.length_bytes = entry.region.length_bytes;
  message.offset_bytes = entry.region.shared_offset_bytes;
  return message;
}

}  // namespace

Result<std::unique_ptr<LocalService>> LocalService::start(const std::string& socket_name) {
  std::unique_ptr<LocalService> service(new LocalService);
  Result<Fd> listener = listen_local(socket_name);
  if (!listener) return listener.error();
  service->listener_ = std::move(*listener);
  service->next_connection_ = kFirstConnection;
  service->epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!service->epoll_) return system_error("epoll_create1", errno);
  service->stop_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!service->stop_) return system_error("eventfd", errno);
  const int epoll = service->epoll_.get();
  if (!watch(epoll, service->stop_.get(), EPOLLIN, kStopKey, EPOLL_CTL_ADD) ||
      !watch(epoll, service->listener_.get(), EPOLLIN, kListenerKey, EPOLL_CTL_ADD)) {
    return system_error("epoll_ctl", errno);
  }
  service->thread_ = std::thread([raw = service.get()] { raw->serve(); });
  return service;
}

LocalService::~LocalService() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  static_cast<void>(written);  // cannot fail: the counter is far from its limit
  thread_.join();
}

void LocalService::serve() {
  ::pthread_setname_np(::pthread_self(), "baton-local");
  std::array<epoll_event, 64> events{};
  while (true) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
      if (key == kStopKey) return;
      const std::lock_guard lock(mutex_);
      if (key == kListenerKey) {
        accept_peers();
      } else {
        on_event(key);
      }
    }
  }
}

void LocalService::accept_peers() {
  while (true) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Out of descriptors: the peer stays in the backlog. Sleeping keeps this loop from spinning.
      if (errno == EMFILE || errno == ENFILE) ::usleep(kRetryMs * 1000);
      return;
    }
    const Credentials peer = peer_credentials(socket.get());
    if (!is_trusted(peer) || connections_.size() >= kConnectionsMax) continue;
    auto connection = std::make_shared<Connection>();
    connection->socket = std::move(socket);
    connection->pid = peer.pid;
    // Beside the socket's end: a child of fork() may keep the socket open after the peer died.
    connection->process = Fd(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
    connection->page_file = std::make_shared<Fd>();
    if (!make_gate(*connection->page_file, connection->page)) continue;
    const std::uint64_t id = next_connection_++;
    if (!watch(epoll_.get(), connection->socket.get(), EPOLLIN, socket_key(id), EPOLL_CTL_ADD)) {
      continue;
    }
    if (connection->process) {
      watch(epoll_.get(), connection->process.get(), EPOLLIN, process_key(id), EPOLL_CTL_ADD);
    }
    connections_.emplace(id, std::move(connection));
  }
}

void LocalService::on_event(std::uint64_t key) {
  const std::uint64_t id = key / 2;
  const auto entry = connections_.find(id);
  if (entry == connections_.end()) return;
  Connection& connection = *entry->second;
  const bool has_exited = key == process_key(id);
  if (has_exited || !read_hello(connection) || !flush(connection)) {
    connections_.erase(id);
    return;
  }
  const std::uint32_t events = connection.outbox.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
  watch(epoll_.get(), connection.socket.get(), events, socket_key(id), EPOLL_CTL_MOD);
}

bool LocalService::read_hello(Connection& connection) {
  Packet packet;
  switch (receive_packet(connection.socket.get(), packet)) {
    case PacketStatus::would_block: return true;
    case PacketStatus::closed: return false;
    case PacketStatus::done: break;
  }
  if (packet.message.kind != LocalMessage::Kind::hello || connection.is_greeted) return false;
  connection.is_greeted = true;
  greet(connection);
  return true;
}

// Sent under the lock that add() and remove() take: the table and the pushes that follow it agree.
void LocalService::greet(Connection& connection) {
  connection.gate().generation.store(generation_);
  LocalMessage message;
  message.kind = LocalMessage::Kind::gate;
  message.generation = generation_;
  connection.outbox.emplace_back(message, connection.page_file);
  for (const RegionEntry& entry : regions_.entries()) {
    connection.outbox.emplace_back(describe(entry), files_.at(entry.id));
  }
  message.kind = LocalMessage::Kind::ready;
  connection.outbox.emplace_back(message, nullptr);
}

// False if the connection broke.
bool LocalService::flush(Connection& connection) {
  while (!connection.outbox.empty()) {
    const auto& [message, file] = connection.outbox.front();
    const int descriptor = file == nullptr ? -1 : file->get();
    const PacketStatus status = send_packet(connection.socket.get(), message, descriptor);
    if (status == PacketStatus::would_block) return true;
    if (status == PacketStatus::closed) return false;
    connection.outbox.pop_front();
  }
  return true;
}

void LocalService::tell_all(const LocalMessage& message, const SharedFd& file) {
  for (const auto& [id, connection] : connections_) {
    if (!connection->is_greeted) continue;
    connection->outbox.emplace_back(message, file);
    // A broken connection shows as an event too, and the thread drops it then. A full socket wakes
    // the thread when there is room.
    if (flush(*connection) && connection->outbox.empty()) continue;
    watch(epoll_.get(), connection->socket.get(), EPOLLIN | EPOLLOUT, socket_key(id),
          EPOLL_CTL_MOD);
  }
}

Result<RegionId> LocalService::add(const Region& region) {
  if (Result<void> usable = check_region(region); !usable) return usable.error();
  SharedFd file;
  if (region.shared_fd >= 0) {
    // The caller's descriptor is only borrowed, and peers may ask for it at any later time.
    file = std::make_shared<Fd>(::fcntl(region.shared_fd, F_DUPFD_CLOEXEC, 0));
    if (!*file) return system_error("duplicating the region's shared_fd", errno);
  }
  const std::lock_guard lock(mutex_);
  for (const RegionEntry& entry : regions_.entries()) {
    if (entry.region.address == region.address &&
        entry.region.length_bytes == region.length_bytes) {
      return Error{Errc::already_exists, "this region is registered already"};
    }
  }
  const RegionEntry entry{RegionId{next_region_++}, region};
  regions_.insert(entry);
  files_.emplace(entry.id, file);
  tell_all(describe(entry), file);
  return entry.id;
}

Result<void> LocalService::remove(RegionId region) {
  {
    const std::lock_guard lock(mutex_);
    if (regions_.erase(region)) {
      files_.erase(region);
      close_gates(region);
    } else if (!closing_.contains(region)) {
      return Error{Errc::misuse, "region " + std::to_string(region.value) + " is not registered"};
    }
  }
  const auto deadline = std::chrono::steady_clock::now() + kPassageWait;
  pid_t stuck = 0;
  while (!passages_ended(region, stuck)) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return Error{Errc::timeout, "region " + std::to_string(region.value) + ": process " +
                                      std::to_string(stuck) +
                                      " is stuck inside a copy; keep the region mapped and "
                                      "unregister it again later"};
    }
    std::this_thread::sleep_for(kPassageStep);
  }
  return {};
}

// After this no peer begins a copy before it has read the removal; what is left are the copies that
// have begun.
void LocalService::close_gates(RegionId region) {
  ++generation_;
  Closing closing;
  for (const auto& [id, connection] : connections_) {
    if (!connection->is_greeted) continue;
    connection->gate().generation.store(generation_);
    const std::uint64_t seen = connection->gate().passages.load();
    if (LocalGate::is_inside(seen)) closing.push_back({connection, seen});
  }
  closing_.emplace(region, std::move(closing));
  LocalMessage message;
  message.kind = LocalMessage::Kind::removed;
  message.region = region.value;
  message.generation = generation_;
  tell_all(message, nullptr);
}

bool LocalService::passages_ended(RegionId region, pid_t& stuck) {
  const std::lock_guard lock(mutex_);
  const auto entry = closing_.find(region);
  if (entry == closing_.end()) return true;  // another caller of remove() saw the end first
  std::erase_if(entry->second, [](const Passage& passage) {
    const ConnectionPtr connection = passage.connection.lock();
    // A connection that was dropped belongs to a process that has exited, or has closed its socket,
    // which it does between copies.
    return connection == nullptr || connection->gate().passages.load() != passage.passages_seen;
  });
  if (!entry->second.empty()) {
    const ConnectionPtr connection = entry->second.front().connection.lock();
    if (connection != nullptr) stuck = connection->pid;
    return false;
  }
  closing_.erase(entry);
  return true;
}

}  // namespace baton::engine
