// How close the engines come to the machine: each engine beside its bare counterpart, in turn.
//
// Every iteration moves the same scattered blocks once by the engine and once without it, so that
// both meet the same noise; the counter `ratio` (engine / bare) is what counts. Memory is touched
// before the clock starts.
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "baton/engine.hpp"
#include "baton/shared_memory.hpp"

namespace {

using namespace baton;

constexpr std::size_t kPoolBytes = 128U << 20U;
constexpr std::size_t kStreams = 4;

struct Memory {
  explicit Memory(std::size_t block_bytes)
      : source(kPoolBytes), target(std::move(SharedMemory::create(kPoolBytes).value())) {
    std::memset(source.data(), 1, source.size());
    std::memset(target.data(), 2, target.size_bytes());
    std::vector<std::size_t> places(kPoolBytes / block_bytes);
    std::iota(places.begin(), places.end(), 0);
    std::vector<std::size_t> shuffled = places;
    std::mt19937_64 random(7);
    std::ranges::shuffle(places, random);
    std::ranges::shuffle(shuffled, random);
    for (std::size_t i = 0; i < places.size(); ++i) {
      batch.push_back({reinterpret_cast<std::uint64_t>(source.data()) + places[i] * block_bytes,
                       reinterpret_cast<std::uint64_t>(target.data()) + shuffled[i] * block_bytes,
                       block_bytes});
    }
  }
  std::vector<std::byte> source;
  SharedMemory target;
  std::vector<WriteRun> batch;
};

double seconds_of(const auto& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void write_and_wait(TransferEngine& engine, EnginePeer peer, const Memory& memory) {
  static std::uint64_t ticket = 0;
  std::vector<Completion> out;
  if (!engine.submit(Ticket{++ticket}, peer, memory.batch)) std::abort();
  while (engine.progress(out) == 0) {
    pollfd event{engine.event_descriptor(), POLLIN, 0};
    ::poll(&event, 1, 1000);
  }
  if (out.front().outcome != Outcome::ok) std::abort();
}

void copy_blocks(const Memory& memory) {
  for (const WriteRun& run : memory.batch) {
    std::memcpy(reinterpret_cast<void*>(run.target), reinterpret_cast<const void*>(run.source),
                run.length_bytes);
  }
  benchmark::ClobberMemory();
}

// The receiving thread of the bare sockets: knows beforehand what comes where.
void receive_blocks(const std::vector<int>& sockets, const Memory& memory) {
  struct Stream {
    std::size_t next = 0, done = 0;
  };
  std::vector<Stream> streams(sockets.size());
  const std::size_t count = memory.batch.size(), step = sockets.size();
  for (std::size_t i = 0; i < step; ++i) streams[i].next = i;
  const int epoll = ::epoll_create1(0);
  for (std::size_t i = 0; i < step; ++i) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i], &event);
  }
  std::size_t open = step;
  while (open > 0) {
    std::array<epoll_event, 8> events{};
    const int ready = ::epoll_wait(epoll, events.data(), events.size(), -1);
    for (int e = 0; e < ready; ++e) {
      const std::size_t index = events[static_cast<std::size_t>(e)].data.u64;
      Stream& stream = streams[index];
      std::array<iovec, 64> parts{};
      std::size_t used = 0;
      for (std::size_t i = stream.next; i < count && used < parts.size(); i += step) {
        const std::size_t skip = used == 0 ? stream.done : 0;
        parts[used++] = {reinterpret_cast<char*>(memory.batch[i].target) + skip,
                         memory.batch[i].length_bytes - skip};
      }
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = used;
      const ssize_t got = ::recvmsg(sockets[index], &message, MSG_DONTWAIT);
      if (got <= 0) continue;
      stream.done += static_cast<std::size_t>(got);
      while (stream.next < count && stream.done >= memory.batch[stream.next].length_bytes) {
        stream.done -= memory.batch[stream.next].length_bytes;
        stream.next += step;
      }
      if (stream.next < count) continue;
      const char done = 1;
      if (::send(sockets[index], &done, 1, MSG_NOSIGNAL) != 1) std::abort();
      ::epoll_ctl(epoll, EPOLL_CTL_DEL, sockets[index], nullptr);
      --open;
    }
  }
  ::close(epoll);
}

