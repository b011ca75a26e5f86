// E3 and E8 with real peer processes: killed, stopped, restarted, and what they leave behind.
#include <dirent.h>
#include <signal.h>

#include <algorithm>
#include <string>

#include "engine/conformance.hpp"

namespace baton::engine::test {
namespace {

constexpr std::size_t kMiB = 1U << 20U;

std::size_t count_descriptors() {
  std::size_t count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

std::vector<WriteRun> big_batch(const Model& model, const std::vector<std::byte>& source) {
  std::vector<WriteRun> batch;
  constexpr std::size_t kRunBytes = 48 * 1024;
  for (std::size_t at = 0; at + kRunBytes <= source.size(); at += kRunBytes) {
    batch.push_back(model.run(source, at, kGuardBytes + at, kRunBytes));
  }
  return batch;
}

class PeerProcess : public Conformance {};

TEST_P(PeerProcess, KilledWithWritesInFlightCompletesEveryTicket) {
  const std::vector<std::byte> source = random_bytes(32 * kMiB);
  const std::vector<std::byte> before = source;
  const std::unique_ptr<TransferEngine> sender = make_sender();
  Driver driver(*sender);
  for (int round = 0; round < 5; ++round) {
    const std::unique_ptr<Peer> peer = make_peer(32 * kMiB);
    const Model model(*peer, pool_bytes(32 * kMiB));
    const EnginePeer to = sender->connect(peer->descriptor()).value();
    const std::vector<WriteRun> batch = big_batch(model, source);
    std::vector<Ticket> tickets;
    for (int i = 0; i < 20; ++i) tickets.push_back(driver.submit(to, batch));
    for (std::uint64_t i = below(12); i > 0; --i) driver.step();
    peer->kill_and_reap();
    ASSERT_TRUE(driver.wait_all());
    const Completion& last = driver.ended(tickets.back());
    EXPECT_EQ(last.outcome, Outcome::failed);
    EXPECT_TRUE(last.peer_lost) << last.error.text;
    EXPECT_EQ(driver.write(to, batch).outcome, Outcome::failed);
    sender->disconnect(to);
  }
  EXPECT_TRUE(source == before);
}

TEST_P(PeerProcess, OneOfTwoDies) {
  const std::unique_ptr<TransferEngine> sender = make_sender();
  const std::vector<std::byte> source = random_bytes(16 * kMiB);
  const std::unique_ptr<Peer> victim = make_peer(16 * kMiB), survivor = make_peer(16 * kMiB);
  const Model doomed(*victim, pool_bytes(16 * kMiB));
  Model model(*survivor, pool_bytes(16 * kMiB));
  const EnginePeer to_victim = sender->connect(victim->descriptor()).value();
  const EnginePeer to_survivor = sender->connect(survivor->descriptor()).value();
  const std::vector<WriteRun> bad = big_batch(doomed, source), good = big_batch(model, source);
  Driver driver(*sender);
  std::vector<Ticket> lost, kept;
  for (int i = 0; i < 10; ++i) {
    lost.push_back(driver.submit(to_victim, bad));
    kept.push_back(driver.submit(to_survivor, good));
  }
  driver.step();
  victim->kill_and_reap();
  ASSERT_TRUE(driver.wait_all());
  EXPECT_EQ(driver.ended(lost.back()).outcome, Outcome::failed);
  for (const Ticket ticket : kept) EXPECT_EQ(driver.ended(ticket).outcome, Outcome::ok);
  model.apply(good);
  EXPECT_TRUE(survivor->read(0, model.size()) == model.expected());
}

// A stopped process is slow, not dead.
TEST_P(PeerProcess, StoppedAndContinuedJustWaits) {
  const std::unique_ptr<TransferEngine> sender = make_sender();
  const std::vector<std::byte> source = random_bytes(32 * kMiB);
  const std::unique_ptr<Peer> peer = make_peer(32 * kMiB);
  Model model(*peer, pool_bytes(32 * kMiB));
  const EnginePeer to = sender->connect(peer->descriptor()).value();
  const std::vector<WriteRun> batch = big_batch(model, source);
  Driver driver(*sender);
  const std::vector<WriteRun> first = {batch.front()};
  EXPECT_EQ(driver.write(to, first).outcome, Outcome::ok);
  ::kill(peer->pid(), SIGSTOP);
  const Ticket ticket = driver.submit(to, batch);
  for (int i = 0; i < 50; ++i) driver.step();
  ::kill(peer->pid(), SIGCONT);
  ASSERT_TRUE(driver.wait_for(ticket));
  EXPECT_EQ(driver.ended(ticket).outcome, Outcome::ok) << driver.ended(ticket).error.text;
  model.apply(batch);
  EXPECT_TRUE(peer->read(0, model.size()) == model.expected());
}

TEST_P(PeerProcess, DisconnectedWhileStoppedSettlesOnceItRunsAgain) {
  const std::unique_ptr<TransferEngine> sender = make_sender();
  const std::vector<std::byte> source = random_bytes(64 * kMiB);
  const std::unique_ptr<Peer> peer = make_peer(64 * kMiB);
  const Model model(*peer, pool_bytes(64 * kMiB));
  const EnginePeer to = sender->connect(peer->descriptor()).value();
  const std::vector<WriteRun> batch = big_batch(model, source);
  Driver driver(*sender);
  const std::vector<WriteRun> first = {batch.front()};
  EXPECT_EQ(driver.write(to, first).outcome, Outcome::ok);
  ::kill(peer->pid(), SIGSTOP);
  const Ticket ticket = driver.submit(to, batch);
  for (int i = 0; i < 3; ++i) driver.step();
  sender->disconnect(to);
  // Either the engine can prove that nothing is on its way, or it must say that it cannot (E4).
  ASSERT_TRUE(driver.wait_until([&] { return driver.has_word(ticket); }));
  ::kill(peer->pid(), SIGCONT);
  ASSERT_TRUE(driver.wait_for(ticket));
  EXPECT_NE(driver.ended(ticket).outcome, Outcome::unsettled);
  const std::vector<std::byte> after = peer->read(0, model.size());
  for (int i = 0; i < 20; ++i) driver.step();
  EXPECT_TRUE(peer->read(0, model.size()) == after);
}

TEST_P(PeerProcess, KilledWhileStoppedAfterACancel) {
  const std::unique_ptr<TransferEngine> sender = make_sender();
  const std::vector<std::byte> source = random_bytes(64 * kMiB);
  const std::unique_ptr<Peer> peer = make_peer(64 * kMiB);
  const Model model(*peer, pool_bytes(64 * kMiB));
  const EnginePeer to = sender->connect(peer->descriptor()).value();
  const std::vector<WriteRun> batch = big_batch(model, source);
  Driver driver(*sender);
  const std::vector<WriteRun> first = {batch.front()};
  EXPECT_EQ(driver.write(to, first).outcome, Outcome::ok);
  ::kill(peer->pid(), SIGSTOP);
  const Ticket ticket = driver.submit(to, batch);
  for (int i = 0; i < 3; ++i) driver.step();
  sender->cancel(ticket);
  ASSERT_TRUE(driver.wait_until([&] { return driver.has_word(ticket); }));
  peer->kill_and_reap();
  EXPECT_TRUE(driver.wait_for(ticket));
}

TEST_P(PeerProcess, RestartedIsReachedAgain) {
  const std::unique_ptr<TransferEngine> sender = make_sender();
  Driver driver(*sender);
  const std::vector<std::byte> source = random_bytes(kMiB);
  std::uint16_t port = 0;
  EnginePeer previous{};
  for (int life = 0; life < 4; ++life) {
    const std::unique_ptr<Peer> peer = make_peer(4 * kMiB, port);
    const std::string descriptor = peer->descriptor();
    port = static_cast<std::uint16_t>(std::stoul(descriptor.substr(descriptor.rfind(':') + 1)));
    Model model(*peer, pool_bytes(4 * kMiB));
    const std::vector<WriteRun> batch = big_batch(model, source);
    EnginePeer to = sender->connect(descriptor).value();
    if (to == previous) {
      // The loss has not been noticed yet: it shows in a completion, then connect() is fresh.
      const Completion lost = driver.write(to, batch);
      EXPECT_EQ(lost.outcome, Outcome::failed);
      ASSERT_TRUE(driver.wait_until([&] {
        to = sender->connect(descriptor).value();
        return to != previous;
      }));
    }
    const Completion written = driver.write(to, batch);
    EXPECT_EQ(written.outcome, Outcome::ok) << written.error.text;
    model.apply(batch);
    EXPECT_TRUE(peer->read(0, model.size()) == model.expected());
    previous = to;
  }
}

TEST_P(PeerProcess, TwoHundredCyclesLeakNothing) {
  const std::unique_ptr<Peer> peer = make_peer(kMiB);
  const Model model(*peer, pool_bytes(kMiB));
  const std::vector<std::byte> source = random_bytes(1000);
  const std::vector<WriteRun> batch = {model.run(source, 0, kGuardBytes, 1000)};
  std::size_t before = 0;
  for (int cycle = 0; cycle < 200; ++cycle) {
    // The first cycle may open what stays open (none does today).
    if (cycle == 1) before = count_descriptors();
    const std::unique_ptr<TransferEngine> engine = make_sender();
    Region region;
    region.address = reinterpret_cast<std::uint64_t>(source.data());
    region.length_bytes = source.size();
    const RegionId id = engine->register_region(region).value();
    const EnginePeer to = engine->connect(peer->descriptor()).value();
    Driver driver(*engine);
    EXPECT_EQ(driver.write(to, batch).outcome, Outcome::ok);
    if (cycle % 2 == 0) engine->disconnect(to);
    if (cycle % 3 == 0) {
      EXPECT_TRUE(engine->unregister_region(id));
    }
  }
  EXPECT_EQ(count_descriptors(), before);
  EXPECT_TRUE(peer->guards_are_intact());
}

// One engine, many lives of connections to the same peer.
TEST_P(PeerProcess, TwoHundredReconnectsLeakNothing) {
  const std::unique_ptr<TransferEngine> engine = make_sender();
  const std::unique_ptr<Peer> peer = make_peer(kMiB);
  const Model model(*peer, pool_bytes(kMiB));
  const std::vector<std::byte> source = random_bytes(1000);
  const std::vector<WriteRun> batch = {model.run(source, 0, kGuardBytes, 1000)};
  Driver driver(*engine);
  std::size_t before = 0;
  for (int cycle = 0; cycle < 200; ++cycle) {
    const EnginePeer to = engine->connect(peer->descriptor()).value();
    EXPECT_EQ(driver.write(to, batch).outcome, Outcome::ok);
    engine->disconnect(to);
    driver.step();
    if (cycle == 1) before = count_descriptors();
  }
  EXPECT_EQ(count_descriptors(), before);
}

INSTANTIATE_TEST_SUITE_P(Engines, PeerProcess, testing::ValuesIn(process_kinds()), kind_name);

}  // namespace
}  // namespace baton::engine::test
