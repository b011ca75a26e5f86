// Each fault of FaultyEngine does what it says, by the clock it was given.
#include "engine/faulty_engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "engine/memory_engine.hpp"

namespace baton::engine {
namespace {

using std::chrono::milliseconds;

class Faulty : public testing::Test {
 protected:
  void start(const FaultSettings& settings) {
    settings_ = settings;
    engine_ = std::make_unique<FaultyEngine>(std::make_unique<MemoryEngine>(hub_), settings,
                                             [this] { return now_; });
    Region region;
    region.address = reinterpret_cast<std::uint64_t>(target_.data());
    region.length_bytes = target_.size();
    ASSERT_TRUE(receiver_.register_region(region));
    std::iota(source_.begin(), source_.end(), 1);
    peer_ = engine_->connect(receiver_.local_descriptor().value()).value();
    for (std::size_t i = 0; i < kRuns; ++i) {
      batch_.push_back({reinterpret_cast<std::uint64_t>(source_.data() + i * kRunBytes),
                        reinterpret_cast<std::uint64_t>(target_.data() + i * kRunBytes),
                        kRunBytes});
    }
  }
  std::vector<Completion> progress() {
    std::vector<Completion> out;
    // An inner completion shows one call later.
    for (int i = 0; i < 3; ++i) engine_->progress(out);
    return out;
  }
  void submit(std::uint64_t ticket) {
    const Result<Admission> admission = engine_->submit(Ticket{ticket}, peer_, batch_);
    ASSERT_TRUE(admission);
    ASSERT_EQ(*admission, Admission::accepted);
  }
  bool has_landed() const { return target_ == source_; }
  bool is_untouched() const {
    return std::ranges::all_of(target_, [](std::uint8_t byte) { return byte == 0; });
  }
  std::size_t damaged_bytes() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < source_.size(); ++i) count += source_[i] != target_[i];
    return count;
  }

  static constexpr std::size_t kRuns = 10, kRunBytes = 16;
  std::shared_ptr<MemoryHub> hub_ = std::make_shared<MemoryHub>();
  Instant now_{};
  FaultSettings settings_;
  MemoryEngine receiver_{hub_};
  std::unique_ptr<FaultyEngine> engine_;
  std::vector<std::uint8_t> source_ = std::vector<std::uint8_t>(kRuns * kRunBytes);
  std::vector<std::uint8_t> target_ = std::vector<std::uint8_t>(kRuns * kRunBytes);
  std::vector<WriteRun> batch_;
  EnginePeer peer_;
};

TEST_F(Faulty, FailsBeforeAndAfterLanding) {
  start({});
  engine_->script(Fault::fail_before);
  submit(1);
  std::vector<Completion> out = progress();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].outcome, Outcome::failed);
  EXPECT_TRUE(is_untouched());
  engine_->script(Fault::fail_after);
  submit(2);
  out = progress();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].outcome, Outcome::failed);
  EXPECT_TRUE(has_landed());
}

TEST_F(Faulty, FailsPartly) {
  start({});
  engine_->script(Fault::fail_partly);
  submit(1);
  EXPECT_EQ(progress().at(0).outcome, Outcome::failed);
  EXPECT_GT(damaged_bytes(), 0U);
  EXPECT_FALSE(is_untouched());
}

TEST_F(Faulty, StallsUntilReleased) {
  start({});
  engine_->script(Fault::stall);
  submit(1);
  now_ += std::chrono::hours(1);
  EXPECT_TRUE(progress().empty());
  EXPECT_EQ(engine_->stalled_count(), 1U);
  engine_->release_stalled();
  EXPECT_EQ(progress().at(0).outcome, Outcome::ok);
  EXPECT_TRUE(has_landed());
}

TEST_F(Faulty, AnswersUnsettledThenSettled) {
  start({});
  engine_->script(Fault::unsettled);
  submit(1);
  EXPECT_EQ(progress().at(0).outcome, Outcome::unsettled);
  EXPECT_TRUE(progress().empty());
  EXPECT_TRUE(is_untouched());
  now_ += settings_.late_by;
  const std::vector<Completion> out = progress();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].outcome, Outcome::settled);
  EXPECT_TRUE(has_landed());
}

TEST_F(Faulty, AnswersBusyAndTakesNothing) {
  FaultSettings settings;
  settings.busy_permille = 1000;
  start(settings);
  EXPECT_EQ(engine_->submit(Ticket{1}, peer_, batch_).value(), Admission::busy);
  EXPECT_TRUE(progress().empty());
}

TEST_F(Faulty, DelaysByItsClock) {
  FaultSettings settings;
  settings.delay_min = settings.delay_max = milliseconds(10);
  start(settings);
  submit(1);
  now_ += milliseconds(9);
  EXPECT_TRUE(progress().empty());
  EXPECT_TRUE(is_untouched());
  now_ += milliseconds(1);
  EXPECT_TRUE(progress().empty());
  EXPECT_TRUE(has_landed());
  now_ += milliseconds(10);
  EXPECT_EQ(progress().at(0).outcome, Outcome::ok);
}

