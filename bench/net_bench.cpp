// Control plane: hub round trips and throughput, HTTP calls over keep-alive connections.
#include <benchmark/benchmark.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/http_client.hpp"
#include "net/http_server.hpp"
#include "net/zmq_hub.hpp"

namespace {

using namespace baton;

// A hub with a mutex-protected outbox, as the runtime uses it.
class BenchHub {
 public:
  explicit BenchHub(std::function<void(Frames)> on_message) {
    net::HubOptions options;
    options.bind_host = "127.0.0.1";
    options.outbox_messages_max = 1'000'000;
    hub_ = std::move(net::ZmqHub::create(options).value());
    hub_->start({.on_message = std::move(on_message),
                 .on_send_failed = nullptr,
                 .on_disconnected = nullptr,
                 .collect =
                     [this](std::vector<net::Outgoing>& out) {
                       const std::scoped_lock lock(mutex_);
                       out.swap(queue_);
                     },
                 .on_timer = nullptr});
  }
  ~BenchHub() { hub_->stop(); }

  Endpoint endpoint() const { return {"127.0.0.1", hub_->port()}; }
  void send(const Endpoint& to, Frames frames) {
    {
      const std::scoped_lock lock(mutex_);
      queue_.push_back({to, std::move(frames)});
    }
    hub_->wake();
  }

 private:
  std::mutex mutex_;
  std::vector<net::Outgoing> queue_;
  std::unique_ptr<net::ZmqHub> hub_;
};

// Frames of about the size of a Mooncake metadata message.
Frames sample_message() {
  return {"1234567", "10.0.0.1", "40000", "10.0.0.1:15000", std::string(512, 'k'), "3",
          "",        "1",        "0"};
}

void hub_round_trip(benchmark::State& state) {
  std::atomic<std::uint64_t> returned{0};
  BenchHub near([&](Frames) {
    ++returned;
    returned.notify_one();
  });
  std::unique_ptr<BenchHub> far;
  const Endpoint back = near.endpoint();
  far = std::make_unique<BenchHub>([&](Frames frames) { far->send(back, std::move(frames)); });
  std::uint64_t sent = 0;
  for (auto _ : state) {
    near.send(far->endpoint(), sample_message());
    returned.wait(sent++);
  }
}
BENCHMARK(hub_round_trip)->UseRealTime();

void hub_throughput(benchmark::State& state) {
  constexpr std::uint64_t kBatch = 1000;
  std::atomic<std::uint64_t> received{0};
  BenchHub receiver([&](Frames) {
    if (++received % kBatch == 0) received.notify_one();
  });
  BenchHub sender([](Frames) {});
  std::uint64_t wanted = 0;
  for (auto _ : state) {
    for (std::uint64_t index = 0; index < kBatch; ++index) {
      sender.send(receiver.endpoint(), sample_message());
    }
    wanted += kBatch;
    for (std::uint64_t seen = received; seen < wanted; seen = received) received.wait(seen);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatch));
}
BENCHMARK(hub_throughput)->UseRealTime();

void http_get(benchmark::State& state) {
  auto server = net::HttpServer::start(
      {}, [](const net::HttpRequest&, net::HttpResponder responder) { responder.respond({}); });
  net::HttpClient client;
  net::HttpCall call;
  call.to = {"127.0.0.1", (*server)->port()};
  for (auto _ : state) {
    if (!client.send_and_wait(call)) state.SkipWithError("no reply");
  }
}
BENCHMARK(http_get)->UseRealTime();

}  // namespace
