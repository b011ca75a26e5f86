// The HTTP client against our server and against servers that misbehave.
#include "net/http_client.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "net/http_server.hpp"
#include "net/line_splitter.hpp"

namespace baton::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kPatience = seconds(60);

void echo(HttpRequest request, HttpResponder responder) {
  HttpResponse response;
  response.body = request.method + " " + request.target + " " + request.body;
  response.headers = {
      {"X-Content-Type", std::string(find_header(request.headers, "content-type"))}};
  responder.respond(std::move(response));
}

std::unique_ptr<HttpServer> serve(HttpHandler handler, HttpServerOptions options = {}) {
  Result<std::unique_ptr<HttpServer>> server = HttpServer::start(options, std::move(handler));
  EXPECT_TRUE(server) << server.error().text;
  return server ? std::move(server.value()) : nullptr;
}

HttpCall call_to(const HttpServer& server, std::string method = "GET", std::string target = "/") {
  HttpCall call;
  call.to = {"127.0.0.1", server.port()};
  call.method = std::move(method);
  call.target = std::move(target);
  call.timeout = kPatience;
  return call;
}

std::uint16_t free_port() { return serve(echo)->port(); }

TEST(HttpClient, CallsOverOneConnection) {
  const auto server = serve(echo);
  HttpClient client;
  for (const char* method : {"GET", "PUT", "POST"}) {
    HttpCall call = call_to(*server, method, "/a?b=1");
    call.body = "text";
    const Result<HttpReply> reply = client.send_and_wait(call);
    ASSERT_TRUE(reply) << reply.error().text;
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->body, std::string(method) + " /a?b=1 text");
    EXPECT_EQ(find_header(reply->headers, "x-content-type"), "application/json");
  }
  ASSERT_TRUE(client.send_and_wait(call_to(*server, "HEAD")));
  EXPECT_EQ(client.stats().connections_opened, 1u);
}

TEST(HttpClient, TenThousandCallsUseFewConnections) {
  const auto server = serve(echo);
  HttpClientOptions options;
  options.connections_per_address_max = 2;
  HttpClient client(options);
  std::atomic<int> good{0}, all{0};
  std::promise<void> finished;
  for (int index = 0; index < 10'000; ++index) {
    client.send(call_to(*server), [&](Result<HttpReply> reply) {
      good += reply && reply->status == 200 ? 1 : 0;
      if (++all == 10'000) finished.set_value();
    });
  }
  ASSERT_EQ(finished.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(good, 10'000);
  EXPECT_LE(server->stats().connections_accepted, 2u);
}

TEST(HttpClient, UnreachableNamesAddressAndCause) {
  HttpClient client;
  HttpCall call;
  call.to = {"127.0.0.1", free_port()};
  const Result<HttpReply> reply = client.send_and_wait(call);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Errc::unreachable);
  EXPECT_NE(reply.error().text.find(to_string(call.to)), std::string::npos);
  EXPECT_NE(reply.error().text.find("refused"), std::string::npos) << reply.error().text;
  call.to = {"no-such-host.invalid", 80};
  call.timeout = kPatience;
  const Result<HttpReply> unknown = client.send_and_wait(call);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::unreachable) << unknown.error().text;
}

TEST(HttpClient, ImpossibleCallsAreRefused) {
  HttpClient client;
  const auto make_call = [](std::string host, std::uint16_t port, std::string target = "/",
                            std::string method = "GET") {
    HttpCall call;
    call.to = {std::move(host), port};
    call.target = std::move(target);
    call.method = std::move(method);
    return call;
  };
  for (const HttpCall& call :
       {make_call("127.0.0.1", 0), make_call("", 80), make_call("h", 80, "/a b"),
        make_call("h", 80, "a"), make_call("h", 80, "/\r\nX: y"), make_call("h\r\n", 80),
        make_call("h", 80, "/", "")}) {
    const Result<HttpReply> reply = client.send_and_wait(call);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, Errc::invalid_argument) << reply.error().text;
  }
}

