// The HTTP server over real sockets: keep-alive, limits, deadlines, nonsense, streams.
#include "net/http_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "net/descriptor_limit.hpp"
#include "raw_http.hpp"

namespace baton::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

void echo(HttpRequest request, HttpResponder responder) {
  HttpResponse response;
  response.body = request.method + " " + request.target + " " + request.body;
  responder.respond(std::move(response));
}

std::unique_ptr<HttpServer> serve(HttpHandler handler, HttpServerOptions options = {}) {
  Result<std::unique_ptr<HttpServer>> server = HttpServer::start(options, std::move(handler));
  EXPECT_TRUE(server) << server.error().text;
  return server ? std::move(server.value()) : nullptr;
}

std::string get(const std::string& target) { return "GET " + target + " HTTP/1.1\r\n\r\n"; }

template <class Condition>
bool eventually(Condition&& condition) {
  for (int attempt = 0; attempt < 6000 && !condition(); ++attempt) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  return condition();
}

TEST(HttpServer, AnswersOnOneConnectionInTurn) {
  const auto server = serve(echo);
  RawHttp client(server->port());
  for (int index = 0; index < 100; ++index) {
    ASSERT_TRUE(client.send(get(std::string("/") + std::to_string(index))));
    const RawReply reply = client.read_reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, std::string("GET /") + std::to_string(index) + " ");
    EXPECT_EQ(reply.headers.at("content-type"), "text/plain; charset=utf-8");
  }
  EXPECT_EQ(server->stats().connections_accepted, 1u);
  EXPECT_EQ(server->stats().requests, 100u);
}

TEST(HttpServer, TwoThousandKeepAliveConnectionsOnOneThread) {
  raise_descriptor_limit();
  constexpr std::size_t kConnections = 2000;
  const auto server = serve(echo);
  std::vector<RawHttp> clients;
  clients.reserve(kConnections);
  for (std::size_t index = 0; index < kConnections; ++index) {
    clients.emplace_back(server->port());
    ASSERT_TRUE(clients.back().is_connected()) << index;
  }
  for (int round = 0; round < 3; ++round) {
    for (RawHttp& client : clients) ASSERT_TRUE(client.send(get("/x")));
    for (RawHttp& client : clients) ASSERT_EQ(client.read_reply().body, "GET /x ");
  }
  EXPECT_EQ(server->stats().connections_open, kConnections);
  EXPECT_EQ(server->stats().requests, 3 * kConnections);
  clients.clear();
  EXPECT_TRUE(eventually([&] { return server->stats().connections_open == 0; }));
}

