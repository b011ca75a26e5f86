// The hub's loop: collect, send what sockets take, keep the rest in outboxes, receive, sleep.
#include "net/zmq_hub.hpp"

#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "net/outbox.hpp"
#include "net/waker.hpp"
#include "net/zmq_socket.hpp"
#include "obs/log.hpp"

namespace baton::net {

namespace {

// Messages received in a row before outgoing messages and timers get their turn.
constexpr int kReceiveBatchMax = 256;
constexpr int kEventsMax = 64;
// Beyond the endpoints: the PULL socket, and closed sockets that libzmq has not taken apart yet.
constexpr std::size_t kSpareSockets = 64;
constexpr std::size_t kSocketsPerEndpoint = 2;  // the connection, and who watches it
constexpr std::size_t kEndpointsMax = 32'000;   // libzmq has 65,535 sockets at most

// A peer that messages are sent to.
struct Peer {
  Endpoint endpoint;
  ZmqSocket socket;
  ZmqSocket watcher;  // closed if nobody wants to hear of disconnects
  Outbox outbox;
  Instant last_used;
};

struct Counters {
  std::atomic<std::uint64_t> messages_sent{0}, bytes_sent{0};
  std::atomic<std::uint64_t> messages_received{0}, bytes_received{0};
  std::atomic<std::uint64_t> sends_failed{0}, sends_deferred{0};
  std::atomic<std::uint64_t> receives_oversized{0}, handler_exceptions{0};
  std::atomic<std::uint64_t> wakes{0}, endpoints_open{0};
};

void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount = 1) {
  counter.fetch_add(amount, std::memory_order_relaxed);
}

std::string in_words(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

}  // namespace

// Everything but wake(), disconnect() and stats() runs on the hub thread, or before it exists.
class ZmqHub::Impl {
 public:
  explicit Impl(const HubOptions& options) : options_(options) {}
  ~Impl();

  Result<void> open();
  std::uint16_t port() const { return port_; }
  void start(HubHandlers handlers);
  void wake() { waker_.wake(); }
  void disconnect(const Endpoint& endpoint);
  void stop();
  HubStats stats() const;

 private:
  void run();
  void work();
  void sleep(std::optional<Instant> timer_deadline);
  void flush_until(Instant deadline);
  bool has_pending() const;

  void receive_batch();
  void collect_and_send();
  void enqueue(Outgoing&& message, Instant now);
  void flush(Peer& peer);
  Result<Peer*> find_or_connect(const Endpoint& to);
  void evict_one();
  void drop_requested_peers();
  void drop_expired(Instant now);
  void report(const Endpoint& to, const Frames& frames, Error error);
  void close_socket(Peer& peer, Duration linger);
  void forget(std::map<Endpoint, Peer>::iterator peer, Error error);

  // Runs a handler; what it throws is counted and ends neither the thread nor the batch.
  template <class Function>
  void guarded(Function&& function);

  const HubOptions options_;
  HubHandlers handlers_;
  Waker waker_;
  int epoll_ = -1;
  ZmqContext context_;  // before the sockets: destroyed after them
  ZmqSocket pull_;
  std::uint16_t port_ = 0;
  std::map<Endpoint, Peer> peers_;      // epoll holds addresses of the values, which never move
  bool may_have_input_ = true;          // the PULL socket was not yet read until empty
  std::optional<Instant> next_expiry_;  // never later than the first deadline of any outbox
  std::vector<Outgoing> collected_;

  std::mutex mutex_;
  std::vector<Endpoint> disconnects_;  // under mutex_
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;
  Counters counters_;
};

ZmqHub::Impl::~Impl() {
  stop();
  peers_.clear();
  if (epoll_ >= 0) ::close(epoll_);
}

Result<void> ZmqHub::Impl::open() {
  if (Result<void> opened = waker_.open(); !opened) return opened;
  const auto sockets_max =
      std::min(options_.endpoints_max, kEndpointsMax) * kSocketsPerEndpoint + kSpareSockets;
  if (Result<void> opened = context_.open(static_cast<int>(sockets_max)); !opened) return opened;

  PullOptions pull;
  pull.host = options_.bind_host;
  pull.port = options_.bind_port;
  pull.queue_messages_max = options_.receive_queue_messages_max;
  pull.frame_bytes_max = static_cast<std::int64_t>(options_.message_bytes_max) * 2;
  Result<ZmqSocket> bound = ZmqSocket::bind_pull(context_, pull);
  if (!bound) return bound.error();
  pull_ = std::move(bound.value());
  const Result<std::uint16_t> port = pull_.bound_port();
  if (!port) return port.error();
  port_ = *port;

  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event waker_event{EPOLLIN, {.ptr = &waker_}};
  epoll_event pull_event{EPOLLIN, {.ptr = &pull_}};
  if (epoll_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, waker_.descriptor(), &waker_event) != 0 ||
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, pull_.descriptor(), &pull_event) != 0) {
    return Error{Errc::io, std::string("cannot poll the control sockets: ") + std::strerror(errno)};
  }
  return {};
}

