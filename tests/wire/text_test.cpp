// Text test: quoting, names, UTF-8 repair and decimals.
#include "wire/text.hpp"

#include <gtest/gtest.h>

#include "wire/limits.hpp"
#include "wire/numbers.hpp"

namespace baton::wire::test {
namespace {

TEST(Text, QuoteIsPrintableAndShort) {
  EXPECT_EQ(quote(""), "\"\" (0 bytes)");
  EXPECT_EQ(quote("a"), "\"a\" (1 byte)");
  EXPECT_EQ(quote(std::string_view("\0\x7f\"\\", 4)), "\"\\x00\\x7f\\x22\\x5c\" (4 bytes)");
  EXPECT_EQ(quote(std::string(1000, 'x')), "\"" + std::string(24, 'x') + "...\" (1000 bytes)");
}

TEST(Text, Hosts) {
  for (const char* host : {"10.0.0.7", "::1", "node-3.cluster", "fe80::1%eth0"}) {
    EXPECT_TRUE(check_host(host)) << host;
  }
  for (const std::string& host : {std::string(), std::string("[::1]"), std::string("a b"),
                                  std::string("a\0", 2), std::string(256, 'a')}) {
    EXPECT_FALSE(check_host(host)) << host;
  }
}

TEST(Text, Names) {
  EXPECT_TRUE(check_name("", Emptiness::allowed));
  EXPECT_FALSE(check_name("", Emptiness::refused));
  EXPECT_TRUE(check_name(std::string(kNameBytesMax, 'n'), Emptiness::refused));
  EXPECT_FALSE(check_name(std::string(kNameBytesMax + 1, 'n'), Emptiness::allowed));
  EXPECT_FALSE(check_name("tab\t", Emptiness::allowed));
}

// Expected values are what Python's bytes.decode("utf-8", "replace") answers.
TEST(Text, RepairOfUtf8) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(repair_utf8(""), "");
  EXPECT_EQ(repair_utf8("plain"), "plain");
  const std::string valid = "\xc3\xa9 \xe4\xbc\xa0 \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf \xed\x9f\xbf";
  EXPECT_EQ(repair_utf8(valid), valid);
  EXPECT_EQ(repair_utf8("\xff\xfe"), r + r);
  EXPECT_EQ(repair_utf8("\xc3"), r);
  EXPECT_EQ(repair_utf8("\xc3("), r + "(");
  EXPECT_EQ(repair_utf8("\xe4\xbc"), r);  // cut: one sign for both bytes
  EXPECT_EQ(repair_utf8("\xe4\xbc"
                        "a"),
            r + "a");
  EXPECT_EQ(repair_utf8("\xf0\x9f\x98"), r);
  EXPECT_EQ(repair_utf8("\xc0\xaf"), r + r);                  // overlong
  EXPECT_EQ(repair_utf8("\xe0\x80\xaf"), r + r + r);          // overlong
  EXPECT_EQ(repair_utf8("\xed\xa0\x80"), r + r + r);          // surrogate
  EXPECT_EQ(repair_utf8("\xf4\x90\x80\x80"), r + r + r + r);  // past U+10FFFF
  EXPECT_EQ(repair_utf8("\x80 ok"), r + " ok");
}

TEST(Numbers, Decimals) {
  const DecimalRange all;
  EXPECT_EQ(*parse_decimal("0", all), 0U);
  EXPECT_EQ(*parse_decimal("18446744073709551615", all), 18446744073709551615U);
  EXPECT_EQ(*parse_decimal("007", all), 7U);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "1_0", "1e3", "18446744073709551616",
                           "000000000000000000001"}) {
    EXPECT_FALSE(parse_decimal(text, all)) << text;
  }
  EXPECT_FALSE(parse_decimal("4", {5, 9}));
  EXPECT_TRUE(parse_decimal("5", {5, 9}));
  EXPECT_TRUE(parse_decimal("9", {5, 9}));
  EXPECT_FALSE(parse_decimal("10", {5, 9}));
}

TEST(Numbers, SignedDecimals) {
  EXPECT_EQ(*parse_signed_decimal("-9223372036854775808"),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(*parse_signed_decimal("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(*parse_signed_decimal("-2"), -2);
  for (const char* text : {"", "-", "--1", "+1", "- 1", "9223372036854775808"}) {
    EXPECT_FALSE(parse_signed_decimal(text)) << text;
  }
}

}  // namespace
}  // namespace baton::wire::test