void send_blocks(const std::vector<int>& sockets, const Memory& memory) {
  const std::size_t count = memory.batch.size(), step = sockets.size();
  std::vector<std::size_t> next(step), done(step, 0);
  std::iota(next.begin(), next.end(), 0);
  for (std::size_t open = step; open > 0;) {
    bool has_sent = false;
    open = 0;
    for (std::size_t s = 0; s < step; ++s) {
      std::array<iovec, 64> parts{};
      std::size_t used = 0;
      for (std::size_t i = next[s]; i < count && used < parts.size(); i += step) {
        const std::size_t skip = used == 0 ? done[s] : 0;
        parts[used++] = {reinterpret_cast<char*>(memory.batch[i].source) + skip,
                         memory.batch[i].length_bytes - skip};
      }
      if (used == 0) continue;
      ++open;
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = used;
      const ssize_t sent = ::sendmsg(sockets[s], &message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent <= 0) continue;
      has_sent = true;
      done[s] += static_cast<std::size_t>(sent);
      while (next[s] < count && done[s] >= memory.batch[next[s]].length_bytes) {
        done[s] -= memory.batch[next[s]].length_bytes;
        next[s] += step;
      }
    }
    if (has_sent || open == 0) continue;
    std::array<pollfd, kStreams> waits{};
    for (std::size_t s = 0; s < step; ++s) waits[s] = {sockets[s], POLLOUT, 0};
    ::poll(waits.data(), step, 1000);
  }
  for (const int socket : sockets) {
    char done_byte = 0;
    if (::recv(socket, &done_byte, 1, 0) != 1) std::abort();
  }
}

struct BareSockets {
  explicit BareSockets(std::size_t count) {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(listener, 16);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
    for (std::size_t i = 0; i < count; ++i) {
      senders.push_back(::socket(AF_INET, SOCK_STREAM, 0));
      ::connect(senders.back(), reinterpret_cast<sockaddr*>(&address), sizeof address);
      receivers.push_back(::accept(listener, nullptr, nullptr));
      const int on = 1;
      ::setsockopt(senders.back(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    ::close(listener);
  }
  ~BareSockets() {
    for (const int socket : senders) ::close(socket);
    for (const int socket : receivers) ::close(socket);
  }
  std::vector<int> senders, receivers;
};

// Reports both rates and their ratio; the state's own time is that of both together.
class Comparison {
 public:
  void add(double engine_seconds, double bare_seconds) {
    engine_.push_back(engine_seconds);
    bare_.push_back(bare_seconds);
  }
  void report(benchmark::State& state) {
    const double engine = median(engine_), bare = median(bare_);
    state.counters["engine_GBps"] = static_cast<double>(kPoolBytes) / engine / 1e9;
    state.counters["bare_GBps"] = static_cast<double>(kPoolBytes) / bare / 1e9;
    state.counters["ratio"] = bare / engine;
  }

 private:
  static double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  }
  std::vector<double> engine_, bare_;
};

struct Pair {
  Pair(const char* name, const Memory& memory, bool is_shared) {
    EngineOptions options;
    options.connections_per_peer = kStreams;
    sender = std::move(*make_engine(name, options));
    receiver = std::move(*make_engine(name, options));
    Region region = memory.target.region();
    if (!is_shared) region.shared_fd = -1;
    if (!receiver->register_region(region)) std::abort();
    peer = sender->connect(receiver->local_descriptor().value()).value();
  }
  std::unique_ptr<TransferEngine> sender, receiver;
  EnginePeer peer;
};

void bench_local(benchmark::State& state, bool is_shared) {
  const Memory memory(static_cast<std::size_t>(state.range(0)));
  const Pair pair("local", memory, is_shared);
  write_and_wait(*pair.sender, pair.peer, memory);
  copy_blocks(memory);
  Comparison comparison;
  for (auto _ : state) {
    const double engine = seconds_of([&] { write_and_wait(*pair.sender, pair.peer, memory); });
    comparison.add(engine, seconds_of([&] { copy_blocks(memory); }));
  }
  comparison.report(state);
}

void bench_tcp(benchmark::State& state) {
  const Memory memory(static_cast<std::size_t>(state.range(0)));
  const Pair pair("mooncake_tcp", memory, false);
  const BareSockets sockets(kStreams);
  write_and_wait(*pair.sender, pair.peer, memory);
  Comparison comparison;
  for (auto _ : state) {
    const double engine = seconds_of([&] { write_and_wait(*pair.sender, pair.peer, memory); });
    std::thread receiver([&] { receive_blocks(sockets.receivers, memory); });
    comparison.add(engine, seconds_of([&] { send_blocks(sockets.senders, memory); }));
    receiver.join();
  }
  comparison.report(state);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int bytes : {4 << 10, 16 << 10, 64 << 10, 1 << 20}) benchmark->Arg(bytes);
  benchmark->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(2.0);
}

BENCHMARK_CAPTURE(bench_local, shared_memory, true)->Apply(sizes);
BENCHMARK_CAPTURE(bench_local, process_vm_writev, false)->Apply(sizes);
BENCHMARK(bench_tcp)->Apply(sizes);

}  // namespace