void ZmqHub::Impl::start(HubHandlers handlers) {
  BATON_ASSERT(!thread_.joinable());
  handlers_ = std::move(handlers);
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "baton-hub");
}

void ZmqHub::Impl::stop() {
  if (!thread_.joinable()) return;
  BATON_ASSERT(thread_.get_id() != std::this_thread::get_id());
  is_stopping_.store(true);
  waker_.wake();
  thread_.join();
}

void ZmqHub::Impl::disconnect(const Endpoint& endpoint) {
  {
    const std::scoped_lock lock(mutex_);
    disconnects_.push_back(endpoint);
  }
  waker_.wake();
}

HubStats ZmqHub::Impl::stats() const {
  const auto get = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  HubStats stats;
  stats.messages_sent = get(counters_.messages_sent);
  stats.bytes_sent = get(counters_.bytes_sent);
  stats.messages_received = get(counters_.messages_received);
  stats.bytes_received = get(counters_.bytes_received);
  stats.sends_failed = get(counters_.sends_failed);
  stats.sends_deferred = get(counters_.sends_deferred);
  stats.receives_oversized = get(counters_.receives_oversized);
  stats.handler_exceptions = get(counters_.handler_exceptions);
  stats.wakes = get(counters_.wakes);
  stats.endpoints_open = get(counters_.endpoints_open);
  return stats;
}

template <class Function>
void ZmqHub::Impl::guarded(Function&& function) {
  try {
    function();
  } catch (...) {
    add(counters_.handler_exceptions);
    BATON_LOG_LIMITED(error, "hub_exception", "hub_exception count {}",
                      counters_.handler_exceptions.load(std::memory_order_relaxed));
  }
}

void ZmqHub::Impl::run() {
  std::optional<Instant> timer_deadline;
  while (!is_stopping_.load()) {
    guarded([this] { work(); });
    timer_deadline.reset();
    if (handlers_.on_timer) guarded([&] { timer_deadline = handlers_.on_timer(); });
    // A timer's outcome is sent at once if its handler called wake().
    guarded([&] { sleep(timer_deadline); });
  }
  waker_.wake();  // collect a last time, wake() or not
  guarded([this] { work(); });
  const Instant deadline = Clock::now() + options_.flush_timeout;
  guarded([&] { flush_until(deadline); });
  const Error error{Errc::closed, "this process is shutting down its control sockets"};
  while (!peers_.empty()) {
    Peer& peer = peers_.begin()->second;
    // What libzmq took may leave until the same deadline; the context waits for it.
    close_socket(peer, std::max(deadline - Clock::now(), Duration::zero()));
    forget(peers_.begin(), error);
  }
}

void ZmqHub::Impl::work() {
  drop_requested_peers();
  if (waker_.consume()) collect_and_send();
  receive_batch();
  if (next_expiry_ && *next_expiry_ <= Clock::now()) drop_expired(Clock::now());
}

// Why epoll on libzmq's descriptors and not zmq_poll: zmq_poll visits every socket on every call,
// and a decode rank with thousands of dead peers would pay for each of them at each message.
void ZmqHub::Impl::sleep(std::optional<Instant> timer_deadline) {
  std::optional<Instant> until = next_expiry_;
  if (timer_deadline && (!until || *timer_deadline < *until)) until = timer_deadline;
  int timeout_ms = -1;
  if (until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count();
    timeout_ms = static_cast<int>(std::clamp<decltype(left)>(left, 0, INT_MAX));
  }
  if (may_have_input_) timeout_ms = 0;
  const bool may_sleep = timeout_ms != 0 && waker_.prepare_sleep();
  std::array<epoll_event, kEventsMax> events{};
  const int count = ::epoll_wait(epoll_, events.data(), kEventsMax, may_sleep ? timeout_ms : 0);
  bool is_waker_readable = false;
  for (int index = 0; index < count; ++index) {
    void* source = events[static_cast<std::size_t>(index)].data.ptr;
    is_waker_readable = is_waker_readable || source == &waker_;
    if (source == &pull_) may_have_input_ = true;
  }
  waker_.finish_sleep(is_waker_readable);
  // Only now may handlers run: they may call wake(). Nothing here removes peers, so the addresses
  // in `events` stay good.
  for (int index = 0; index < count; ++index) {
    void* source = events[static_cast<std::size_t>(index)].data.ptr;
    if (source == &waker_ || source == &pull_) continue;
    Peer& peer = *static_cast<Peer*>(source);
    if (peer.watcher.take_disconnected())
      guarded([&] { handlers_.on_disconnected(peer.endpoint); });
    // can_send() lets libzmq notice what happened to the connection, pending messages or not.
    if (peer.socket.can_send()) flush(peer);
  }
}

