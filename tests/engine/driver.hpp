// Driver: submits batches to an engine, collects completions, and holds the engine to E1 and E4.
#pragma once

#include <poll.h>

#include <chrono>
#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "baton/engine.hpp"

namespace baton::engine::test {

// Generous: it only bounds how long a broken engine hangs the suite.
constexpr auto kPatience = std::chrono::seconds(100);

class Driver {
 public:
  explicit Driver(TransferEngine& engine) : engine_(engine) {}

  Ticket submit(EnginePeer peer, WriteBatch batch) {
    const Ticket ticket{next_++};
    const Instant until = Clock::now() + kPatience;
    while (Clock::now() < until) {
      const Result<Admission> admission = engine_.submit(ticket, peer, batch);
      EXPECT_TRUE(admission) << (admission ? "" : admission.error().text);
      if (!admission || *admission == Admission::accepted) break;
      step();
    }
    ++open_;
    return ticket;
  }

  void step() {
    completions_.clear();
    const std::size_t count = engine_.progress(completions_);
    EXPECT_EQ(count, completions_.size());
    for (const Completion& completion : completions_) take(completion);
    if (count > 0) return;
    pollfd event{engine_.event_descriptor(), POLLIN, 0};
    if (event.fd >= 0) {
      ::poll(&event, 1, 20);
    } else {
      std::this_thread::yield();
    }
  }

  // False if the engine did not get there.
  bool wait_for(Ticket ticket) {
    return wait_until([&] { return is_final(ticket); });
  }
  bool wait_all() {
    return wait_until([&] { return open_ == 0; });
  }
  template <class Condition>
  bool wait_until(const Condition& condition) {
    const Instant until = Clock::now() + kPatience;
    while (!condition()) {
      if (Clock::now() >= until) return false;
      step();
    }
    return true;
  }

  bool is_final(Ticket ticket) const {
    const auto entry = ended_.find(ticket.value);
    return entry != ended_.end() && entry->second.outcome != Outcome::unsettled;
  }
  const Completion& ended(Ticket ticket) const { return ended_.at(ticket.value); }
  bool has_word(Ticket ticket) const { return ended_.contains(ticket.value); }
  std::size_t open_count() const { return open_; }

  Completion write(EnginePeer peer, WriteBatch batch) {
    const Ticket ticket = submit(peer, batch);
    EXPECT_TRUE(wait_for(ticket)) << "no completion";
    return has_word(ticket) ? ended(ticket) : Completion{};
  }

 private:
  void take(const Completion& completion) {
    const auto [entry, is_first] = ended_.try_emplace(completion.ticket.value, completion);
    if (!is_first) {
      // Only `settled`, once, after `unsettled`.
      EXPECT_EQ(entry->second.outcome, Outcome::unsettled) << completion.ticket.value;
      EXPECT_EQ(completion.outcome, Outcome::settled) << completion.ticket.value;
      entry->second = completion;
    } else {
      EXPECT_NE(completion.outcome, Outcome::settled) << completion.ticket.value;
    }
    const bool is_ok = completion.outcome == Outcome::ok;
    EXPECT_EQ(completion.error.text.empty(), is_ok) << completion.error.text;
    if (completion.outcome != Outcome::unsettled) --open_;
  }

  TransferEngine& engine_;
  std::vector<Completion> completions_;
  std::map<std::uint64_t, Completion> ended_;
  std::uint64_t next_ = 1;
  std::size_t open_ = 0;
};

}  // namespace baton::engine::test