TEST(HttpServer, SplitAndPipelinedRequests) {
  const auto server = serve(echo);
  RawHttp client(server->port());
  const std::string put = "PUT /p HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
  for (const char c : put) {
    ASSERT_TRUE(client.send(std::string(1, c)));
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(client.read_reply().body, "PUT /p abc");
  std::string many;
  for (int index = 0; index < 50; ++index)
    many += put + get(std::string("/") + std::to_string(index));
  ASSERT_TRUE(client.send(many));
  for (int index = 0; index < 50; ++index) {
    EXPECT_EQ(client.read_reply().body, "PUT /p abc");
    EXPECT_EQ(client.read_reply().body, std::string("GET /") + std::to_string(index) + " ");
  }
}

// More than pipelined_bytes_max waits while the first answer is held back.
TEST(HttpServer, PipelinesBeyondTheBufferAreReadLater) {
  HttpServerOptions options;
  options.pipelined_bytes_max = 1000;
  std::promise<HttpResponder> first;
  std::atomic<int> count{0};
  const auto server = serve(
      [&](HttpRequest request, HttpResponder responder) {
        if (count++ == 0)
          first.set_value(std::move(responder));
        else
          echo(std::move(request), std::move(responder));
      },
      options);
  RawHttp client(server->port());
  ASSERT_TRUE(client.send(get("/first")));
  HttpResponder responder = first.get_future().get();
  std::thread sender([&] {
    for (int index = 0; index < 20'000; ++index) ASSERT_TRUE(client.send(get("/x")));
  });
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(count, 1);
  responder.respond({});
  EXPECT_EQ(client.read_reply().status, 200);
  for (int index = 0; index < 20'000; ++index) ASSERT_EQ(client.read_reply().body, "GET /x ");
  sender.join();
}

TEST(HttpServer, HeadAndConnectionClose) {
  const auto server = serve(echo);
  RawHttp client(server->port());
  ASSERT_TRUE(client.send("HEAD /h HTTP/1.1\r\n\r\n"));
  const RawReply head = client.read_reply(false);
  EXPECT_EQ(head.headers.at("content-length"), "8");
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  const std::string rest = client.read_to_end();
  EXPECT_TRUE(rest.starts_with("HTTP/1.1 200 OK\r\n")) << rest;
  EXPECT_TRUE(rest.ends_with("\r\n\r\nGET / ")) << rest;
}

TEST(HttpServer, HttpOneZero) {
  const auto server = serve(echo);
  RawHttp client(server->port());
  ASSERT_TRUE(client.send("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  EXPECT_EQ(client.read_reply().headers.at("connection"), "keep-alive");
  ASSERT_TRUE(client.send("GET /old HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(client.read_to_end().ends_with("GET /old "));
}

TEST(HttpServer, LargeBodiesGet413) {
  const auto server = serve(echo);
  const std::size_t limit = std::size_t{1} << 20;
  const auto put = [&](std::size_t bytes) {
    RawHttp client(server->port());
    client.send(std::string("PUT / HTTP/1.1\r\nContent-Length: ") + std::to_string(bytes) +
                "\r\n\r\n");
    client.send(std::string(bytes, 'x'));
    return client.read_reply().status;
  };
  EXPECT_EQ(put(limit), 200);
  EXPECT_EQ(put(limit + 1), 413);
  EXPECT_EQ(put(10 * limit), 413);
  RawHttp chunked(server->port());
  chunked.send("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n");
  chunked.send(std::string(2 * limit, 'x'));
  EXPECT_EQ(chunked.read_reply().status, 413);
}

TEST(HttpServer, LargeHeadersGet431) {
  const auto server = serve(echo);
  RawHttp client(server->port());
  client.send(std::string("GET / HTTP/1.1\r\nX: ") + std::string(20'000, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 431);
  EXPECT_EQ(client.read_to_end(), "");
}

TEST(HttpServer, NonsenseGets400AndHarmsNobody) {
  const auto server = serve(echo);
  RawHttp bystander(server->port());
  for (const std::string& nonsense :
       {std::string("nonsense\r\n\r\n"), std::string("GET / HTTP/1.1\r\nbroken\r\n\r\n"),
        std::string("\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 15),
        std::string("PUT / HTTP/1.1\r\nContent-Length: x\r\n\r\n")}) {
    RawHttp client(server->port());
    client.send(nonsense);
    EXPECT_EQ(client.read_reply().status, 400);
    EXPECT_EQ(client.read_to_end(), "");
  }
  EXPECT_EQ(server->stats().requests_malformed, 4u);
  bystander.send(get("/fine"));
  EXPECT_EQ(bystander.read_reply().body, "GET /fine ");
}

TEST(HttpServer, SlowHeadersBodiesAndIdlersAreClosed) {
  HttpServerOptions options;
  options.header_timeout = options.body_timeout = options.idle_timeout = milliseconds(200);
  const auto server = serve(echo, options);
  RawHttp slow_header(server->port()), slow_body(server->port()), idle(server->port());
  ASSERT_TRUE(idle.send(get("/")));
  EXPECT_EQ(idle.read_reply().status, 200);
  ASSERT_TRUE(slow_body.send("PUT / HTTP/1.1\r\nContent-Length: 1000\r\n\r\nabc"));
  // A byte now and then does not buy time.
  for (int index = 0; index < 6000 && server->stats().timeouts < 3; ++index) {
    slow_header.send(index == 0 ? "GET / HTTP/1.1\r\nX: " : "x");
    slow_body.send("x");
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(server->stats().timeouts, 3u);
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_EQ(server->stats().connections_open, 0u);
}

TEST(HttpServer, ReaderThatStopsReadingIsClosed) {
  HttpServerOptions options;
  options.write_timeout = milliseconds(200);
  const auto server = serve(
      [](HttpRequest, HttpResponder responder) {
        HttpResponse response;
        response.body.assign(std::size_t{64} << 20, 'x');
        responder.respond(std::move(response));
      },
      options);
  RawHttp client(server->port());
  ASSERT_TRUE(client.send(get("/")));
  EXPECT_TRUE(eventually([&] { return server->stats().timeouts == 1; }));
}

TEST(HttpServer, ExpectContinue) {
  const auto server = serve(echo);
  RawHttp client(server->port());
  client.send("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ab");
  EXPECT_EQ(client.read_reply().body, "PUT / ab");
}

TEST(HttpServer, AnswersFromAnotherThread) {
  std::mutex mutex;
  std::vector<std::thread> workers;
  const auto server = serve([&](HttpRequest request, HttpResponder responder) {
    const std::scoped_lock lock(mutex);
    workers.emplace_back(
        [request = std::move(request), responder = std::move(responder)]() mutable {
          std::this_thread::sleep_for(milliseconds(20));
          echo(std::move(request), std::move(responder));
        });
  });
  RawHttp first(server->port()), second(server->port());
  first.send(get("/1"));
  second.send(get("/2"));
  EXPECT_EQ(second.read_reply().body, "GET /2 ");
  EXPECT_EQ(first.read_reply().body, "GET /1 ");
  const std::scoped_lock lock(mutex);
  for (std::thread& worker : workers) worker.join();
}

TEST(HttpServer, HalfClosedClientStillGetsItsAnswer) {
  std::promise<HttpResponder> pending;
  const auto server =
      serve([&](HttpRequest, HttpResponder responder) { pending.set_value(std::move(responder)); });
  RawHttp client(server->port());
  client.send(get("/"));
  client.finish_sending();
  HttpResponder responder = pending.get_future().get();
  EXPECT_TRUE(eventually([&] { return responder.client_gone(); }));
  responder.respond({});
  EXPECT_TRUE(client.read_to_end().starts_with("HTTP/1.1 200 OK"));
}

TEST(HttpServer, StreamsPiecesAsTheyCome) {
  std::promise<HttpResponder> pending;
  const auto server =
      serve([&](HttpRequest, HttpResponder responder) { pending.set_value(std::move(responder)); });
  RawHttp client(server->port());
  client.send(get("/"));
  HttpResponder responder = pending.get_future().get();
  responder.begin({});
  EXPECT_NE(client.read_until("\r\n\r\n").find("chunked"), std::string::npos);
  for (const char* token : {"one", "two", "three"}) {
    ASSERT_TRUE(responder.write(token));
    EXPECT_EQ(client.read_until("\r\n").size(), 3u);
    EXPECT_EQ(client.read_until("\r\n"), std::string(token) + "\r\n");
  }
  responder.end();
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  client.send(get("/again"));  // the connection stays usable
  client.close();
}

TEST(HttpServer, StreamLearnsThatTheClientWentAway) {
  std::promise<HttpResponder> pending;
  const auto server =
      serve([&](HttpRequest, HttpResponder responder) { pending.set_value(std::move(responder)); });
  RawHttp client(server->port());
  client.send(get("/"));
  HttpResponder responder = pending.get_future().get();
  std::promise<void> gone;
  responder.on_client_gone([&] { gone.set_value(); });
  responder.begin({});
  client.read_until("\r\n\r\n");
  client.close();
  ASSERT_EQ(gone.get_future().wait_for(seconds(60)), std::future_status::ready);
  EXPECT_FALSE(responder.write("x"));
  EXPECT_TRUE(eventually([&] { return server->stats().connections_open == 0; }));
}

TEST(HttpServer, ManyStreamsFromManyThreads) {
  std::mutex mutex;
  std::vector<std::thread> workers;
  const auto server = serve([&](HttpRequest, HttpResponder responder) {
    const std::scoped_lock lock(mutex);
    workers.emplace_back([responder = std::move(responder)]() mutable {
      responder.begin({});
      for (int index = 0; index < 500; ++index) responder.write("0123456789");
      responder.end();
    });
  });
  std::vector<RawHttp> clients;
  for (int index = 0; index < 8; ++index) clients.emplace_back(server->port());
  for (RawHttp& client : clients) client.send(get("/"));
  for (RawHttp& client : clients) {
    client.read_until("\r\n\r\n");
    std::string all = client.read_until("0\r\n\r\n");
    for (int index = 0; index < 500; ++index) {
      ASSERT_EQ(all.substr(0, 15), "a\r\n0123456789\r\n");
      all.erase(0, 15);
    }
    EXPECT_EQ(all, "0\r\n\r\n");
  }
  const std::scoped_lock lock(mutex);
  for (std::thread& worker : workers) worker.join();
}

TEST(HttpServer, ThrowingHandlerGets500AndTheServerGoesOn) {
  const auto server = serve([](HttpRequest request, HttpResponder responder) {
    if (request.target == "/throw") throw std::runtime_error("boom");
    if (request.target != "/forget") responder.respond({});
  });
  for (const char* target : {"/throw", "/forget"}) {
    RawHttp client(server->port());
    client.send(get(target));
    EXPECT_EQ(client.read_reply().status, 500);
  }
  EXPECT_EQ(server->stats().handler_exceptions, 1u);
  RawHttp client(server->port());
  client.send(get("/"));
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST(HttpServer, ConnectionsBeyondTheLimitAreClosed) {
  HttpServerOptions options;
  options.connections_max = 2;
  const auto server = serve(echo, options);
  RawHttp first(server->port()), second(server->port());
  ASSERT_TRUE(eventually([&] { return server->stats().connections_open == 2; }));
  RawHttp third(server->port());
  EXPECT_EQ(third.read_to_end(), "");
  EXPECT_EQ(server->stats().connections_refused, 1u);
  first.close();
  ASSERT_TRUE(eventually([&] { return server->stats().connections_open == 1; }));
  RawHttp fourth(server->port());
  fourth.send(get("/"));
  EXPECT_EQ(fourth.read_reply().status, 200);
}

TEST(HttpServer, PortInUseAndForeignAddressesAreExplained) {
  const auto server = serve(echo);
  HttpServerOptions options;
  options.port = server->port();
  const auto second = HttpServer::start(options, echo);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::already_exists);
  EXPECT_NE(second.error().text.find(server->address() + ": the port is in use"),
            std::string::npos);
  options.port = 0;
  for (const char* host : {"203.0.113.7", "no-such-host.invalid"}) {
    options.host = host;
    const auto foreign = HttpServer::start(options, echo);
    ASSERT_FALSE(foreign);
    EXPECT_EQ(foreign.error().code, Errc::invalid_argument) << foreign.error().text;
  }
}

TEST(HttpServer, RespondersOutliveTheServer) {
  std::promise<HttpResponder> pending;
  auto server =
      serve([&](HttpRequest, HttpResponder responder) { pending.set_value(std::move(responder)); });
  RawHttp client(server->port());
  client.send(get("/"));
  HttpResponder responder = pending.get_future().get();
  server.reset();
  EXPECT_TRUE(responder.client_gone());
  responder.begin({});
  EXPECT_FALSE(responder.write("x"));
  EXPECT_EQ(client.read_to_end(), "");
}

}  // namespace
}  // namespace baton::net
