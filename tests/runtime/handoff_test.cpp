// Hand-offs through the public API: real sockets, real engines, two ranks in one process.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "support/deployment.hpp"

namespace baton {
namespace {

using tests::Deployment;
using tests::eventually;
using tests::Pool;

struct Setting {
  const char* name;
  const char* engine;
  bool shareable;
};

class Handoff : public testing::TestWithParam<Setting> {
 protected:
  Handoff() : world_(GetParam().engine, GetParam().shareable) { world_.start(); }

  template <class Handle>
  static bool reaches(const Handle& handle, KvPoll status) {
    const bool reached =
        eventually([&] { return handle.poll() == status || is_terminal(handle.poll()); }) &&
        handle.poll() == status;
    if (!reached && handle.failure()) ADD_FAILURE() << handle.failure()->text;
    return reached;
  }

  static std::vector<PageIndex> pages(std::uint32_t count, std::uint32_t seed) {
    std::vector<PageIndex> all(Pool::kPages);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), std::mt19937(seed));
    all.resize(count);
    return all;
  }

  Deployment world_;
};

TEST_P(Handoff, MovesEveryChunkStateAndAux) {
  const auto source = pages(11, 1), target = pages(11, 2);
  KvReceiver receiver = world_.receive(RoomId{7});
  ASSERT_TRUE(reaches(receiver, KvPoll::waiting_for_input));
  EXPECT_TRUE(receiver.quiesced());
  ASSERT_TRUE(receiver.publish({target, 9, {{5}}, 2 * Pool::kPageSize}));
  EXPECT_FALSE(receiver.quiesced());

  KvSender sender = std::move(*world_.prefill->open(RoomId{7}));
  ASSERT_TRUE(reaches(sender, KvPoll::waiting_for_input));
  EXPECT_EQ(sender.prefix_tokens(), 2 * Pool::kPageSize);
  ASSERT_TRUE(sender.init(11, 3));
  const std::span<const PageIndex> all(source);
  ASSERT_TRUE(sender.send({all.subspan(0, 4), {}, false}));
  ASSERT_TRUE(sender.send({all.subspan(4, 7), {{{2}}}, true}));

  ASSERT_TRUE(reaches(receiver, KvPoll::success));
  ASSERT_TRUE(reaches(sender, KvPoll::success));
  for (std::size_t index = 0; index < source.size(); ++index) {
    EXPECT_TRUE(world_.prefill_pool.page_equals(world_.decode_pool, source[index], target[index]));
  }
  const KvArgs &from = world_.prefill_pool.args, &to = world_.decode_pool.args;
  for (std::size_t entry = 0; entry < from.aux.size(); ++entry) {
    EXPECT_EQ(std::memcmp(world_.prefill_pool.at(from.aux[entry], 3),
                          world_.decode_pool.at(to.aux[entry], 9), from.aux[entry].item_bytes),
              0);
  }
  EXPECT_EQ(std::memcmp(world_.prefill_pool.at(from.state[0].tensors[0], 2),
                        world_.decode_pool.at(to.state[0].tensors[0], 5), Pool::kStateBytes),
            0);
  EXPECT_TRUE(sender.quiesced());
  EXPECT_TRUE(receiver.quiesced());
  const TransferMetric metric = sender.metric();
  EXPECT_EQ(metric.pages, 11u);
  EXPECT_EQ(metric.chunks, 2u);
  EXPECT_EQ(metric.bytes, 11 * 6 * Pool::kPageBytes + Pool::kAuxBytes + 8 + Pool::kStateBytes);
  EXPECT_TRUE(metric.transfer_latency.has_value());
  EXPECT_TRUE(metric.last_write_done.has_value());
}

TEST_P(Handoff, TouchesNoOtherPage) {
  const auto source = pages(5, 3), target = pages(5, 4);
  KvReceiver receiver = world_.receive(RoomId{1});
  ASSERT_TRUE(reaches(receiver, KvPoll::waiting_for_input));
  ASSERT_TRUE(receiver.publish({target, 0, {}, 0}));
  KvSender sender = std::move(*world_.prefill->open(RoomId{1}));
  ASSERT_TRUE(reaches(sender, KvPoll::waiting_for_input));
  ASSERT_TRUE(sender.init(5, 0));
  ASSERT_TRUE(sender.send({source, {}, {}}));
  ASSERT_TRUE(reaches(receiver, KvPoll::success));
  const std::vector<std::byte> zero(Pool::kPageBytes);
  for (PageIndex page = 0; page < static_cast<PageIndex>(Pool::kPages); ++page) {
    if (std::find(target.begin(), target.end(), page) != target.end()) continue;
    for (const KvBuffer& buffer : world_.decode_pool.args.kv) {
      EXPECT_EQ(std::memcmp(world_.decode_pool.at(buffer, static_cast<std::uint64_t>(page)),
                            zero.data(), zero.size()),
                0);
    }
  }
}

