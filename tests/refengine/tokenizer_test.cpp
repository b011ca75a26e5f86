// Tokens against the reference, round trips, and streams of UTF-8.
#include "refengine/tokenizer.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "refengine/support.hpp"

namespace baton::refengine {
namespace {

std::string decode(const std::vector<std::int32_t>& tokens) {
  std::string text;
  for (const std::int32_t token : tokens) text += test_tokenizer().bytes(token);
  return text;
}

TEST(Tokenizer, AgreesWithTheReference) {
  std::ifstream file(std::string(BATON_SOURCE_DIR) + "/tests/golden/reference_logits.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  for (std::size_t i = 0; i < kPrompts.size(); ++i) {
    const auto& entry = golden["prompts"][i];
    ASSERT_EQ(entry["prompt"].get<std::string>(), kPrompts[i]);
    EXPECT_EQ(test_tokenizer().encode(kPrompts[i]),
              entry["prompt_ids"].get<std::vector<std::int32_t>>());
  }
  EXPECT_EQ(test_tokenizer().vocabulary_size(), 1024U);
}

TEST(Tokenizer, AnyBytesComeBack) {
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  for (const std::string& text :
       {std::string(), std::string("   two  spaces \n\n\n and\ttabs\r\n"),
        std::string("naïve £5 🙂"), std::string("don't--stop...12345 a1b2"), every_byte}) {
    const std::vector<std::int32_t> tokens = test_tokenizer().encode(text);
    EXPECT_EQ(tokens.front(), Tokenizer::kBos);
    EXPECT_EQ(decode(tokens), text);
  }
}

TEST(Tokenizer, SpecialAndUnknownIdsHaveNoBytes) {
  for (const std::int32_t token : {Tokenizer::kBos, Tokenizer::kEos, -1, 1024}) {
    EXPECT_EQ(test_tokenizer().bytes(token), "");
  }
}

TEST(Tokenizer, DamagedMergesNameTheLine) {
  const std::string path = testing::TempDir() + "/merges_test.txt";
  const auto load = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    return Tokenizer::load(path);
  };
  EXPECT_TRUE(load("32 116\n104 101\n").has_value());
  for (const char* bad : {"32 116\n104\n", "32 116\n104 101 7\n", "32 116\nx y\n", "32 116\n-1 5\n",
                          "32 116\n900 5\n", "32 116\n256 5\n", "32 116\n104 101"}) {
    const Result<Tokenizer> loaded = load(bad);
    ASSERT_FALSE(loaded.has_value()) << bad;
    EXPECT_NE(loaded.error().text.find(path), std::string::npos);
    EXPECT_NE(loaded.error().text.find("line 2"), std::string::npos) << loaded.error().text;
  }
  EXPECT_EQ(Tokenizer::load("/nowhere/merges.txt").error().code, Errc::not_found);
}

TEST(Utf8Stream, NeverEmitsHalfACharacter) {
  const std::string text = "a£€🙂z";
  Utf8Stream stream;
  std::string out;
  for (const char byte : text) {
    const std::string piece = stream.push(std::string_view(&byte, 1));
    // A piece is empty or ends a character: its last byte is ASCII or completes a sequence.
    EXPECT_TRUE(piece.empty() || text.find(out + piece) == 0) << piece;
    if (!piece.empty()) {
      EXPECT_NE(static_cast<unsigned char>(piece[0]) & 0xC0U, 0x80U);
    }
    out += piece;
  }
  EXPECT_EQ(out, text);
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, ReplacesWhatIsNotUtf8) {
  const std::string mark = "\xEF\xBF\xBD";
  const auto all = [](std::string_view bytes) {
    Utf8Stream stream;
    std::string out = stream.push(bytes);
    return out + stream.finish();
  };
  EXPECT_EQ(all("a\x80z"), "a" + mark + "z");          // a continuation alone
  EXPECT_EQ(all("\xE2\x82z"), mark + "z");             // cut by another character
  EXPECT_EQ(all("\xC0\xAF"), mark + mark);             // overlong
  EXPECT_EQ(all("\xED\xA0\x80"), mark + mark + mark);  // a surrogate
  EXPECT_EQ(all("\xF5"), mark);                        // no such lead byte
  EXPECT_EQ(all("ok\xF0\x9F"), "ok" + mark);           // ends inside a character
}

}  // namespace
}  // namespace baton::refengine
