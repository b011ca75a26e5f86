// E1 to E9 for every engine, with a peer that stays alive.
#include "engine/conformance.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace baton::engine::test {
namespace {

constexpr std::size_t kMiB = 1U << 20U;

// Sender, peer and model in one place; most tests want exactly this.
struct World {
  explicit World(std::unique_ptr<TransferEngine> engine, std::unique_ptr<Peer> other,
                 std::size_t region_bytes)
      : sender(std::move(engine)),
        peer(std::move(other)),
        driver(*sender),
        model(*peer, pool_bytes(region_bytes)),
        to(sender->connect(peer->descriptor()).value()) {}
  bool matches() { return peer->read(0, model.size()) == model.expected(); }

  std::unique_ptr<TransferEngine> sender;
  std::unique_ptr<Peer> peer;
  Driver driver;
  Model model;
  EnginePeer to;
};

class EngineConformance : public Conformance {
 protected:
  World make_world(std::size_t region_bytes) {
    return World(make_sender(), make_peer(region_bytes), region_bytes);
  }
};

TEST_P(EngineConformance, WritesEveryOddSize) {
  constexpr std::size_t kSizeMax = 4097;
  World world = make_world(16 * kMiB);
  const std::vector<std::byte> source = random_bytes(kSizeMax * 2);
  std::vector<WriteRun> batch;
  std::size_t offset = kGuardBytes;
  for (std::size_t size = 1; size <= kSizeMax; ++size) {
    batch.push_back(world.model.run(source, below(kSizeMax), offset, size));
    offset += size + 1;  // one byte stays untouched between neighbours
  }
  std::ranges::shuffle(batch, random_);
  EXPECT_EQ(world.driver.write(world.to, batch).outcome, Outcome::ok);
  world.model.apply(batch);
  EXPECT_TRUE(world.matches());
}

TEST_P(EngineConformance, WritesTenThousandScatteredRunsInOneBatch) {
  World world = make_world(8 * kMiB);
  constexpr std::size_t kRuns = 10'000, kStride = 800;
  const std::vector<std::byte> source = random_bytes(kRuns * kStride);
  std::vector<WriteRun> batch;
  for (std::size_t i = 0; i < kRuns; ++i) {
    const std::size_t offset = world.model.size() > 0 ? kGuardBytes + i * kStride : 0;
    batch.push_back(world.model.run(source, below(kRuns) * kStride, offset, 1 + below(kStride)));
  }
  std::ranges::shuffle(batch, random_);
  EXPECT_EQ(world.driver.write(world.to, batch).outcome, Outcome::ok);
  world.model.apply(batch);
  EXPECT_TRUE(world.matches());
}

TEST_P(EngineConformance, CompletesEmptyBatchesAndSkipsEmptyRuns) {
  World world = make_world(kMiB);
  EXPECT_EQ(world.driver.write(world.to, {}).outcome, Outcome::ok);
  const std::vector<std::byte> source = random_bytes(100);
  const std::vector<WriteRun> nothing = {{0, 0, 0}, world.model.run(source, 0, 0, 0), {1, 1, 0}};
  EXPECT_EQ(world.driver.write(world.to, nothing).outcome, Outcome::ok);
  const std::vector<WriteRun> batch = {
      {0, 0, 0}, world.model.run(source, 0, kGuardBytes, 100), {0, 0, 0}};
  EXPECT_EQ(world.driver.write(world.to, batch).outcome, Outcome::ok);
  world.model.apply({batch[1]});
  EXPECT_TRUE(world.matches());
}

TEST_P(EngineConformance, WritesOneHugeRunAndLeavesTheSourceAlone) {
  constexpr std::size_t kLength = 64 * kMiB;
  World world = make_world(kLength);
  const std::vector<std::byte> source = random_bytes(kLength);
  const std::vector<std::byte> before = source;
  const std::vector<WriteRun> batch = {world.model.run(source, 0, kGuardBytes, kLength)};
  EXPECT_EQ(world.driver.write(world.to, batch).outcome, Outcome::ok);
  EXPECT_TRUE(source == before);
  world.model.apply(batch);
  EXPECT_TRUE(world.matches());
}

TEST_P(EngineConformance, KeepsManyTicketsInFlight) {
  World world = make_world(8 * kMiB);
  constexpr std::size_t kTickets = 5000, kRunsPerTicket = 3, kStride = 512;
  const std::vector<std::byte> source = random_bytes(kTickets * kRunsPerTicket * kStride);
  std::vector<std::vector<WriteRun>> batches(kTickets);
  std::size_t place = 0;
  for (std::vector<WriteRun>& batch : batches) {
    for (std::size_t i = 0; i < kRunsPerTicket; ++i, ++place) {
      batch.push_back(world.model.run(source, place * kStride, kGuardBytes + place * kStride,
                                      1 + below(kStride)));
    }
  }
  std::vector<Ticket> tickets;
  for (const auto& batch : batches) tickets.push_back(world.driver.submit(world.to, batch));
  ASSERT_TRUE(world.driver.wait_all());
  for (const Ticket ticket : tickets) EXPECT_EQ(world.driver.ended(ticket).outcome, Outcome::ok);
  for (const auto& batch : batches) world.model.apply(batch);
  EXPECT_TRUE(world.matches());
}

TEST_P(EngineConformance, ASmallBatchOvertakesAHugeOne) {
  if (GetParam().engine == "memory" || GetParam().engine == "faulty") {
    GTEST_SKIP() << "in-process copies are made batch by batch";
  }
  constexpr std::size_t kLength = 256 * kMiB;
  World world = make_world(kLength);
  const std::vector<std::byte> source(kLength, std::byte{1});
  const std::vector<WriteRun> huge = {world.model.run(source, 0, kGuardBytes, kLength)};
  const std::vector<WriteRun> small = {world.model.run(source, 0, kLength + 2 * kGuardBytes, 10)};
  const Ticket first = world.driver.submit(world.to, huge);
  const Ticket second = world.driver.submit(world.to, small);
  ASSERT_TRUE(world.driver.wait_for(second));
  EXPECT_FALSE(world.driver.is_final(first));
  ASSERT_TRUE(world.driver.wait_for(first));
}

TEST_P(EngineConformance, RefusesTargetsOutsideOfRegions) {
  World world = make_world(kMiB);
  const std::vector<std::byte> source = random_bytes(4 * kMiB);
  const std::uint64_t base = world.peer->base();
  const auto from = reinterpret_cast<std::uint64_t>(source.data());
  constexpr std::uint64_t kTop = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t first = base + kGuardBytes, end = first + kMiB;
  const std::vector<WriteRun> bad = {
      {from, base, 100},                      // the guard
      {from, end - 50, 100},                  // straddles the end
      {from, first - 1, 100},                 // straddles the start
      {from, end, 1},                         // just behind
      {from, first, 2 * kMiB + kGuardBytes},  // swallows the guard and ends in the other region
      {from, 0, 8},                           // null
      {from, 4096, 8},                        // not mapped
      {from, kTop - 10, 100},                 // wraps around
      {from, kTop - kMiB + 1, 3 * kMiB},      // wraps around, in slices
      {from, kTop, 1},                        // the last byte of all
  };
  for (const WriteRun& run : bad) {
    const std::vector<WriteRun> batch = {run};
    const Completion completion = world.driver.write(world.to, batch);
    EXPECT_EQ(completion.outcome, Outcome::failed) << run.target << " " << run.length_bytes;
    EXPECT_FALSE(completion.peer_lost);
  }
  EXPECT_TRUE(world.peer->guards_are_intact());
  const std::vector<WriteRun> good = {world.model.run(source, 0, kGuardBytes, kMiB)};
  EXPECT_EQ(world.driver.write(world.to, good).outcome, Outcome::ok);
}

TEST_P(EngineConformance, ABadBatchDoesNotHarmItsNeighbours) {
  World world = make_world(4 * kMiB);
  const std::vector<std::byte> source = random_bytes(4 * kMiB);
  constexpr std::size_t kTickets = 200, kStride = 16384;
  std::vector<std::vector<WriteRun>> batches(kTickets);
  for (std::size_t i = 0; i < kTickets; ++i) {
    const std::size_t place = i * kStride;
    batches[i] = {world.model.run(source, place, kGuardBytes + place, kStride)};
    if (i % 10 == 5) batches[i].push_back(world.model.run(source, 0, 0, 100));
  }
  std::vector<Ticket> tickets;
  for (const auto& batch : batches) tickets.push_back(world.driver.submit(world.to, batch));
  ASSERT_TRUE(world.driver.wait_all());
  for (std::size_t i = 0; i < kTickets; ++i) {
    const Outcome wanted = i % 10 == 5 ? Outcome::failed : Outcome::ok;
    EXPECT_EQ(world.driver.ended(tickets[i]).outcome, wanted)
        << i << " " << world.driver.ended(tickets[i]).error.text;
    if (wanted != Outcome::ok) continue;
    const std::size_t place = i * kStride;
    EXPECT_TRUE(std::ranges::equal(world.peer->read(kGuardBytes + place, kStride),
                                   std::span(source).subspan(place, kStride)));
  }
  EXPECT_TRUE(world.peer->guards_are_intact());
}

TEST_P(EngineConformance, RefusesSourcesThatWrapAround) {
  World world = make_world(kMiB);
  const std::vector<WriteRun> batch = {
      {std::numeric_limits<std::uint64_t>::max() - 1, world.peer->base() + kGuardBytes, 100}};
  const Result<Admission> admission = world.sender->submit(Ticket{9}, world.to, batch);
  ASSERT_FALSE(admission);
  EXPECT_EQ(admission.error().code, Errc::invalid_argument);
}

TEST_P(EngineConformance, ConnectsOnceToOneDescriptor) {
  World world = make_world(kMiB);
  EXPECT_EQ(world.sender->connect(world.peer->descriptor()).value(), world.to);
  world.sender->disconnect(world.to);
  const EnginePeer again = world.sender->connect(world.peer->descriptor()).value();
  const std::vector<std::byte> source = random_bytes(1000);
  const std::vector<WriteRun> batch = {world.model.run(source, 0, kGuardBytes, 1000)};
  EXPECT_EQ(world.driver.write(again, batch).outcome, Outcome::ok);
  EXPECT_FALSE(world.sender->submit(Ticket{99}, world.to, batch));
  world.sender->disconnect(world.to);  // unknown ids are ignored
}

TEST_P(EngineConformance, DescriptorsTravelAsSessionIds) {
  const std::unique_ptr<TransferEngine> engine = make_sender();
  const std::string descriptor = engine->local_descriptor().value();
  const std::size_t colon = descriptor.rfind(':');
  ASSERT_NE(colon, std::string::npos);
  EXPECT_EQ(descriptor.find('\0'), std::string::npos);
  EXPECT_FALSE(descriptor.substr(colon + 1).empty());
  EXPECT_EQ(descriptor.find_first_not_of("0123456789", colon + 1), std::string::npos);
}

TEST_P(EngineConformance, RefusesMalformedDescriptors) {
  const std::unique_ptr<TransferEngine> engine = make_sender();
  for (const char* text : {"", ":", "x", "memory:", "memory:1x", "local-12:x",
                           "127.0.0.1:", "127.0.0.1:70000", "[::1:5", "127.0.0.1:-1"}) {
    const Result<EnginePeer> peer = engine->connect(text);
    ASSERT_FALSE(peer) << text;
    EXPECT_EQ(peer.error().code, Errc::malformed) << text;
  }
}

TEST_P(EngineConformance, ManagesRegions) {
  const std::unique_ptr<TransferEngine> engine = make_sender();
  std::vector<std::byte> memory(10'000);
  Region region;
  region.address = reinterpret_cast<std::uint64_t>(memory.data());
  region.length_bytes = memory.size();
  const RegionId id = engine->register_region(region).value();
  EXPECT_EQ(engine->register_region(region).error().code, Errc::already_exists);
  Region inner = region;
  inner.length_bytes = 100;
  const RegionId other = engine->register_region(inner).value();
  EXPECT_NE(id, other);
  EXPECT_TRUE(engine->unregister_region(id));
  EXPECT_EQ(engine->unregister_region(id).error().code, Errc::misuse);
  EXPECT_EQ(engine->unregister_region(RegionId{12345}).error().code, Errc::misuse);
  EXPECT_TRUE(engine->unregister_region(other));
  EXPECT_FALSE(engine->register_region({}));
  region.address = std::numeric_limits<std::uint64_t>::max() - 10;
  EXPECT_FALSE(engine->register_region(region));
  inner.kind = MemoryKind::device;
  EXPECT_EQ(engine->register_region(inner).error().code, Errc::unsupported);
}

TEST_P(EngineConformance, RefusesUnknownPeers) {
  const std::unique_ptr<TransferEngine> engine = make_sender();
  EXPECT_FALSE(engine->submit(Ticket{1}, EnginePeer{777}, {}));
  engine->disconnect(EnginePeer{777});
  engine->cancel(Ticket{777});
  std::vector<Completion> out;
  EXPECT_EQ(engine->progress(out), 0U);
}

TEST_P(EngineConformance, CancelAndDisconnectCompleteEveryTicket) {
  World world = make_world(32 * kMiB);
  const std::vector<std::byte> source = random_bytes(32 * kMiB);
  const std::vector<WriteRun> batch = {world.model.run(source, 0, kGuardBytes, 32 * kMiB)};
  std::vector<Ticket> tickets;
  for (int i = 0; i < 10; ++i) tickets.push_back(world.driver.submit(world.to, batch));
  for (std::size_t i = 0; i < 5; ++i) world.sender->cancel(tickets[i]);
  world.driver.step();
  world.sender->disconnect(world.to);
  EXPECT_TRUE(world.driver.wait_all());
  // E3: nothing lands after the last completion.
  const std::vector<std::byte> after = world.peer->read(0, world.model.size());
  for (int i = 0; i < 20; ++i) world.driver.step();
  EXPECT_TRUE(world.matches() || world.peer->read(0, world.model.size()) == after);
  EXPECT_TRUE(world.peer->guards_are_intact());
}

TEST_P(EngineConformance, AnUnregisteredRegionIsNeverWritten) {
  World world = make_world(8 * kMiB);
  constexpr std::size_t kStride = 64 * 1024;
  const std::vector<std::byte> source = random_bytes(8 * kMiB);
  std::vector<WriteRun> batch;
  for (std::size_t place = 0; place < source.size(); place += kStride) {
    batch.push_back(world.model.run(source, place, kGuardBytes + place, kStride));
  }
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 4; ++i) world.driver.submit(world.to, batch);
    for (std::uint64_t i = below(4); i > 0; --i) world.driver.step();
    ASSERT_EQ(world.peer->unregister(0), "ok");
    const std::vector<std::byte> before = world.peer->read(0, world.model.size());
    ASSERT_TRUE(world.driver.wait_all());
    EXPECT_TRUE(world.peer->read(0, world.model.size()) == before);
    EXPECT_EQ(world.driver.write(world.to, batch).outcome, Outcome::failed);
    ASSERT_EQ(world.peer->enregister(0), "ok");
  }
  // Registrations that come after the connection count too. (The push may take a moment.)
  const bool works_again = world.driver.wait_until(
      [&] { return world.driver.write(world.to, batch).outcome == Outcome::ok; });
  EXPECT_TRUE(works_again);
  EXPECT_TRUE(world.peer->guards_are_intact());
}

TEST_P(EngineConformance, NobodyAtTheDescriptorShowsAsFailedCompletions) {
  const std::unique_ptr<TransferEngine> sender = make_sender();
  std::string descriptor;
  {
    const std::unique_ptr<TransferEngine> gone = make_sender();
    descriptor = gone->local_descriptor().value();
  }
  Driver driver(*sender);
  const EnginePeer peer = sender->connect(descriptor).value();
  const std::vector<std::byte> source = random_bytes(100);
  const std::vector<WriteRun> batch = {
      {reinterpret_cast<std::uint64_t>(source.data()), 4096, source.size()}};
  for (int i = 0; i < 3; ++i) {
    const Completion completion = driver.write(peer, batch);
    EXPECT_EQ(completion.outcome, Outcome::failed);
    EXPECT_TRUE(completion.peer_lost);
  }
  EXPECT_NE(sender->connect(descriptor).value(), peer);
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineConformance, testing::ValuesIn(all_kinds()), kind_name);

}  // namespace
}  // namespace baton::engine::test