TEST_P(Handoff, FullPrefixHitSendsOneEmptyChunk) {
  KvReceiver receiver = world_.receive(RoomId{2});
  ASSERT_TRUE(reaches(receiver, KvPoll::waiting_for_input));
  ASSERT_TRUE(receiver.publish({{}, 4, {}, 5 * Pool::kPageSize}));
  KvSender sender = std::move(*world_.prefill->open(RoomId{2}));
  ASSERT_TRUE(reaches(sender, KvPoll::waiting_for_input));
  ASSERT_TRUE(sender.init(0, 6));
  ASSERT_TRUE(sender.send({}));
  ASSERT_TRUE(reaches(receiver, KvPoll::success));
  const KvBuffer &from = world_.prefill_pool.args.aux[0], &to = world_.decode_pool.args.aux[0];
  EXPECT_EQ(
      std::memcmp(world_.prefill_pool.at(from, 6), world_.decode_pool.at(to, 4), Pool::kAuxBytes),
      0);
}

TEST_P(Handoff, ManyRoomsAtOnceAndNumbersUsedAgain) {
  for (int round = 0; round < 3; ++round) {
    std::vector<KvReceiver> receivers;
    std::vector<KvSender> senders;
    for (std::uint64_t room = 0; room < 12; ++room) {
      receivers.push_back(world_.receive(RoomId{room}));
      senders.push_back(std::move(*world_.prefill->open(RoomId{room})));
    }
    const auto source = pages(60, 5 + static_cast<unsigned>(round)), target = pages(60, 6);
    const std::span<const PageIndex> from(source), to(target);
    for (std::size_t room = 0; room < receivers.size(); ++room) {
      ASSERT_TRUE(reaches(receivers[room], KvPoll::waiting_for_input));
      ASSERT_TRUE(receivers[room].publish(
          {to.subspan(room * 5, 5), static_cast<std::uint32_t>(room), {}, 0}));
    }
    for (std::size_t room = 0; room < senders.size(); ++room) {
      ASSERT_TRUE(reaches(senders[room], KvPoll::waiting_for_input));
      ASSERT_TRUE(senders[room].init(5, 0));
      for (std::size_t page = 0; page < 5; ++page) {
        ASSERT_TRUE(senders[room].send({from.subspan(room * 5 + page, 1), {}, {}}));
      }
    }
    for (std::size_t room = 0; room < receivers.size(); ++room) {
      ASSERT_TRUE(reaches(receivers[room], KvPoll::success));
      ASSERT_TRUE(reaches(senders[room], KvPoll::success));
    }
    for (std::size_t index = 0; index < source.size(); ++index) {
      ASSERT_TRUE(
          world_.prefill_pool.page_equals(world_.decode_pool, source[index], target[index]));
    }
    std::vector<KvPoll> statuses(receivers.size());
    DecodeManager::poll(receivers, statuses);
    EXPECT_EQ(std::count(statuses.begin(), statuses.end(), KvPoll::success), 12);
  }
}

TEST_P(Handoff, SenderAbortReachesDecodeAndFreesBothSides) {
  KvReceiver receiver = world_.receive(RoomId{3});
  ASSERT_TRUE(reaches(receiver, KvPoll::waiting_for_input));
  const auto target = pages(4, 1);
  ASSERT_TRUE(receiver.publish({target, 0, {}, 0}));
  KvSender sender = std::move(*world_.prefill->open(RoomId{3}));
  ASSERT_TRUE(reaches(sender, KvPoll::waiting_for_input));
  sender.abort();
  EXPECT_EQ(sender.poll(), KvPoll::failed);
  EXPECT_EQ(sender.failure()->text, "Aborted by AbortReq.");
  ASSERT_TRUE(eventually([&] { return receiver.poll() == KvPoll::failed; }));
  EXPECT_TRUE(eventually([&] { return receiver.quiesced(); }));  // by proof, long before 30 s
}

TEST_P(Handoff, ReceiverAbortReachesPrefillAndIsAcknowledged) {
  KvReceiver receiver = world_.receive(RoomId{4});
  ASSERT_TRUE(reaches(receiver, KvPoll::waiting_for_input));
  const auto target = pages(4, 1);
  ASSERT_TRUE(receiver.publish({target, 0, {}, 0}));
  KvSender sender = std::move(*world_.prefill->open(RoomId{4}));
  ASSERT_TRUE(reaches(sender, KvPoll::waiting_for_input));
  receiver.abort();
  EXPECT_EQ(receiver.poll(), KvPoll::failed);
  ASSERT_TRUE(eventually([&] { return sender.poll() == KvPoll::failed; }));
  EXPECT_EQ(sender.failure()->code, FailureCode::aborted_by_peer);
  EXPECT_TRUE(eventually([&] { return receiver.quiesced(); }));
  receiver.clear();
  sender.clear();
  EXPECT_EQ(receiver.poll(), KvPoll::failed);
  EXPECT_TRUE(world_.decode->open(RoomId{4}, world_.server->address()));
}

