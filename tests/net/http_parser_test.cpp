// Requests and replies out of bytes, in any cut.
#include "net/http_parser.hpp"

#include <gtest/gtest.h>

namespace baton::net {
namespace {

const std::string kPut =
    "PUT /route?x=1 HTTP/1.1\r\nHost: a\r\nX-Thing: One\r\nContent-Length: 5\r\n\r\nhello";

TEST(HttpRequestReader, ReadsARequestInEveryCut) {
  for (std::size_t cut = 1; cut <= kPut.size(); ++cut) {
    HttpRequestReader reader({});
    std::string input;
    ReadProgress progress = ReadProgress::needs_header;
    for (std::size_t at = 0; at < kPut.size(); at += cut) {
      ASSERT_FALSE(is_failure(progress));
      ASSERT_NE(progress, ReadProgress::complete);
      input += kPut.substr(at, cut);
      progress = reader.feed(input);
    }
    ASSERT_EQ(progress, ReadProgress::complete) << cut;
    const HttpRequest request = reader.take();
    EXPECT_EQ(request.method, "PUT");
    EXPECT_EQ(request.target, "/route?x=1");
    EXPECT_EQ(request.body, "hello");
    EXPECT_EQ(find_header(request.headers, "x-THING"), "One");
    EXPECT_EQ(find_header(request.headers, "x-other"), "");
    EXPECT_TRUE(input.empty());
  }
}

TEST(HttpRequestReader, LeavesTheNextRequestAlone) {
  HttpRequestReader reader({});
  std::string input = kPut + "GET / HTTP/1.1\r\n";
  EXPECT_EQ(reader.feed(input), ReadProgress::complete);
  EXPECT_EQ(input, "GET / HTTP/1.1\r\n");
}

TEST(HttpRequestReader, ReadsChunkedBodies) {
  HttpRequestReader reader({});
  std::string input =
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  ASSERT_EQ(reader.feed(input), ReadProgress::complete);
  EXPECT_EQ(reader.take().body, "abcde");
}

TEST(HttpRequestReader, KnowsWhatAnAnswerMustRespect) {
  const auto read = [](std::string input) {
    auto reader = std::make_unique<HttpRequestReader>(HttpReadLimits{});
    EXPECT_EQ(reader->feed(input), ReadProgress::complete);
    return reader;
  };
  EXPECT_TRUE(read("GET / HTTP/1.1\r\n\r\n")->keep_alive());
  EXPECT_FALSE(read("GET / HTTP/1.1\r\nConnection: close\r\n\r\n")->keep_alive());
  EXPECT_FALSE(read("GET / HTTP/1.0\r\n\r\n")->keep_alive());
  EXPECT_TRUE(read("GET / HTTP/1.0\r\n\r\n")->is_http_1_0());
  EXPECT_TRUE(read("HEAD / HTTP/1.1\r\n\r\n")->is_head());
  EXPECT_FALSE(read("GET / HTTP/1.1\r\n\r\n")->is_head());
}

TEST(HttpRequestReader, SeesExpectContinue) {
  HttpRequestReader reader({});
  std::string input = "PUT / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n";
  EXPECT_EQ(reader.feed(input), ReadProgress::needs_body);
  EXPECT_TRUE(reader.wants_continue());
}

TEST(HttpRequestReader, LargeBodiesAreSeenInOnePieceWithTheirHeaders) {
  const std::string body(5000, 'x');
  HttpRequestReader request({1000, 10});
  std::string input = "PUT / HTTP/1.1\r\nContent-Length: 5000\r\n\r\n" + body;
  EXPECT_EQ(request.feed(input), ReadProgress::body_too_large);
  HttpReplyReader reply({1000, 10}, false);
  input = "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + body;
  EXPECT_EQ(reply.feed(input), ReadProgress::body_too_large);
  HttpReplyReader endless({1000, 10}, false);
  input = "HTTP/1.1 200 OK\r\n\r\n" + body;
  EXPECT_EQ(endless.feed(input), ReadProgress::body_too_large);
}

TEST(HttpRequestReader, LimitsAndNonsense) {
  const auto outcome = [](std::string input) { return HttpRequestReader({100, 10}).feed(input); };
  EXPECT_EQ(outcome("GET / HTTP/1.1\r\nX: " + std::string(200, 'x')),
            ReadProgress::header_too_large);
  EXPECT_EQ(outcome("PUT / HTTP/1.1\r\nContent-Length: 11\r\n\r\n"), ReadProgress::body_too_large);
  EXPECT_EQ(outcome("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n"),
            ReadProgress::body_too_large);
  for (const char* nonsense :
       {"nonsense\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nX\r\n\r\n", "PUT / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "\x16\x03\x01\x02\r\n\r\n",
        "PUT / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"}) {
    EXPECT_EQ(outcome(nonsense), ReadProgress::malformed) << nonsense;
  }
}

TEST(HttpReplyReader, BodiesByLengthChunksAndEnd) {
  HttpReplyReader by_length({}, false);
  std::string input = "HTTP/1.1 404 Not Found\r\nA: b\r\nContent-Length: 2\r\n\r\nokHTTP";
  EXPECT_EQ(by_length.feed(input), ReadProgress::complete);
  EXPECT_EQ(by_length.status(), 404);
  EXPECT_EQ(by_length.take_body(), "ok");
  EXPECT_EQ(find_header(by_length.headers(), "a"), "b");
  EXPECT_TRUE(by_length.keep_alive());
  EXPECT_EQ(input, "HTTP");

  HttpReplyReader by_chunks({}, false);
  input = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
  EXPECT_EQ(by_chunks.feed(input), ReadProgress::needs_body);
  EXPECT_EQ(by_chunks.take_body(), "abc");
  input += "1\r\nd\r\n0\r\n\r\n";
  EXPECT_EQ(by_chunks.feed(input), ReadProgress::complete);
  EXPECT_EQ(by_chunks.take_body(), "d");

  HttpReplyReader by_end({}, false);
  input = "HTTP/1.0 200 OK\r\n\r\nall of it";
  EXPECT_EQ(by_end.feed(input), ReadProgress::needs_body);
  EXPECT_EQ(by_end.feed_end(), ReadProgress::complete);
  EXPECT_EQ(by_end.take_body(), "all of it");
  EXPECT_FALSE(by_end.keep_alive());
}

TEST(HttpReplyReader, HeadHasNoBodyAndInterimRepliesAreSkipped) {
  HttpReplyReader head({}, true);
  std::string input = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
  EXPECT_EQ(head.feed(input), ReadProgress::complete);
  EXPECT_EQ(head.status(), 200);
}

TEST(HttpReplyReader, CutOffAnswersAndNonsense) {
  HttpReplyReader cut({}, false);
  std::string input = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab";
  EXPECT_EQ(cut.feed(input), ReadProgress::needs_body);
  EXPECT_EQ(cut.feed_end(), ReadProgress::malformed);
  HttpReplyReader nonsense({}, false);
  input = "SSH-2.0-OpenSSH\r\n";
  EXPECT_EQ(nonsense.feed(input), ReadProgress::malformed);
  EXPECT_FALSE(nonsense.fault().empty());
  HttpReplyReader large({1000, 4}, false);
  input = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(large.feed(input), ReadProgress::body_too_large);
}

}  // namespace
}  // namespace baton::net