TEST_F(Faulty, DropsAPeerAndConnectsAfresh) {
  start({});
  engine_->script(Fault::stall);
  submit(1);
  engine_->drop_peer(peer_);
  const std::vector<Completion> out = progress();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].outcome, Outcome::failed);
  EXPECT_TRUE(out[0].peer_lost);
  submit(2);
  EXPECT_TRUE(progress().at(0).peer_lost);
  const EnginePeer fresh = engine_->connect(receiver_.local_descriptor().value()).value();
  EXPECT_NE(fresh, peer_);
  peer_ = fresh;
  submit(3);
  EXPECT_EQ(progress().at(0).outcome, Outcome::ok);
}

TEST_F(Faulty, FlipsExactlyOneBitAndLeavesTheSourceAlone) {
  FaultSettings settings;
  settings.tamper = TamperMode::flip_bit;
  start(settings);
  const std::vector<std::uint8_t> before = source_;
  submit(1);
  EXPECT_EQ(progress().at(0).outcome, Outcome::ok);
  EXPECT_EQ(source_, before);
  int bits = 0;
  for (std::size_t i = 0; i < source_.size(); ++i) {
    bits += __builtin_popcount(static_cast<unsigned>(source_[i] ^ target_[i]));
  }
  EXPECT_EQ(bits, 1);
  EXPECT_EQ(engine_->tampered_count(), 1U);
}

TEST_F(Faulty, SwapsTwoTargets) {
  FaultSettings settings;
  settings.tamper = TamperMode::swap_targets;
  start(settings);
  submit(1);
  EXPECT_EQ(progress().at(0).outcome, Outcome::ok);
  EXPECT_EQ(damaged_bytes(), 2 * kRunBytes);
  std::vector<std::uint8_t> a = source_, b = target_;
  std::ranges::sort(a);
  std::ranges::sort(b);
  EXPECT_EQ(a, b);
}

TEST_F(Faulty, DropsOneRun) {
  FaultSettings settings;
  settings.tamper = TamperMode::drop_run;
  start(settings);
  submit(1);
  EXPECT_EQ(progress().at(0).outcome, Outcome::ok);
  EXPECT_EQ(damaged_bytes(), kRunBytes);
}

TEST_F(Faulty, CompletesEarlyAndWritesTheOldBytesLater) {
  FaultSettings settings;
  settings.tamper = TamperMode::early_completion;
  start(settings);
  submit(1);
  EXPECT_EQ(progress().at(0).outcome, Outcome::ok);
  EXPECT_EQ(damaged_bytes(), kRunBytes);
  const std::vector<std::uint8_t> before = source_;
  std::ranges::fill(source_, 0xFF);  // E6: the source may be reused after the completion
  now_ += settings_.late_by;
  EXPECT_TRUE(progress().empty());
  EXPECT_EQ(target_, before);
}

// E1 under everything at once: one final word for each ticket, whatever the seed.
TEST_F(Faulty, EveryTicketEndsOnceUnderAllFaults) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  FaultSettings settings;
  settings.seed = seed;
  settings.busy_permille = 100;
  settings.fail_before_permille = settings.fail_partly_permille = 50;
  settings.fail_after_permille = settings.unsettled_permille = settings.stall_permille = 50;
  settings.delay_max = milliseconds(20);
  settings.shuffles_completions = true;
  start(settings);
  std::map<std::uint64_t, std::vector<Outcome>> words;
  std::vector<std::uint64_t> order;
  std::vector<Completion> out;
  std::uint64_t accepted = 0;
  for (std::uint64_t step = 0; step < 5000; ++step) {
    if (step < 3000 &&
        engine_->submit(Ticket{accepted}, peer_, batch_).value() == Admission::accepted) {
      ++accepted;
    }
    if (step % 100 == 0) engine_->release_stalled();
    now_ += milliseconds(1);
    out.clear();
    engine_->progress(out);
    for (const Completion& completion : out) {
      words[completion.ticket.value].push_back(completion.outcome);
      order.push_back(completion.ticket.value);
    }
  }
  EXPECT_EQ(words.size(), accepted);
  for (const auto& [ticket, outcomes] : words) {
    const bool is_unsettled = outcomes.front() == Outcome::unsettled;
    ASSERT_EQ(outcomes.size(), is_unsettled ? 2U : 1U) << ticket;
    EXPECT_EQ(outcomes.back() == Outcome::settled, is_unsettled) << ticket;
  }
  EXPECT_FALSE(std::ranges::is_sorted(order));
}

}  // namespace
}  // namespace baton::engine
