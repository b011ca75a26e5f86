// The serving half of mooncake_tcp against hand-made bytes. [spec 4.3]
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/tcp_protocol.hpp"
#include "engine/tcp_server.hpp"

namespace baton::engine::tcp {
namespace {

const std::string kAck = "000000005654434d";
const std::string kRejection = "010000005654434d";

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte / 16];
    text += "0123456789abcdef"[byte % 16];
  }
  return text;
}

std::string header(std::uint64_t length, std::uint64_t address, std::uint8_t opcode) {
  std::string bytes(kHeaderBytes, '\xEE');  // the padding is never looked at
  store_u64(bytes.data(), length);
  store_u64(bytes.data() + 8, address);
  bytes[16] = static_cast<char>(opcode);
  return bytes;
}

// A blocking client with a time-out, so that a silent server fails the test.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{60, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void send(const std::string& bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t sent =
          ::send(socket_.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (sent <= 0) return;  // the server may have hung up, which the test looks at
      done += static_cast<std::size_t>(sent);
    }
  }
  // Fewer bytes: the server hung up.
  std::string receive(std::size_t count) {
    std::string bytes(count, '\0');
    std::size_t done = 0;
    while (done < count) {
      const ssize_t got = ::recv(socket_.get(), bytes.data() + done, count - done, 0);
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    bytes.resize(done);
    return bytes;
  }
  bool is_hung_up() { return receive(1).empty(); }
  int name(sockaddr_in& address, socklen_t& length) {
    return ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length);
  }
  void finish_sending() { ::shutdown(socket_.get(), SHUT_WR); }

 private:
  Fd socket_;
};

class McTcpServer : public testing::Test {
 protected:
  void SetUp() override {
    auto server = TcpServer::start(Endpoint{"127.0.0.1", 0});
    ASSERT_TRUE(server) << server.error().text;
    server_ = std::move(*server);
    std::iota(memory_.begin(), memory_.end(), 0);
    Region region;
    region.address = address();
    region.length_bytes = memory_.size();
    id_ = server_->regions().add(region).value();
    const std::string& name = server_->name();
    rpc_port_ = static_cast<std::uint16_t>(std::stoi(name.substr(name.rfind(':') + 1)));
  }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(memory_.data()); }
  std::string bytes_at(std::size_t offset, std::size_t length) const {
    return {reinterpret_cast<const char*>(memory_.data()) + offset, length};
  }
  std::string call(std::uint8_t type, const std::string& json) {
    Client client(rpc_port_);
    client.send(encode_rpc(type, json));
    return read_reply(client, type);
  }
  std::string read_reply(Client& client, std::uint8_t type) {
    const std::string length = client.receive(8);
    if (length.size() < 8) return {};
    const std::string body = client.receive(load_u64(length.data()));
    EXPECT_EQ(static_cast<std::uint8_t>(body.at(0)), type);
    EXPECT_TRUE(client.is_hung_up());
    return body.substr(1);
  }

  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(1U << 20U);
  std::unique_ptr<TcpServer> server_;
  RegionId id_;
  std::uint16_t rpc_port_ = 0;
};

TEST_F(McTcpServer, WriteOfProtocol2IsAcknowledged) {
  Client client(server_->data_port());
  client.send(header(5, address() + 10, 0x81) + "hello");
  EXPECT_EQ(hex(client.receive(8)), kAck);
  EXPECT_EQ(bytes_at(10, 5), "hello");
  client.send(header(5, address() + 20, 0x81) + "again");
  EXPECT_EQ(hex(client.receive(8)), kAck);
  EXPECT_EQ(bytes_at(20, 5), "again");
}

TEST_F(McTcpServer, WriteOutsideIsRejectedAndTheConnectionCloses) {
  for (const std::uint64_t bad :
       {address() - 1, address() + memory_.size() - 4, std::uint64_t{0}, ~std::uint64_t{0} - 2}) {
    Client client(server_->data_port());
    client.send(header(5, bad, 0x81) + "hello");
    EXPECT_EQ(hex(client.receive(8)), kRejection);
    EXPECT_TRUE(client.is_hung_up());
  }
  EXPECT_EQ(bytes_at(memory_.size() - 4, 4), "\xFC\xFD\xFE\xFF");
}

TEST_F(McTcpServer, TheRejectionArrivesThoughTheClientSendsOn) {
  Client client(server_->data_port());
  std::thread sender(
      [&] { client.send(header(64U << 20U, 8, 0x81) + std::string(8U << 20U, 'x')); });
  EXPECT_EQ(hex(client.receive(8)), kRejection);
  sender.join();
}

TEST_F(McTcpServer, RequestsBehindARejectedOneAreNotRead) {
  Client client(server_->data_port());
  client.send(header(2, address(), 0x81) + "ok" + header(2, 4, 0x81) + "no" +
              header(2, address() + 8, 0x81) + "no");
  EXPECT_EQ(hex(client.receive(16)), kAck + kRejection);
  EXPECT_TRUE(client.is_hung_up());
  EXPECT_EQ(bytes_at(0, 2), "ok");
  EXPECT_EQ(bytes_at(8, 2), "\x08\x09");
}

