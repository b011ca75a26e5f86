// Our mooncake_tcp against the real Mooncake Transfer Engine, in both directions, where it is
// installed: BATON_MOONCAKE_LIBRARY names its libtransfer_engine.so. Skipped elsewhere.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/driver.hpp"

namespace baton::engine::test {
namespace {

// The few calls of its C interface that are needed, by their documented shapes. [spec 4.3]
struct MooncakeRequest {
  int opcode = 1;  // write
  void* source = nullptr;
  std::int32_t segment = 0;
  std::uint64_t target = 0;
  std::uint64_t length_bytes = 0;
};
static_assert(sizeof(MooncakeRequest) == 40);
struct MooncakeStatus {
  int status = 0;
  std::uint64_t bytes = 0;
};
constexpr int kCompleted = 4, kFailed = 6;

class Mooncake {
 public:
  explicit Mooncake(const char* path) : library_(::dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {}
  bool is_loaded() const { return library_ != nullptr; }
  bool start() {
    engine_ = call<void*>("createTransferEngine", "P2PHANDSHAKE", "127.0.0.1", "127.0.0.1",
                          std::uint64_t{0}, 0);
    return engine_ != nullptr;
  }
  ~Mooncake() {
    if (engine_ != nullptr) call<void>("destroyTransferEngine", engine_);
  }
  std::string name() {
    std::array<char, 256> text{};
    call<int>("getLocalIpAndPort", engine_, text.data(), text.size());
    return text.data();
  }
  bool enregister(std::vector<std::byte>& memory) {
    return call<int>("registerLocalMemory", engine_, static_cast<void*>(memory.data()),
                     memory.size(), "cpu:0", 1) == 0;
  }
  void unregister(std::vector<std::byte>& memory) {
    call<int>("unregisterLocalMemory", engine_, static_cast<void*>(memory.data()));
  }
  // How many tasks completed and how many failed, once all have ended.
  std::pair<std::size_t, std::size_t> write(const std::string& segment,
                                            const std::vector<WriteRun>& runs) {
    const auto id = call<std::int32_t>("openSegment", engine_, segment.c_str());
    EXPECT_GE(id, 0);
    const auto batch = call<std::uint64_t>("allocateBatchID", engine_, runs.size());
    std::vector<MooncakeRequest> requests;
    for (const WriteRun& run : runs) {
      requests.push_back(
          {1, reinterpret_cast<void*>(run.source), id, run.target, run.length_bytes});
    }
    EXPECT_EQ(call<int>("submitTransfer", engine_, batch, requests.data(), requests.size()), 0);
    std::size_t completed = 0, failed = 0;
    for (std::size_t task = 0; task < runs.size(); ++task) {
      MooncakeStatus status;
      while (status.status != kCompleted && status.status != kFailed) {
        if (call<int>("getTransferStatus", engine_, batch, task, &status) != 0) break;
        std::this_thread::yield();
      }
      ++(status.status == kCompleted ? completed : failed);
    }
    call<int>("freeBatchID", engine_, batch);
    return {completed, failed};
  }

 private:
  template <class Value, class... Arguments>
  Value call(const char* function, Arguments... arguments) {
    const auto pointer = reinterpret_cast<Value (*)(Arguments...)>(::dlsym(library_, function));
    EXPECT_NE(pointer, nullptr) << function;
    return pointer(arguments...);
  }
  void* library_;
  void* engine_ = nullptr;
};

class MooncakeInterop : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("BATON_MOONCAKE_LIBRARY");
    if (path == nullptr) GTEST_SKIP() << "BATON_MOONCAKE_LIBRARY names no libtransfer_engine.so";
    ::setenv("MC_FORCE_TCP", "1", 1);
    mooncake_ = std::make_unique<Mooncake>(path);
    ASSERT_TRUE(mooncake_->is_loaded()) << ::dlerror();
    ASSERT_TRUE(mooncake_->start());
    baton_ = std::move(*make_engine("mooncake_tcp", {}));
    std::generate(source_.begin(), source_.end(), [&] { return std::byte(random_() & 0xFFU); });
  }
  // `source_` in shuffled blocks to `target`, and what `target` must then hold.
  std::vector<WriteRun> make_batch(std::vector<std::byte>& target, std::size_t block_bytes,
                                   std::vector<std::byte>& expected) {
    std::vector<std::size_t> places(kBytes / block_bytes);
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    std::ranges::shuffle(places, random_);
    expected.resize(kBytes);
    std::vector<WriteRun> batch;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::size_t from = i * block_bytes, to = places[i] * block_bytes;
      batch.push_back({reinterpret_cast<std::uint64_t>(source_.data()) + from,
                       reinterpret_cast<std::uint64_t>(target.data()) + to, block_bytes});
      std::copy_n(source_.begin() + static_cast<std::ptrdiff_t>(from), block_bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(to));
    }
    return batch;
  }
  RegionId enregister(std::vector<std::byte>& memory) {
    Region region;
    region.address = reinterpret_cast<std::uint64_t>(memory.data());
    region.length_bytes = memory.size();
    return baton_->register_region(region).value();
  }