bool ZmqHub::Impl::has_pending() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return !entry.second.outbox.empty(); });
}

void ZmqHub::Impl::flush_until(Instant deadline) {
  may_have_input_ = false;  // nobody listens any more
  next_expiry_.reset();
  while (has_pending() && Clock::now() < deadline) {
    sleep(deadline);
    may_have_input_ = false;
    waker_.consume();
  }
}

void ZmqHub::Impl::receive_batch() {
  const ReceiveLimits limits{options_.frames_max, options_.message_bytes_max};
  for (int count = 0; may_have_input_ && count < kReceiveBatchMax; ++count) {
    Frames frames;
    switch (pull_.receive(limits, frames)) {
      case ReceiveOutcome::nothing: may_have_input_ = false; break;
      case ReceiveOutcome::oversized:
        add(counters_.receives_oversized);
        BATON_LOG_LIMITED(warn, "hub_oversized",
                          "message_dropped reason oversized frames_max {} bytes_max {}",
                          limits.frames_max, limits.bytes_max);
        break;
      case ReceiveOutcome::message:
        add(counters_.messages_received);
        add(counters_.bytes_received, count_bytes(frames));
        if (handlers_.on_message) guarded([&] { handlers_.on_message(std::move(frames)); });
        break;
    }
  }
}

void ZmqHub::Impl::collect_and_send() {
  add(counters_.wakes);
  if (!handlers_.collect) return;
  collected_.clear();
  guarded([this] { handlers_.collect(collected_); });
  const Instant now = Clock::now();
  for (Outgoing& message : collected_) enqueue(std::move(message), now);
}

void ZmqHub::Impl::enqueue(Outgoing&& message, Instant now) {
  if (message.frames.empty()) return;
  Result<Peer*> found = find_or_connect(message.to);
  if (!found) return report(message.to, message.frames, found.error());
  Peer& peer = **found;
  peer.last_used = now;
  if (!peer.outbox.push(std::move(message.frames), now + options_.send_timeout)) {
    return report(message.to, message.frames,
                  Error{Errc::limit, std::to_string(peer.outbox.size()) + " messages (" +
                                         std::to_string(peer.outbox.bytes()) +
                                         " bytes) already wait for " + to_string(message.to)});
  }
  if (peer.outbox.size() == 1) flush(peer);  // otherwise older ones wait, and so does this one
  if (peer.outbox.empty()) return;
  add(counters_.sends_deferred);
  const Instant expiry = *peer.outbox.next_deadline();
  if (!next_expiry_ || expiry < *next_expiry_) next_expiry_ = expiry;
}

void ZmqHub::Impl::flush(Peer& peer) {
  while (!peer.outbox.empty()) {
    const SendOutcome outcome = peer.socket.send(peer.outbox.front());
    if (outcome == SendOutcome::blocked) return;
    const Frames frames = peer.outbox.pop();
    if (outcome == SendOutcome::failed) {
      report(peer.endpoint, frames,
             Error{Errc::io, "ZeroMQ refused a message to " + to_string(peer.endpoint)});
      continue;
    }
    add(counters_.bytes_sent, count_bytes(frames));
    add(counters_.messages_sent);
  }
}

