// The sending half of mooncake_tcp against scripted servers: what it may claim about broken writes.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/driver.hpp"
#include "engine/fd.hpp"
#include "engine/tcp_protocol.hpp"

namespace baton::engine::test {
namespace {

using tcp::kHeaderBytes;

std::string receive(int socket, std::size_t count) {
  std::string bytes(count, '\0');
  const ssize_t got = ::recv(socket, bytes.data(), count, MSG_WAITALL);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

void send_all(int socket, const std::string& bytes) {
  static_cast<void>(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

void send_status(int socket, std::uint64_t word) {
  std::string bytes(8, '\0');
  tcp::store_u64(bytes.data(), word);
  send_all(socket, bytes);
}

// Closes with a reset instead of an orderly end.
void reset(Fd& socket) {
  const linger now{1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  socket.reset();
}

// A foreign server: answers metadata, and runs a script for each data connection in turn.
class FakeServer {
 public:
  using Script = std::function<void(Fd socket)>;
  FakeServer(int version, Script script) : version_(version), script_(std::move(script)) {
    rpc_ = listen(rpc_port_);
    data_ = listen(data_port_);
    rpc_thread_ = std::thread([this] { serve_rpc(); });
    data_thread_ = std::thread([this] { serve_data(); });
  }
  ~FakeServer() { end(); }
  // As if the process had ended.
  void end() {
    if (!rpc_thread_.joinable()) return;
    for (const Fd* socket : {&data_, &rpc_}) ::shutdown(socket->get(), SHUT_RDWR);
    rpc_thread_.join();
    data_thread_.join();
    data_.reset();
    rpc_.reset();
  }
  std::string name() const { return "127.0.0.1:" + std::to_string(rpc_port_); }
  void pretend_data_port(std::uint16_t port) { data_port_ = port; }

 private:
  static Fd listen(std::atomic<std::uint16_t>& port) {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(socket.get(), 16), 0);
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
    port = ntohs(address.sin_port);
    return socket;
  }
  void serve_rpc() {
    while (true) {
      const Fd socket(::accept(rpc_.get(), nullptr, nullptr));
      if (!socket) return;
      const std::string length = receive(socket.get(), 8);
      if (length.size() < 8) continue;
      receive(socket.get(), tcp::load_u64(length.data()));
      send_all(socket.get(),
               tcp::encode_rpc(1, R"({"protocol":"tcp","buffers":[],"tcp_data_port":)" +
                                      std::to_string(data_port_) + R"(,"tcp_proto_version":)" +
                                      std::to_string(version_) + "}"));
    }
  }
  void serve_data() {
    while (true) {
      Fd socket(::accept(data_.get(), nullptr, nullptr));
      if (!socket) return;
      script_(std::move(socket));
    }
  }
  int version_;
  Script script_;
  std::atomic<std::uint16_t> rpc_port_{0}, data_port_{0};
  Fd rpc_, data_;
  std::thread rpc_thread_, data_thread_;
};

class McTcpClient : public testing::Test {
 protected:
  void SetUp() override {
    EngineOptions options;
    options.connections_per_peer = 1;
    engine_ = std::move(*make_engine("mooncake_tcp", options));
    driver_ = std::make_unique<Driver>(*engine_);
  }
  std::vector<WriteRun> batch(std::size_t count, std::size_t length = 1000) {
    std::vector<WriteRun> runs;
    for (std::size_t i = 0; i < count; ++i) {
      runs.push_back({reinterpret_cast<std::uint64_t>(source_.data()), 0x10000 * (i + 1), length});
    }
    return runs;
  }
  std::vector<std::byte> source_ = std::vector<std::byte>(1U << 16U, std::byte{9});
  std::unique_ptr<TransferEngine> engine_;
  std::unique_ptr<Driver> driver_;
};

TEST_F(McTcpClient, AnOrderlyEndProvesQuiescence) {
  FakeServer server(2, [](Fd socket) {
    receive(socket.get(), 2 * (kHeaderBytes + 1000));
    send_status(socket.get(), tcp::kStatusApplied);  // of the first run only
  });
  const EnginePeer peer = engine_->connect(server.name()).value();
  const std::vector<WriteRun> runs = batch(2);
  const Completion completion = driver_->write(peer, runs);
  EXPECT_EQ(completion.outcome, Outcome::failed) << completion.error.text;
  EXPECT_FALSE(completion.peer_lost);
}

TEST_F(McTcpClient, AResetByALivingStrangerProvesNothingUntilItEnds) {
  FakeServer server(2, [](Fd socket) {
    receive(socket.get(), kHeaderBytes + 500);
    reset(socket);
  });
  const EnginePeer peer = engine_->connect(server.name()).value();
  const std::vector<WriteRun> runs = batch(1);
  const Ticket ticket = driver_->submit(peer, runs);
  ASSERT_TRUE(driver_->wait_until([&] { return driver_->has_word(ticket); }));
  EXPECT_EQ(driver_->ended(ticket).outcome, Outcome::unsettled);
  server.end();
  ASSERT_TRUE(driver_->wait_for(ticket));
  EXPECT_EQ(driver_->ended(ticket).outcome, Outcome::settled);
  EXPECT_TRUE(driver_->ended(ticket).peer_lost);
}

TEST_F(McTcpClient, DisconnectedDoubtsAreWatchedToTheirEnd) {
  FakeServer server(2, [](Fd socket) {
    receive(socket.get(), kHeaderBytes + 500);
    reset(socket);
  });
  const EnginePeer peer = engine_->connect(server.name()).value();
  const std::vector<WriteRun> runs = batch(1);
  const Ticket ticket = driver_->submit(peer, runs);
  ASSERT_TRUE(driver_->wait_until([&] { return driver_->has_word(ticket); }));
  engine_->disconnect(peer);
  for (int i = 0; i < 5; ++i) driver_->step();
  EXPECT_FALSE(driver_->is_final(ticket));
  server.end();
  EXPECT_TRUE(driver_->wait_for(ticket));
}

TEST_F(McTcpClient, AnotherDataPortMeansAnotherProcess) {
  FakeServer server(2, [](Fd socket) {
    receive(socket.get(), kHeaderBytes + 500);
    reset(socket);
  });
  const EnginePeer peer = engine_->connect(server.name()).value();
  const std::vector<WriteRun> runs = batch(1);
  const Ticket ticket = driver_->submit(peer, runs);
  ASSERT_TRUE(driver_->wait_until([&] { return driver_->has_word(ticket); }));
  server.pretend_data_port(1);
  ASSERT_TRUE(driver_->wait_for(ticket));
  EXPECT_EQ(driver_->ended(ticket).outcome, Outcome::settled);
  EXPECT_NE(engine_->connect(server.name()).value(), peer);
}

TEST_F(McTcpClient, AMalformedStatusWordIsNoAcknowledgement) {
  FakeServer server(2, [](Fd socket) {
    receive(socket.get(), kHeaderBytes + 1000);
    send_status(socket.get(), 0);
    receive(socket.get(), 1);
  });
  const EnginePeer peer = engine_->connect(server.name()).value();
  const std::vector<WriteRun> runs = batch(1);
  const Ticket ticket = driver_->submit(peer, runs);
  ASSERT_TRUE(driver_->wait_until([&] { return driver_->has_word(ticket); }));
  EXPECT_NE(driver_->ended(ticket).outcome, Outcome::ok);
}

TEST_F(McTcpClient, AnAcknowledgementThatComesTooEarlyIsNone) {
  FakeServer server(2, [](Fd socket) {
    send_status(socket.get(), tcp::kStatusApplied);
    receive(socket.get(), kHeaderBytes + 1000);
    receive(socket.get(), 1);
  });
  const EnginePeer peer = engine_->connect(server.name()).value();
  // Large enough that the word arrives while the payload is still being sent, or before.
  std::vector<std::byte> large(64U << 20U);
  const std::vector<WriteRun> runs = {
      {reinterpret_cast<std::uint64_t>(large.data()), 0x10000, large.size()}};
  const Ticket ticket = driver_->submit(peer, runs);
  ASSERT_TRUE(driver_->wait_until([&] { return driver_->has_word(ticket); }));
  EXPECT_NE(driver_->ended(ticket).outcome, Outcome::ok);
}

// Status words cut into pieces, many at once.
TEST_F(McTcpClient, AcknowledgementsMayComeInAnyPieces) {
  FakeServer server(2, [](Fd socket) {
    std::string acks;
    for (int i = 0; i < 100; ++i) {
      receive(socket.get(), kHeaderBytes + 1000);
      acks.resize(acks.size() + 8);
      tcp::store_u64(acks.data() + acks.size() - 8, tcp::kStatusApplied);
    }
    for (std::size_t at = 0; at < acks.size(); at += 13) {
      send_all(socket.get(), acks.substr(at, 13));
      std::this_thread::yield();
    }
    receive(socket.get(), 1);
  });
  const EnginePeer peer = engine_->connect(server.name()).value();
  const std::vector<WriteRun> runs = batch(100);
  EXPECT_EQ(driver_->write(peer, runs).outcome, Outcome::ok);
  engine_->disconnect(peer);
  driver_->step();
}

// Protocol 1: no word for a WRITE; the READ behind it proves that it was applied.
TEST_F(McTcpClient, Protocol1WaitsForTheReadBehindTheWrites) {
  std::atomic<bool> was_read{false};
  FakeServer server(1, [&](Fd socket) {
    for (int writes = 0; writes < 3;) {
      const std::string bytes = receive(socket.get(), kHeaderBytes);
      if (bytes.size() < kHeaderBytes) return;
      const tcp::Header header = tcp::decode_header(bytes.data()).value();
      EXPECT_FALSE(header.wants_status);
      if (header.opcode == tcp::Opcode::write) {
        receive(socket.get(), header.length_bytes);
        ++writes;
      } else {
        send_all(socket.get(), "x");
      }
    }
    const std::string bytes = receive(socket.get(), kHeaderBytes);
    EXPECT_EQ(tcp::decode_header(bytes.data())->opcode, tcp::Opcode::read);
    EXPECT_EQ(tcp::decode_header(bytes.data())->address, 0x30000U + 999);
    was_read = true;
    send_all(socket.get(), "x");
    receive(socket.get(), 1);
  });
  const EnginePeer peer = engine_->connect(server.name()).value();
  const std::vector<WriteRun> runs = batch(3);
  EXPECT_EQ(driver_->write(peer, runs).outcome, Outcome::ok);
  EXPECT_TRUE(was_read);
  engine_->disconnect(peer);
  driver_->step();
}

TEST_F(McTcpClient, Protocol1ServersThatHangUpFailTheTicket) {
  FakeServer server(1, [](Fd socket) { receive(socket.get(), 2 * (kHeaderBytes + 1000)); });
  const EnginePeer peer = engine_->connect(server.name()).value();
  const std::vector<WriteRun> runs = batch(2);
  const Ticket ticket = driver_->submit(peer, runs);
  ASSERT_TRUE(driver_->wait_until([&] { return driver_->has_word(ticket); }));
  EXPECT_NE(driver_->ended(ticket).outcome, Outcome::ok);
}

TEST_F(McTcpClient, NamesAreLookedUpInTheBackground) {
  const auto receiver = std::move(*make_engine("mooncake_tcp", {}));
  std::vector<std::byte> target(1000);
  Region region;
  region.address = reinterpret_cast<std::uint64_t>(target.data());
  region.length_bytes = target.size();
  ASSERT_TRUE(receiver->register_region(region));
  const std::string name = receiver->local_descriptor().value();
  const EnginePeer peer = engine_->connect("localhost" + name.substr(name.rfind(':'))).value();
  const std::vector<WriteRun> runs = {
      {reinterpret_cast<std::uint64_t>(source_.data()), region.address, 1000}};
  const Completion completion = driver_->write(peer, runs);
  // "localhost" may mean ::1 first, where nobody listens; either way there is one clear answer.
  if (completion.outcome != Outcome::ok) {
    EXPECT_TRUE(completion.peer_lost);
  }
  const EnginePeer nowhere = engine_->connect("no-such-host.invalid:5").value();
  EXPECT_TRUE(driver_->write(nowhere, runs).peer_lost);
}

}  // namespace
}  // namespace baton::engine::test
