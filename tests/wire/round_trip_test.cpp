// Round trips: everything that can be encoded decodes to itself, at the side it is meant for.
#include <gtest/gtest.h>

#include "wire/random_messages.hpp"

namespace baton::wire::test {
namespace {

constexpr std::uint64_t kSeed = 20240611;
constexpr int kMessagesPerKind = 2000;

class RoundTrip : public testing::TestWithParam<std::size_t> {};

TEST_P(RoundTrip, RandomMessages) {
  Random random(kSeed + GetParam());
  for (int count = 0; count < kMessagesPerKind; ++count) {
    const Message message = random_message(random, GetParam());
    const Result<Frames> frames = mooncake().encode(message);
    ASSERT_TRUE(frames) << "seed " << kSeed << " message " << count << ": " << frames.error().text;
    const Result<Message> again = mooncake().decode(receiver_of(message), *frames);
    ASSERT_TRUE(again) << "seed " << kSeed << " message " << count << ": " << again.error().text;
    EXPECT_EQ(*again, after_mooncake(message)) << "seed " << kSeed << " message " << count;
  }
}

// At the other side the same frames may mean something else, but never crash.
TEST_P(RoundTrip, TheOtherSideAnswersSomething) {
  Random random(kSeed + GetParam());
  for (int count = 0; count < kMessagesPerKind; ++count) {
    const Message message = random_message(random, GetParam());
    const Side other = receiver_of(message) == Side::prefill ? Side::decode : Side::prefill;
    const Result<Message> read = mooncake().decode(other, *mooncake().encode(message));
    EXPECT_TRUE(read || read.error().code == Errc::malformed);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryKind, RoundTrip,
                         testing::Range<std::size_t>(0, std::variant_size_v<Message>));

TEST(RoundTripSamples, EveryForm) {
  for (const Message& message : sample_messages()) {
    const Result<Frames> frames = mooncake().encode(message);
    ASSERT_TRUE(frames) << message.index() << ": " << frames.error().text;
    EXPECT_EQ(*mooncake().decode(receiver_of(message), *frames), after_mooncake(message));
  }
}

}  // namespace
}  // namespace baton::wire::test