TEST_P(Handoff, PageOutOfRangeFailsTheRoomOnly) {
  KvReceiver receiver = world_.receive(RoomId{5});
  ASSERT_TRUE(reaches(receiver, KvPoll::waiting_for_input));
  const std::vector<PageIndex> target{1}, wild{static_cast<PageIndex>(Pool::kPages)};
  ASSERT_TRUE(receiver.publish({target, 0, {}, 0}));
  KvSender sender = std::move(*world_.prefill->open(RoomId{5}));
  ASSERT_TRUE(reaches(sender, KvPoll::waiting_for_input));
  ASSERT_TRUE(sender.init(1, 0));
  ASSERT_TRUE(sender.send({wild, {}, {}}));
  ASSERT_TRUE(eventually([&] { return sender.poll() == KvPoll::failed; }));
  EXPECT_NE(sender.failure()->text.find("64"), std::string::npos) << sender.failure()->text;
  ASSERT_TRUE(eventually([&] { return receiver.poll() == KvPoll::failed; }));
}

TEST_P(Handoff, TargetBeyondDecodesMemoryIsRefusedByTheEngine) {
  KvReceiver receiver = world_.receive(RoomId{6});
  ASSERT_TRUE(reaches(receiver, KvPoll::waiting_for_input));
  const std::vector<PageIndex> target{1 << 20}, source{0};
  ASSERT_TRUE(receiver.publish({target, 0, {}, 0}));
  KvSender sender = std::move(*world_.prefill->open(RoomId{6}));
  ASSERT_TRUE(reaches(sender, KvPoll::waiting_for_input));
  ASSERT_TRUE(sender.init(1, 0));
  ASSERT_TRUE(sender.send({source, {}, {}}));
  ASSERT_TRUE(eventually([&] { return receiver.poll() == KvPoll::failed; }));
  ASSERT_TRUE(eventually([&] { return sender.poll() == KvPoll::failed; }));
  EXPECT_EQ(sender.failure()->code, FailureCode::write_failed);
}

TEST_P(Handoff, EventDescriptorWakesASleeper) {
  KvReceiver receiver = world_.receive(RoomId{8});
  while (receiver.poll() == KvPoll::bootstrapping) {
    pollfd descriptor{world_.decode->event_descriptor(), POLLIN, 0};
    ASSERT_EQ(poll(&descriptor, 1, 30'000), 1);
    world_.decode->clear_event();
  }
  EXPECT_EQ(receiver.poll(), KvPoll::waiting_for_input);
}

TEST_P(Handoff, HandlesOutliveTheirManager) {
  KvReceiver receiver = world_.receive(RoomId{9});
  KvSender sender = std::move(*world_.prefill->open(RoomId{9}));
  world_.decode.reset();
  world_.prefill.reset();
  EXPECT_EQ(receiver.poll(), KvPoll::failed);
  EXPECT_EQ(sender.poll(), KvPoll::failed);
  const Result<void> late = sender.init(1, 0);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::closed);
}

TEST_P(Handoff, PrefillRestartsElsewhereAndServesTheNextRoom) {
  for (std::uint64_t room = 0; room < 3; ++room) {
    KvReceiver receiver = world_.receive(RoomId{room});
    ASSERT_TRUE(reaches(receiver, KvPoll::waiting_for_input));
    const std::vector<PageIndex> target{2}, source{3};
    ASSERT_TRUE(receiver.publish({target, 0, {}, 0}));
    if (room == 1) {  // the old rank dies; its room fails or is aborted, the next one works
      world_.prefill.reset();
      world_.prefill = std::move(*PrefillManager::create(world_.prefill_config(),
                                                         tests::engine_or_die(GetParam().engine)));
      receiver.abort();
      continue;
    }
    KvSender sender = std::move(*world_.prefill->open(RoomId{room}));
    if (room == 2 && !eventually([&] { return sender.poll() != KvPoll::bootstrapping; })) {
      FAIL() << "decode still talks to the rank that is gone";
    }
    ASSERT_TRUE(reaches(sender, KvPoll::waiting_for_input));
    ASSERT_TRUE(sender.init(1, 0));
    ASSERT_TRUE(sender.send({source, {}, {}}));
    ASSERT_TRUE(reaches(receiver, KvPoll::success));
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, Handoff,
                         testing::Values(Setting{"local_shared", "local", true},
                                         Setting{"local_process_vm", "local", false},
                                         Setting{"mooncake_tcp", "mooncake_tcp", true}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace baton
