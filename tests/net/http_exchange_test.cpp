// The bytes of answers, whole and streamed, and what happens to exchanges nobody finishes.
#include "net/http_exchange.hpp"

#include <gtest/gtest.h>

namespace baton::net {
namespace {

struct Fixture {
  explicit Fixture(ExchangeFacts facts = {})
      : exchange(std::make_shared<HttpExchange>(facts, [this] { ++pokes; })) {}
  int pokes = 0;
  std::shared_ptr<HttpExchange> exchange;
};

TEST(HttpExchange, WholeAnswer) {
  Fixture fixture;
  HttpResponse response;
  response.status = 405;
  response.body = "405: Method Not Allowed";
  response.headers = {{"Allow", "POST"}};
  fixture.exchange->respond(response);
  EXPECT_EQ(fixture.pokes, 1);
  const HttpExchange::Output output = fixture.exchange->take();
  EXPECT_EQ(output.bytes,
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Allow: POST\r\nContent-Length: 23\r\nServer: baton\r\n\r\n405: Method Not Allowed");
  EXPECT_TRUE(output.finished);
  EXPECT_FALSE(output.close);
  fixture.exchange->respond(response);  // a second answer is ignored
  EXPECT_TRUE(fixture.exchange->take().bytes.empty());
}

TEST(HttpExchange, ConnectionHeaderFollowsTheRequest) {
  const auto head = [](ExchangeFacts facts, bool close) {
    Fixture fixture(facts);
    HttpResponse response;
    response.close = close;
    fixture.exchange->respond(response);
    return fixture.exchange->take();
  };
  EXPECT_NE(head({}, true).bytes.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(head({}, true).close);
  EXPECT_TRUE(head({.keep_alive = false}, false).close);
  const auto old = head({.is_http_1_0 = true, .keep_alive = true}, false);
  EXPECT_NE(old.bytes.find("Connection: keep-alive"), std::string::npos);
  EXPECT_FALSE(old.close);
}

TEST(HttpExchange, HeadHasTheLengthButNotTheBody) {
  Fixture fixture({.is_head = true});
  HttpResponse response;
  response.body = "OK";
  fixture.exchange->respond(response);
  const std::string bytes = fixture.exchange->take().bytes;
  EXPECT_NE(bytes.find("Content-Length: 2\r\n"), std::string::npos);
  EXPECT_TRUE(bytes.ends_with("\r\n\r\n"));
}

TEST(HttpExchange, StreamInChunks) {
  Fixture fixture;
  HttpResponder responder(fixture.exchange);
  responder.begin({});
  EXPECT_NE(fixture.exchange->take().bytes.find("Transfer-Encoding: chunked\r\n"),
            std::string::npos);
  EXPECT_TRUE(responder.write("hello"));
  EXPECT_TRUE(responder.write(""));
  EXPECT_TRUE(responder.write(std::string(20, 'x')));
  EXPECT_EQ(fixture.exchange->take().bytes, "5\r\nhello\r\n14\r\n" + std::string(20, 'x') + "\r\n");
  EXPECT_FALSE(fixture.exchange->take().finished);
  responder.end();
  const auto last = fixture.exchange->take();
  EXPECT_EQ(last.bytes, "0\r\n\r\n");
  EXPECT_TRUE(last.finished);
  EXPECT_FALSE(responder.write("late"));
}

TEST(HttpExchange, StreamToHttp10EndsWithTheConnection) {
  Fixture fixture({.is_http_1_0 = true});
  HttpResponder responder(fixture.exchange);
  responder.begin({});
  responder.write("abc");
  responder.end();
  const auto output = fixture.exchange->take();
  EXPECT_TRUE(output.bytes.ends_with("\r\n\r\nabc"));
  EXPECT_TRUE(output.close);
}

TEST(HttpExchange, AbandonedRequestGets500) {
  Fixture fixture;
  {
    HttpResponder responder(fixture.exchange);
    const HttpResponder copy = responder;
  }
  const auto output = fixture.exchange->take();
  EXPECT_TRUE(output.bytes.starts_with("HTTP/1.1 500 "));
  EXPECT_TRUE(output.close);
}

TEST(HttpExchange, AbandonedStreamIsCutOff) {
  Fixture fixture;
  {
    HttpResponder responder(fixture.exchange);
    responder.begin({});
    responder.write("half");
  }
  const auto output = fixture.exchange->take();
  EXPECT_TRUE(output.bytes.empty());
  EXPECT_TRUE(output.finished);
  EXPECT_TRUE(output.close);
}

TEST(HttpExchange, SlowReaderOfAStreamIsCutOff) {
  Fixture fixture({.stream_bytes_max = 1000});
  HttpResponder responder(fixture.exchange);
  responder.begin({});
  EXPECT_TRUE(responder.write(std::string(500, 'x')));
  EXPECT_FALSE(responder.write(std::string(500, 'x')));
  EXPECT_TRUE(responder.client_gone());
  EXPECT_TRUE(fixture.exchange->take().close);
}

TEST(HttpExchange, GoneClientStopsAStreamButNotAPlainAnswer) {
  Fixture stream;
  HttpResponder responder(stream.exchange);
  int calls = 0;
  responder.on_client_gone([&] { ++calls; });
  responder.begin({});
  stream.exchange->mark_client_gone();
  stream.exchange->mark_client_gone();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(responder.client_gone());
  EXPECT_FALSE(responder.write("x"));
  responder.on_client_gone([&] { ++calls; });  // at once
  EXPECT_EQ(calls, 2);

  Fixture plain;
  plain.exchange->mark_client_gone();
  plain.exchange->respond({});
  EXPECT_TRUE(plain.exchange->take().bytes.starts_with("HTTP/1.1 200 OK"));
}

}  // namespace
}  // namespace baton::net