  static constexpr std::size_t kBytes = 8U << 20U;
  std::mt19937_64 random_{20261201};
  std::unique_ptr<Mooncake> mooncake_;
  std::unique_ptr<TransferEngine> baton_;
  std::vector<std::byte> source_ = std::vector<std::byte>(kBytes);
};

TEST_F(MooncakeInterop, OurEngineWritesIntoItsMemory) {
  std::vector<std::byte> target(kBytes), expected;
  ASSERT_TRUE(mooncake_->enregister(target));
  Driver driver(*baton_);
  const EnginePeer peer = baton_->connect(mooncake_->name()).value();
  for (const std::size_t block : {std::size_t{512}, std::size_t{65536}, kBytes}) {
    std::ranges::fill(target, std::byte{0});
    const std::vector<WriteRun> batch = make_batch(target, block, expected);
    const Completion written = driver.write(peer, batch);
    EXPECT_EQ(written.outcome, Outcome::ok) << written.error.text;
    EXPECT_TRUE(target == expected) << block;
  }
  // Out of range: rejected, the neighbours are not harmed, and the next batch works.
  std::vector<std::byte> stranger(4096);
  const std::vector<WriteRun> bad = {{reinterpret_cast<std::uint64_t>(source_.data()),
                                      reinterpret_cast<std::uint64_t>(stranger.data()), 4096}};
  const std::vector<WriteRun> good = make_batch(target, 4096, expected);
  const Ticket first = driver.submit(peer, good), second = driver.submit(peer, bad);
  ASSERT_TRUE(driver.wait_all());
  EXPECT_EQ(driver.ended(first).outcome, Outcome::ok) << driver.ended(first).error.text;
  EXPECT_EQ(driver.ended(second).outcome, Outcome::failed);
  EXPECT_TRUE(target == expected);
  EXPECT_TRUE(std::ranges::all_of(stranger, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(driver.write(peer, good).outcome, Outcome::ok);
  mooncake_->unregister(target);
}

TEST_F(MooncakeInterop, ItsEngineWritesIntoOurMemory) {
  std::vector<std::byte> target(kBytes), expected;
  enregister(target);
  ASSERT_TRUE(mooncake_->enregister(source_));
  const std::string segment = baton_->local_descriptor().value();
  for (const std::size_t block : {std::size_t{65536}, std::size_t{1U << 20U}, kBytes}) {
    std::ranges::fill(target, std::byte{0});
    const std::vector<WriteRun> batch = make_batch(target, block, expected);
    const auto [completed, failed] = mooncake_->write(segment, batch);
    EXPECT_EQ(completed, batch.size());
    EXPECT_EQ(failed, 0U);
    EXPECT_TRUE(target == expected) << block;
  }
  std::vector<std::byte> stranger(4096);
  const std::vector<WriteRun> bad = {{reinterpret_cast<std::uint64_t>(source_.data()),
                                      reinterpret_cast<std::uint64_t>(stranger.data()), 4096}};
  EXPECT_EQ(mooncake_->write(segment, bad).second, 1U);
  EXPECT_TRUE(std::ranges::all_of(stranger, [](std::byte b) { return b == std::byte{0}; }));
  const std::vector<WriteRun> good = make_batch(target, 65536, expected);
  EXPECT_EQ(mooncake_->write(segment, good).first, good.size());
  EXPECT_TRUE(target == expected);
  mooncake_->unregister(source_);
}

}  // namespace
}  // namespace baton::engine::test