Result<Peer*> ZmqHub::Impl::find_or_connect(const Endpoint& to) {
  if (const auto known = peers_.find(to); known != peers_.end()) return &known->second;
  if (peers_.size() >= options_.endpoints_max) evict_one();
  if (peers_.size() >= options_.endpoints_max) {
    return Error{Errc::limit, "cannot send to " + to_string(to) + ": all " +
                                  std::to_string(peers_.size()) +
                                  " endpoints have messages waiting"};
  }
  Result<ZmqSocket> socket = ZmqSocket::connect_push(context_, to);
  if (!socket) return socket.error();
  const OutboxLimits limits{options_.outbox_messages_max, options_.outbox_bytes_max};
  Peer fresh{to, std::move(socket.value()), {}, Outbox(limits), {}};
  if (handlers_.on_disconnected) {
    Result<ZmqSocket> watcher = fresh.socket.watch(context_);
    if (!watcher) return watcher.error();
    fresh.watcher = std::move(watcher.value());
  }
  Peer& peer = peers_.emplace(to, std::move(fresh)).first->second;
  epoll_event event{EPOLLIN, {.ptr = &peer}};
  for (const ZmqSocket* watched : {&peer.socket, &peer.watcher}) {
    if (!watched->is_open()) continue;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, watched->descriptor(), &event) == 0) continue;
    const std::string cause = std::strerror(errno);
    forget(peers_.find(to), {});
    return Error{Errc::io, "cannot poll the socket to " + to_string(to) + ": " + cause};
  }
  counters_.endpoints_open.store(peers_.size(), std::memory_order_relaxed);
  return &peer;
}

void ZmqHub::Impl::evict_one() {
  auto oldest = peers_.end();
  for (auto peer = peers_.begin(); peer != peers_.end(); ++peer) {
    if (!peer->second.outbox.empty()) continue;
    if (oldest == peers_.end() || peer->second.last_used < oldest->second.last_used) oldest = peer;
  }
  if (oldest == peers_.end()) return;
  close_socket(oldest->second, options_.flush_timeout);
  forget(oldest, {});
}

void ZmqHub::Impl::close_socket(Peer& peer, Duration linger) {
  if (!peer.socket.is_open()) return;
  // libzmq closes the descriptor later, on a thread of its own: until then epoll would go on
  // reporting a peer that does not exist any more.
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, peer.socket.descriptor(), nullptr);
  peer.socket.close(linger);
  if (!peer.watcher.is_open()) return;
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, peer.watcher.descriptor(), nullptr);
  peer.watcher.close(Duration::zero());
}

void ZmqHub::Impl::forget(std::map<Endpoint, Peer>::iterator peer, Error error) {
  auto removed = peers_.extract(peer);  // first: report() may not see a half-removed peer
  counters_.endpoints_open.store(peers_.size(), std::memory_order_relaxed);
  Peer& gone = removed.mapped();
  close_socket(gone, Duration::zero());
  while (!gone.outbox.empty()) report(gone.endpoint, gone.outbox.pop(), error);
}

void ZmqHub::Impl::drop_requested_peers() {
  std::vector<Endpoint> requested;
  {
    const std::scoped_lock lock(mutex_);
    requested.swap(disconnects_);
  }
  for (const Endpoint& endpoint : requested) {
    const auto peer = peers_.find(endpoint);
    if (peer == peers_.end()) continue;
    forget(peer, Error{Errc::closed, "the connection to " + to_string(endpoint) + " was given up"});
  }
}

void ZmqHub::Impl::drop_expired(Instant now) {
  next_expiry_.reset();
  for (auto& [endpoint, peer] : peers_) {
    for (const Frames& frames : peer.outbox.pop_expired(now)) {
      report(endpoint, frames,
             Error{Errc::timeout, "nobody took a message at " + to_string(endpoint) + " within " +
                                      in_words(options_.send_timeout) +
                                      " (not listening, not reachable or not reading)"});
    }
    const std::optional<Instant> expiry = peer.outbox.next_deadline();
    if (expiry && (!next_expiry_ || *expiry < *next_expiry_)) next_expiry_ = expiry;
  }
}

void ZmqHub::Impl::report(const Endpoint& to, const Frames& frames, Error error) {
  add(counters_.sends_failed);
  if (handlers_.on_send_failed) guarded([&] { handlers_.on_send_failed(to, frames, error); });
}

Result<std::unique_ptr<ZmqHub>> ZmqHub::create(const HubOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  if (Result<void> opened = impl->open(); !opened) return opened.error();
  return std::unique_ptr<ZmqHub>(new ZmqHub(std::move(impl)));
}

ZmqHub::ZmqHub(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ZmqHub::~ZmqHub() = default;
std::uint16_t ZmqHub::port() const { return impl_->port(); }
void ZmqHub::start(HubHandlers handlers) { impl_->start(std::move(handlers)); }
void ZmqHub::wake() { impl_->wake(); }
void ZmqHub::disconnect(const Endpoint& endpoint) { impl_->disconnect(endpoint); }
void ZmqHub::stop() { impl_->stop(); }
HubStats ZmqHub::stats() const { return impl_->stats(); }

}  // namespace baton::net
