// Mutations: broken messages are an error or a message that can be sent again, never anything else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iostream>

#include "wire/golden_data.hpp"
#include "wire/random_messages.hpp"

namespace baton::wire::test {
namespace {

constexpr std::uint64_t kSeed = 7041776;
constexpr std::size_t kErrorTextMax = 300;
// Long frames are cut and flipped at this many places only.
constexpr std::size_t kPlacesMax = 200;

struct Tally {
  int errors = 0;
  int messages = 0;
};

bool is_readable(const std::string& text) {
  return text.size() <= kErrorTextMax && std::all_of(text.begin(), text.end(), [](char character) {
           return std::isprint(static_cast<unsigned char>(character)) != 0;
         });
}

void check(Side side, const Frames& frames, Tally& tally) {
  const Result<Message> message = mooncake().decode(side, frames);
  if (!message) {
    ++tally.errors;
    ASSERT_EQ(message.error().code, Errc::malformed) << message.error().text;
    ASSERT_TRUE(is_readable(message.error().text)) << message.error().text;
    ASSERT_NE(message.error().text.find("expected "), std::string::npos) << message.error().text;
    return;
  }
  ++tally.messages;
  const Result<Frames> again = mooncake().encode(*message);
  ASSERT_TRUE(again) << again.error().text;
  const Result<Message> reread = mooncake().decode(receiver_of(*message), *again);
  ASSERT_TRUE(reread) << reread.error().text;
  ASSERT_EQ(*reread, after_mooncake(*message));
}

void check(const Frames& frames, Tally& tally) {
  check(Side::prefill, frames, tally);
  check(Side::decode, frames, tally);
}

// Every golden message and every form that the recording does not have.
std::vector<Frames> originals() {
  std::vector<Frames> all;
  for (const GoldenEntry& entry : golden_entries()) {
    // The two giants would only make the test slow.
    const bool giant = entry.name.starts_with("large_indices") && entry.kind == "metadata";
    if (!entry.frames.empty() && !giant) all.push_back(entry.frames);
  }
  for (const Message& message : sample_messages()) all.push_back(*mooncake().encode(message));
  return all;
}

class Mutation : public testing::Test {
 protected:
  void SetUp() override {
    originals_ = originals();
    ASSERT_GT(originals_.size(), 150U);
  }
  void TearDown() override {
    std::cout << "mutations: " << tally_.errors << " errors, " << tally_.messages
              << " messages, seed " << kSeed << "\n";
    EXPECT_GT(tally_.errors, 100);
    EXPECT_GT(tally_.messages, 100);
  }

  std::vector<Frames> originals_;
  Tally tally_;
  Random random_{kSeed};
};

TEST_F(Mutation, CutFrames) {
  for (const Frames& original : originals_) {
    for (std::size_t index = 0; index < original.size(); ++index) {
      const std::size_t places = std::min(original[index].size(), kPlacesMax);
      for (std::size_t length = 0; length < places; ++length) {
        Frames frames = original;
        frames[index].resize(length);
        check(frames, tally_);
      }
    }
  }
}

TEST_F(Mutation, FlippedBytes) {
  for (const Frames& original : originals_) {
    for (std::size_t index = 0; index < original.size(); ++index) {
      const std::size_t places = std::min(original[index].size(), kPlacesMax);
      for (std::size_t place = 0; place < places; ++place) {
        Frames frames = original;
        frames[index][place] = static_cast<char>(random_());
        check(frames, tally_);
        frames[index][place] = static_cast<char>(original[index][place] ^ (1 << random_() % 8));
        check(frames, tally_);
      }
    }
  }
}

TEST_F(Mutation, DroppedDoubledAndSwappedFrames) {
  for (const Frames& original : originals_) {
    for (std::size_t index = 0; index < original.size(); ++index) {
      const auto place = static_cast<std::ptrdiff_t>(index);
      Frames dropped = original;
      dropped.erase(dropped.begin() + place);
      check(dropped, tally_);
      Frames doubled = original;
      doubled.insert(doubled.begin() + place, original[index]);
      check(doubled, tally_);
      Frames swapped = original;
      std::swap(swapped[index], swapped[random_() % swapped.size()]);
      check(swapped, tally_);
    }
  }
}

TEST_F(Mutation, ShortenedAndLengthenedMessages) {
  for (const Frames& original : originals_) {
    Frames frames = original;
    while (!frames.empty()) {
      frames.pop_back();
      check(frames, tally_);
    }
    frames = original;
    while (frames.size() < 80) {  // past the limit
      frames.push_back(random_() % 2 == 0 ? "" : std::string(random_() % 9, '7'));
      check(frames, tally_);
    }
  }
}

// Bytes that look like lengths and counts: the ones that a careless parser would believe.
TEST_F(Mutation, SplicedLengths) {
  const std::string words[] = {std::string(4, '\0'),    std::string(4, '\xff'),
                               "\x01\x00\x00\x80",      {"\xff\xff\xff\x7f", 4},
                               {"\x00\x01\x00\x00", 4}, {"\x08\x00\x00\x00", 4}};
  for (const Frames& original : originals_) {
    for (std::size_t index = 0; index < original.size(); ++index) {
      for (std::size_t place = 0; place + 4 <= std::min(original[index].size(), kPlacesMax);
           place += 4) {
        for (const std::string& word : words) {
          Frames frames = original;
          frames[index].replace(place, 4, word);
          check(frames, tally_);
        }
      }
    }
  }
}

TEST_F(Mutation, RandomFrames) {
  const char* const tags[] = {"None",        "42",        "ABORT",       "ABORT_ACK",   "AUX_DATA",
                              "CHUNK_READY", "WATERMARK", "STAGING_REQ", "STAGING_RSP", ""};
  for (int count = 0; count < 20000; ++count) {
    Frames frames{tags[random_() % std::size(tags)]};
    while (random_() % 12 != 0) {
      std::string frame(random_() % 12, '\0');
      const bool digits = random_() % 2 == 0;
      for (char& byte : frame) {
        byte = digits ? static_cast<char>('0' + random_() % 10) : static_cast<char>(random_());
      }
      frames.push_back(std::move(frame));
    }
    check(frames, tally_);
  }
}

}  // namespace
}  // namespace baton::wire::test
