// Managers against peers that send nonsense, lie or vanish: nothing stops, nothing is written.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "bootstrap/client.hpp"
#include "net/zmq_socket.hpp"
#include "support/deployment.hpp"
#include "wire/dialect.hpp"

namespace baton {
namespace {

using tests::Deployment;
using tests::eventually;
using tests::Pool;

std::uint64_t counter(const std::vector<CounterValue>& values, const std::string& name) {
  for (const CounterValue& value : values) {
    if (value.name == name) return value.value;
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

class Hostile : public testing::Test {
 protected:
  Hostile() : world_("local") {
    EXPECT_TRUE(context_.open(64));
    world_.start();
  }

  Endpoint prefill_endpoint() {
    bootstrap::BootstrapClient client;
    std::optional<Endpoint> found;
    std::atomic<bool> done{false};
    client.fetch_route({world_.server->address(), 0, 0, 0, 0}, [&](Result<Endpoint> endpoint) {
      if (endpoint) found = *endpoint;
      done = true;
    });
    EXPECT_TRUE(eventually([&] { return done.load(); }));
    return found.value();
  }

  void send(net::ZmqSocket& socket, const Frames& frames) {
    ASSERT_TRUE(eventually([&] { return socket.send(frames) == net::SendOutcome::sent; }));
  }

  bool hands_over(RoomId room) {
    KvReceiver receiver = world_.receive(room);
    KvSender sender = std::move(*world_.prefill->open(room));
    if (!eventually([&] { return receiver.poll() == KvPoll::waiting_for_input; })) return false;
    const std::vector<PageIndex> source{1, 2}, target{7, 3};
    if (!receiver.publish({target, 1, {}, 0})) return false;
    if (!eventually([&] { return sender.poll() == KvPoll::waiting_for_input; })) return false;
    if (!sender.init(2, 0) || !sender.send({source, {}, {}})) return false;
    return eventually([&] { return receiver.poll() == KvPoll::success; }) &&
           world_.prefill_pool.page_equals(world_.decode_pool, 1, 7) &&
           world_.prefill_pool.page_equals(world_.decode_pool, 2, 3);
  }

  net::ZmqContext context_;
  Deployment world_;
};

TEST_F(Hostile, GarbageIsCountedAndTransfersGoOn) {
  const Endpoint to = prefill_endpoint();
  net::ZmqSocket socket = std::move(*net::ZmqSocket::connect_push(context_, to));
  std::mt19937 random(7);
  constexpr int kMessages = 2000;
  for (int message = 0; message < kMessages; ++message) {
    Frames frames(1 + random() % 12);
    for (Frame& frame : frames) {
      frame.resize(random() % 40);
      for (char& byte : frame) byte = static_cast<char>(random());
    }
    if (message % 5 == 0) frames[0] = "None";
    if (message % 7 == 0) frames[0] = "ABORT";
    if (message % 11 == 0) frames[0] = std::to_string(random());
    send(socket, frames);
  }
  EXPECT_TRUE(eventually(
      [&] { return counter(world_.prefill->counters(), "messages_received") >= kMessages; }));
  EXPECT_GT(counter(world_.prefill->counters(), "messages_malformed"), kMessages / 2U);
  EXPECT_TRUE(hands_over(RoomId{1}));
}

// Metadata of a session that never registered fails its room, with a reason, at the first send.
TEST_F(Hostile, MetadataWithoutRegistrationFailsTheRoom) {
  net::ZmqSocket socket = std::move(*net::ZmqSocket::connect_push(context_, prefill_endpoint()));
  Metadata metadata;
  metadata.room = RoomId{5};
  metadata.endpoint = {"127.0.0.1", 9};
  metadata.session_id = "127.0.0.1:1";
  metadata.kv_pages = {1};
  metadata.aux_index = 0;
  send(socket, *wire::mooncake().encode(metadata));
  KvSender sender = std::move(*world_.prefill->open(RoomId{5}));
  ASSERT_TRUE(eventually([&] { return sender.poll() == KvPoll::waiting_for_input; }));
  const std::vector<PageIndex> source{1};
  ASSERT_TRUE(sender.init(1, 0));
  ASSERT_TRUE(sender.send({source, {}, {}}));
  EXPECT_EQ(sender.poll(), KvPoll::failed);
  EXPECT_NE(sender.failure()->text.find("never registered"), std::string::npos);
}

// A registration that points outside what the peer's engine registered writes nothing. [E9]
TEST_F(Hostile, RegistrationWithWildAddressesIsRefusedByTheEngine) {
  Pool registered, guard;
  const std::unique_ptr<TransferEngine> engine = tests::engine_or_die("local");
  ASSERT_TRUE(engine->register_region(registered.memory.region()));
  net::ZmqSocket socket = std::move(*net::ZmqSocket::connect_push(context_, prefill_endpoint()));
  Registration registration;
  registration.endpoint = {"127.0.0.1", 9};
  registration.session_id = *engine->local_descriptor();
  for (const KvBuffer& buffer : guard.args.kv) registration.kv_ptrs.push_back(buffer.address);
  for (const KvBuffer& buffer : guard.args.aux) registration.aux_ptrs.push_back(buffer.address);
  registration.state_ptrs = {{guard.args.state[0].tensors[0].address}};
  registration.state_item_bytes = {{Pool::kStateBytes}};
  registration.kv_item_bytes = Pool::kPageBytes;
  send(socket, *wire::mooncake().encode(registration));
  Metadata metadata;
  metadata.room = RoomId{6};
  metadata.endpoint = registration.endpoint;
  metadata.session_id = registration.session_id;
  metadata.kv_pages = {0, 1};
  metadata.aux_index = 0;
  send(socket, *wire::mooncake().encode(metadata));
  KvSender sender = std::move(*world_.prefill->open(RoomId{6}));
  ASSERT_TRUE(eventually([&] { return sender.poll() == KvPoll::waiting_for_input; }));
  const std::vector<PageIndex> source{1, 2};
  ASSERT_TRUE(sender.init(2, 0));
  ASSERT_TRUE(sender.send({source, {}, {}}));
  ASSERT_TRUE(eventually([&] { return sender.poll() == KvPoll::failed; }));
  EXPECT_EQ(sender.failure()->code, FailureCode::write_failed);
  for (std::size_t index = 0; index < guard.memory.size_bytes(); ++index) {
    ASSERT_EQ(guard.memory.data()[index], std::byte{0}) << "byte " << index;
  }
}

TEST_F(Hostile, PageSizeThatDiffersFailsAtOnceAndNamesBothValues) {
  DecodeConfig config = world_.decode_config();
  config.kv.page_size = 8;
  auto other = DecodeManager::create(config, tests::engine_or_die("local"));
  ASSERT_TRUE(other) << other.error().text;
  KvReceiver receiver = std::move(*(*other)->open(RoomId{2}, world_.server->address()));
  ASSERT_TRUE(eventually([&] { return receiver.poll() == KvPoll::failed; }));
  const std::string text = receiver.failure()->text;
  EXPECT_EQ(receiver.failure()->code, FailureCode::incompatible);
  EXPECT_NE(text.find("page_size is 4 on prefill and 8 on decode"), std::string::npos) << text;
}

TEST_F(Hostile, NobodyAtTheBootstrapAddressFailsWithinTheResolveTimeout) {
  DecodeConfig config = world_.decode_config();
  config.resolve_timeout = std::chrono::milliseconds(300);
  auto other = DecodeManager::create(config, tests::engine_or_die("local"));
  ASSERT_TRUE(other) << other.error().text;
  KvReceiver receiver = std::move(*(*other)->open(RoomId{2}, "127.0.0.1:1"));
  ASSERT_TRUE(eventually([&] { return receiver.poll() == KvPoll::failed; }));
  EXPECT_EQ(receiver.failure()->code, FailureCode::unresolved);
  EXPECT_NE(receiver.failure()->text.find("127.0.0.1:1"), std::string::npos);
}

TEST_F(Hostile, BadConfigurationIsRefusedWithTheFieldsName) {
  DecodeConfig config = world_.decode_config();
  config.kv.kv[1].length_bytes -= 1;
  const auto refused = DecodeManager::create(config, tests::engine_or_die("local"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  EXPECT_NE(refused.error().text.find("kv[1]"), std::string::npos) << refused.error().text;
}

// The rank that decode is sent to does not listen yet: it still gets its messages. [W8]
TEST_F(Hostile, PrefillRankThatBindsLateStillGetsTheMetadata) {
  auto server = std::move(*BootstrapServer::start("127.0.0.1", 0));
  net::ZmqSocket probe = std::move(*net::ZmqSocket::bind_pull(context_, {"127.0.0.1", 0, 100, -1}));
  const std::uint16_t port = *probe.bound_port();
  probe.close(Duration::zero());
  RankRegistration registration;
  registration.endpoint = {"127.0.0.1", port};
  registration.page_size = Pool::kPageSize;
  registration.kv_cache_dtype = "bfloat16";
  ASSERT_TRUE(bootstrap::BootstrapClient().register_rank(server->address(), registration));
  KvReceiver receiver = std::move(*world_.decode->open(RoomId{3}, server->address()));
  ASSERT_TRUE(eventually([&] { return receiver.poll() == KvPoll::waiting_for_input; }));
  const std::vector<PageIndex> target{1};
  ASSERT_TRUE(receiver.publish({target, 0, {}, 0}));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::optional<net::ZmqSocket> late;
  ASSERT_TRUE(eventually([&] {
    Result<net::ZmqSocket> bound =
        net::ZmqSocket::bind_pull(context_, {"127.0.0.1", port, 100, -1});
    if (bound) late = std::move(*bound);
    return late.has_value();
  }));
  std::vector<Message> received;
  ASSERT_TRUE(eventually([&] {
    Frames frames;
    while (late->receive({64, 1 << 20}, frames) == net::ReceiveOutcome::message) {
      received.push_back(*wire::mooncake().decode(wire::Side::prefill, frames));
    }
    return received.size() >= 2;
  }));
  EXPECT_TRUE(std::holds_alternative<Registration>(received[0]));
  EXPECT_TRUE(std::holds_alternative<Metadata>(received[1]));
}

// A prefill process that dies in mid-transfer fails its rooms without waiting for the time-out.
TEST_F(Hostile, PrefillThatVanishesFailsPublishedRooms) {
  ASSERT_TRUE(hands_over(RoomId{1}));
  KvReceiver receiver = world_.receive(RoomId{2});
  ASSERT_TRUE(eventually([&] { return receiver.poll() == KvPoll::waiting_for_input; }));
  const std::vector<PageIndex> target{1};
  ASSERT_TRUE(receiver.publish({target, 0, {}, 0}));
  world_.prefill.reset();
  ASSERT_TRUE(eventually([&] { return receiver.poll() == KvPoll::failed; }));
  EXPECT_FALSE(receiver.quiesced());  // no proof that the rank stopped writing
}

}  // namespace
}  // namespace baton