TEST_F(McTcpServer, ReadOfProtocol2AnswersStatusThenBytes) {
  Client client(server_->data_port());
  client.send(header(16, address() + 3, 0x80));
  EXPECT_EQ(hex(client.receive(24)), kAck + "030405060708090a0b0c0d0e0f101112");
  client.send(header(1, 5, 0x80));
  EXPECT_EQ(hex(client.receive(8)), kRejection);
  EXPECT_TRUE(client.is_hung_up());
}

TEST_F(McTcpServer, ReadOfTheWholeRegion) {
  Client client(server_->data_port());
  client.send(header(memory_.size(), address(), 0x80));
  EXPECT_EQ(hex(client.receive(8)), kAck);
  EXPECT_EQ(client.receive(memory_.size()), bytes_at(0, memory_.size()));
}

TEST_F(McTcpServer, Protocol1WritesInSilenceAndReadsWithoutStatus) {
  Client client(server_->data_port());
  client.send(header(3, address() + 200, 0x01) + "abc" + header(3, address() + 200, 0x00));
  EXPECT_EQ(client.receive(3), "abc");  // no status word before, between or behind
  EXPECT_EQ(bytes_at(200, 3), "abc");
  client.send(header(3, 1, 0x01) + "abc");
  EXPECT_TRUE(client.is_hung_up());
}

TEST_F(McTcpServer, HeadersAndPayloadsMayComeInAnyPieces) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::string stream, expected(memory_.size(), '\0');
  std::memcpy(expected.data(), memory_.data(), memory_.size());
  std::size_t requests = 0, offset = 0;
  for (; offset + 3000 < 300'000; ++requests) {
    const std::size_t length = random() % 5 == 0 ? random() % 3000 : random() % 40;
    std::string payload(length, '\0');
    for (char& c : payload) c = static_cast<char>(random());
    stream += header(length, address() + offset, 0x81) + payload;
    expected.replace(offset, length, payload);
    offset += length + random() % 100;
  }
  Client client(server_->data_port());
  std::thread sender([&] {
    std::mt19937_64 cutter(seed);
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t count =
          std::min<std::size_t>(stream.size() - at, 1 + cutter() % (cutter() % 3 == 0 ? 9000 : 50));
      client.send(stream.substr(at, count));
      at += count;
    }
  });
  const std::string acks = client.receive(8 * requests);
  sender.join();
  ASSERT_EQ(acks.size(), 8 * requests);
  for (std::size_t i = 0; i < requests; ++i) ASSERT_EQ(hex(acks.substr(8 * i, 8)), kAck);
  EXPECT_EQ(bytes_at(0, memory_.size()), expected);
}

TEST_F(McTcpServer, EmptyWritesAreAcknowledged) {
  Client client(server_->data_port());
  client.send(header(0, address(), 0x81));
  EXPECT_EQ(hex(client.receive(8)), kAck);
}

TEST_F(McTcpServer, GarbageEndsTheConnectionAndNothingElse) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::string before = bytes_at(0, memory_.size());
  for (int i = 0; i < 200; ++i) {
    Client client(i % 2 == 0 ? server_->data_port() : rpc_port_);
    std::string garbage(random() % 200, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    client.send(garbage);
    client.finish_sending();
    while (!client.is_hung_up()) {
    }
  }
  EXPECT_EQ(bytes_at(0, memory_.size()), before);
  Client client(server_->data_port());
  client.send(header(2, address(), 0x81) + "ok");
  EXPECT_EQ(hex(client.receive(8)), kAck);
}

TEST_F(McTcpServer, AThousandConnections) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 1000; ++i) clients.push_back(std::make_unique<Client>(server_->data_port()));
  for (std::size_t i = 0; i < clients.size(); ++i) {
    clients[i]->send(header(4, address() + 4 * i, 0x81) + "conn");
  }
  for (const auto& client : clients) EXPECT_EQ(hex(client->receive(8)), kAck);
  for (std::size_t i = 0; i < clients.size(); ++i) EXPECT_EQ(bytes_at(4 * i, 4), "conn");
}

// The region goes away in the middle of a payload: the rest of it must not land.
TEST_F(McTcpServer, UnregisterCutsAWriteBeingReceived) {
  Client client(server_->data_port());
  const std::string half(4000, 'x');
  client.send(header(8000, address(), 0x81) + half);
  const auto* last = reinterpret_cast<const std::atomic<std::uint8_t>*>(memory_.data() + 3999);
  while (last->load() != 'x') std::this_thread::yield();
  ASSERT_TRUE(server_->regions().remove(id_));
  const std::string before = bytes_at(0, memory_.size());
  client.send(half);
  EXPECT_EQ(hex(client.receive(8)), kRejection);
  EXPECT_EQ(bytes_at(0, memory_.size()), before);
}