TEST(HttpClient, DeadlineCoversSilenceAndTheQueue) {
  std::vector<HttpResponder> held;
  std::mutex mutex;
  const auto server = serve([&](HttpRequest, HttpResponder responder) {
    const std::scoped_lock lock(mutex);
    held.push_back(std::move(responder));
  });
  HttpClientOptions options;
  options.connections_per_address_max = 1;
  HttpClient client(options);
  std::promise<Result<HttpReply>> first, second;
  HttpCall call = call_to(*server);
  call.timeout = milliseconds(200);
  client.send(call, [&](Result<HttpReply> reply) { first.set_value(std::move(reply)); });
  call.timeout = milliseconds(100);
  client.send(call, [&](Result<HttpReply> reply) { second.set_value(std::move(reply)); });
  EXPECT_EQ(first.get_future().get().error().code, Errc::timeout);
  EXPECT_EQ(second.get_future().get().error().code, Errc::timeout);
}

TEST(HttpClient, StalePooledConnectionIsReplacedUnnoticed) {
  HttpClient client;
  auto server = serve(echo);
  HttpServerOptions options;
  options.port = server->port();
  ASSERT_TRUE(client.send_and_wait(call_to(*server)));
  for (int round = 0; round < 20; ++round) {
    server.reset();
    server = serve(echo, options);  // sooner or later before the client has seen the end
    ASSERT_NE(server, nullptr);
    const Result<HttpReply> reply = client.send_and_wait(call_to(*server, "PUT"));
    ASSERT_TRUE(reply) << reply.error().text;
  }
}

// Answers the first request of each connection and hangs up on the second.
TEST(HttpClient, RetriesOnceAndOnlyWhatMayBeRepeated) {
  std::atomic<int> posts{0};
  const auto server = serve([&](HttpRequest request, HttpResponder responder) {
    if (request.target == "/bye") {
      posts += request.method == "POST" ? 1 : 0;
      responder.begin({});  // and dropped: the connection is cut
      return;
    }
    responder.respond({});
  });
  HttpClient client;
  ASSERT_TRUE(client.send_and_wait(call_to(*server)));
  const Result<HttpReply> post = client.send_and_wait(call_to(*server, "POST", "/bye"));
  ASSERT_FALSE(post);
  EXPECT_EQ(post.error().code, Errc::unreachable) << post.error().text;
  EXPECT_EQ(posts, 1);
  EXPECT_EQ(client.stats().retries, 0u);
  ASSERT_TRUE(client.send_and_wait(call_to(*server)));
  EXPECT_FALSE(client.send_and_wait(call_to(*server, "GET", "/bye")));
  EXPECT_EQ(client.stats().retries, 1u);
  ASSERT_TRUE(client.send_and_wait(call_to(*server)));
  HttpCall repeatable = call_to(*server, "POST", "/bye");
  repeatable.idempotent = true;
  EXPECT_FALSE(client.send_and_wait(repeatable));
  EXPECT_EQ(posts, 3);
}