TEST_F(McTcpServer, MetadataNamesPortsVersionAndBuffers) {
  const std::string json = call(1, "{}");
  const Result<Metadata> metadata = decode_metadata(json);
  ASSERT_TRUE(metadata) << metadata.error().text;
  EXPECT_EQ(metadata->name, server_->name());
  EXPECT_EQ(metadata->data_port, server_->data_port());
  EXPECT_EQ(metadata->protocol_version, 2U);
  EXPECT_NE(json.find("\"addr\":" + std::to_string(address())), std::string::npos) << json;
  EXPECT_NE(json.find("\"length\":" + std::to_string(memory_.size())), std::string::npos) << json;
  EXPECT_NE(json.find("\"protocol\":\"tcp\""), std::string::npos) << json;
}

TEST_F(McTcpServer, AnswersProbesAndUnknownQuestions) {
  EXPECT_EQ(call(3, "{}"), R"({"status":"success"})");
  EXPECT_NE(call(0, "{}"), "");
  EXPECT_NE(call(2, R"({"name":"a","notify_msg":"b"})"), "");
  EXPECT_EQ(call(4, "{}"), "");
  EXPECT_EQ(call(1, "{broken"), "");
  EXPECT_EQ(call(66, R"({"connections":7})").empty(), false);
  EXPECT_EQ(call(66, "{}"), "");
}

TEST_F(McTcpServer, RpcLengthsAreLimited) {
  for (const std::uint64_t length : {std::uint64_t{0}, kRpcBytesMax + 1, ~std::uint64_t{0}}) {
    Client client(rpc_port_);
    std::string bytes(8, '\0');
    store_u64(bytes.data(), length);
    client.send(bytes);
    EXPECT_TRUE(client.is_hung_up()) << length;
  }
  // The longest allowed message is read to its end.
  EXPECT_EQ(call(3, "{}" + std::string(kRpcBytesMax - 3, ' ')), R"({"status":"success"})");
}

TEST_F(McTcpServer, RpcMayComeByteByByte) {
  Client client(rpc_port_);
  for (const char c : encode_rpc(3, "{}")) client.send(std::string(1, c));
  EXPECT_EQ(read_reply(client, 3), R"({"status":"success"})");
}

// What the sender's proof of quiescence (tcp_fence.hpp) rests on.
TEST_F(McTcpServer, AFenceClosesTheNamedConnectionBeforeItAnswers) {
  Client victim(server_->data_port()), bystander(server_->data_port());
  victim.send(header(8000, address(), 0x81) + std::string(100, 'x'));
  bystander.send(header(2, address() + 50'000, 0x81) + "ok");
  EXPECT_EQ(hex(bystander.receive(8)), kAck);
  sockaddr_in name{};
  socklen_t length = sizeof name;
  ASSERT_EQ(victim.name(name, length), 0);
  const std::string connection = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  const std::string answer = call(66, R"({"connections":[")" + connection + R"("]})");
  EXPECT_NE(answer.find("127.0.0.1"), std::string::npos) << answer;
  EXPECT_NE(answer.find(server_->identity()), std::string::npos) << answer;
  const std::string before = bytes_at(0, memory_.size());
  victim.send(std::string(7900, 'y'));
  EXPECT_TRUE(victim.is_hung_up());
  EXPECT_EQ(bytes_at(0, memory_.size()), before);
  bystander.send(header(2, address() + 50'000, 0x81) + "ok");
  EXPECT_EQ(hex(bystander.receive(8)), kAck);
}

TEST(McTcpProtocol, HeadersAreAsDocumented) {
  const HeaderBytes bytes = encode_header({0x0102, 0x1122334455667788, Opcode::write, true});
  EXPECT_EQ(hex({bytes.data(), bytes.size()}),
            "0201000000000000"
            "8877665544332211"
            "8100000000000000");
  EXPECT_EQ(decode_header(bytes.data()), (Header{0x0102, 0x1122334455667788, Opcode::write, true}));
  EXPECT_FALSE(decode_header(header(1, 1, 0x02).data()));
  EXPECT_FALSE(decode_header(header(1, 1, 0x82).data()));
}

TEST(McTcpProtocol, MetadataOfStrangersIsReadWithCare) {
  const auto code = [](const char* json) {
    const Result<Metadata> metadata = decode_metadata(json);
    return metadata ? std::string("fine") : metadata.error().text;
  };
  EXPECT_EQ(code(R"({"protocol":"tcp","tcp_data_port":5})"), "fine");
  EXPECT_EQ(decode_metadata(R"({"protocol":"tcp","tcp_data_port":5})")->protocol_version, 1U);
  for (const char* bad :
       {"", "[]", "7", "{}", R"({"protocol":"rdma","tcp_data_port":5})",
        R"({"protocol":"tcp","tcp_data_port":"5"})", R"({"protocol":"tcp","tcp_data_port":65536})",
        R"({"protocol":"tcp","tcp_data_port":0})", R"({"protocol":7,"tcp_data_port":5})",
        R"({"protocol":"tcp","tcp_data_port":5,"tcp_proto_version":0})"}) {
    EXPECT_NE(code(bad), "fine") << bad;
  }
}

}  // namespace
}  // namespace baton::engine::tcp