TEST(HttpClient, AnswersThatAreTooLargeOrNotHttp) {
  const auto server = serve([](HttpRequest, HttpResponder responder) {
    HttpResponse response;
    response.body.assign(100'000, 'x');
    responder.respond(std::move(response));
  });
  HttpClientOptions options;
  options.reply_bytes_max = 1000;
  HttpClient client(options);
  EXPECT_EQ(client.send_and_wait(call_to(*server)).error().code, Errc::limit);
}

TEST(HttpClient, StreamsPiecesAndLines) {
  const auto server = serve([](HttpRequest request, HttpResponder responder) {
    HttpResponse head;
    if (request.target == "/bad") head.status = 503;
    responder.begin(std::move(head));
    std::thread([responder]() mutable {
      for (int index = 0; index < 100; ++index) {
        responder.write("line ");
        responder.write(std::to_string(index) + (index % 2 == 0 ? "\n" : "\r\n"));
      }
      responder.write("last");
      responder.end();
    }).join();
  });
  HttpClient client;
  std::vector<std::string> lines;
  LineSplitter splitter([&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  });
  HttpCall call = call_to(*server);
  call.on_piece = std::ref(splitter);
  const Result<HttpReply> reply = client.send_and_wait(call);
  ASSERT_TRUE(reply) << reply.error().text;
  EXPECT_EQ(reply->body, "");
  splitter.finish();
  ASSERT_EQ(lines.size(), 101u);
  EXPECT_EQ(lines[99], "line 99");
  EXPECT_EQ(lines[100], "last");
  call.target = "/bad";
  lines.clear();
  const Result<HttpReply> bad = client.send_and_wait(call);
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->status, 503);
  EXPECT_TRUE(bad->body.ends_with("last"));
  EXPECT_TRUE(lines.empty());
}

TEST(HttpClient, ReceiverCanEndAStreamAndTheServerNotices) {
  std::promise<void> gone;
  std::optional<HttpResponder> kept;
  const auto server = serve([&](HttpRequest, HttpResponder responder) {
    kept = responder;
    responder.on_client_gone([&] { gone.set_value(); });
    responder.begin({});
    responder.write("piece");
  });
  HttpClient client;
  HttpCall call = call_to(*server);
  call.on_piece = [](std::string_view) { return false; };
  const Result<HttpReply> reply = client.send_and_wait(call);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Errc::closed);
  EXPECT_EQ(gone.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST(HttpClient, StreamDeadlineStartsAgainWithEachPiece) {
  std::thread producer;
  const auto server = serve([&](HttpRequest, HttpResponder responder) {
    responder.begin({});
    producer = std::thread([responder]() mutable {
      for (int index = 0; index < 10; ++index) {
        responder.write("x");
        std::this_thread::sleep_for(milliseconds(200));
      }
      responder.end();
    });
  });
  HttpClient client;
  HttpCall call = call_to(*server);
  call.timeout = milliseconds(1500);  // less than the whole stream takes
  call.on_piece = [](std::string_view) { return true; };
  const Result<HttpReply> reply = client.send_and_wait(call);
  EXPECT_TRUE(reply) << reply.error().text;
  producer.join();
}

TEST(HttpClient, DestructionEndsOpenCallsOnce) {
  std::vector<HttpResponder> held;
  const auto server =
      serve([&](HttpRequest, HttpResponder responder) { held.push_back(std::move(responder)); });
  std::atomic<int> closed{0}, other{0};
  {
    HttpClient client;
    for (int index = 0; index < 20; ++index) {
      client.send(call_to(*server), [&](Result<HttpReply> reply) {
        const bool was_closed = !reply && reply.error().code == Errc::closed;
        ++(was_closed ? closed : other);
        // A call-back that tries again must not be left without an answer either.
        client.send(call_to(*server), [&](Result<HttpReply>) { ++closed; });
      });
    }
  }
  EXPECT_EQ(closed, 40);
  EXPECT_EQ(other, 0);
}

TEST(HttpClient, ThrowingCallbacksDoNotEndTheThread) {
  const auto server = serve(echo);
  HttpClient client;
  client.send(call_to(*server), [](Result<HttpReply>) { throw 1; });
  EXPECT_TRUE(client.send_and_wait(call_to(*server)));
}

TEST(HttpClient, IdleConnectionsAreClosed) {
  const auto server = serve(echo);
  HttpClientOptions options;
  options.idle_timeout = milliseconds(50);
  HttpClient client(options);
  ASSERT_TRUE(client.send_and_wait(call_to(*server)));
  for (int index = 0; index < 6000 && server->stats().connections_open != 0; ++index) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(server->stats().connections_open, 0u);
}

}  // namespace
}  // namespace baton::net
