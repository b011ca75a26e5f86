// What the conformance suite cannot reach of the local engine: gates, pids, refusals.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "engine/driver.hpp"
#include "engine/local_engine.hpp"
#include "engine/local_gate.hpp"
#include "engine/local_peer.hpp"
#include "engine/local_service.hpp"
#include "engine/local_socket.hpp"
#include "engine/pool.hpp"

namespace baton::engine::test {
namespace {

std::string fresh_name() {
  static std::atomic<int> count{0};
  return "baton-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

Packet next_packet(int socket) {
  Packet packet;
  while (receive_packet(socket, packet) == PacketStatus::would_block) std::this_thread::yield();
  return packet;
}

// A peer that can stop in the middle of a copy.
class HandMadePeer {
 public:
  explicit HandMadePeer(const std::string& name) : socket_(std::move(*connect_local(name))) {
    EXPECT_EQ(send_packet(socket_.get(), {}, -1), PacketStatus::done);
    Packet packet = next_packet(socket_.get());
    EXPECT_EQ(packet.message.kind, LocalMessage::Kind::gate);
    page_ = std::move(*Mapping::map_file(packet.descriptor.get(), 0, sizeof(LocalGate)));
    while (packet.message.kind != LocalMessage::Kind::ready) packet = next_packet(socket_.get());
  }
  LocalGate& gate() { return *reinterpret_cast<LocalGate*>(page_.data()); }
  int socket() const { return socket_.get(); }
  void hang_up() { socket_.reset(); }

 private:
  Fd socket_;
  Mapping page_;
};

class LocalEngine : public testing::Test {
 protected:
  void SetUp() override {
    name_ = fresh_name();
    service_ = std::move(*LocalService::start(name_));
    id_ = service_->add(pool_.region(0)).value();
  }
  std::string name_;
  Pool pool_{1U << 20U, false};
  std::unique_ptr<LocalService> service_;
  RegionId id_;
};

TEST_F(LocalEngine, UnregisterWaitsForACopyInProgress) {
  HandMadePeer peer(name_);
  peer.gate().passages.store(1);
  std::atomic<bool> has_returned{false};
  std::thread remover([&] {
    EXPECT_TRUE(service_->remove(id_));
    has_returned.store(true);
  });
  while (peer.gate().generation.load() == 0) std::this_thread::yield();
  EXPECT_FALSE(has_returned.load());
  peer.gate().passages.store(2);
  remover.join();
  EXPECT_EQ(next_packet(peer.socket()).message.kind, LocalMessage::Kind::removed);
}

TEST_F(LocalEngine, UnregisterDoesNotWaitForAPeerBetweenCopies) {
  HandMadePeer peer(name_);
  peer.gate().passages.store(1000);
  EXPECT_TRUE(service_->remove(id_));  // the peer has not read, let alone answered, anything
}

TEST_F(LocalEngine, UnregisterNamesAPeerThatIsStuck) {
  HandMadePeer peer(name_);
  peer.gate().passages.store(1);
  const Result<void> stuck = service_->remove(id_);
  ASSERT_FALSE(stuck);
  EXPECT_EQ(stuck.error().code, Errc::timeout);
  EXPECT_NE(stuck.error().text.find(std::to_string(::getpid())), std::string::npos);
  peer.gate().passages.store(2);
  EXPECT_TRUE(service_->remove(id_));
  EXPECT_EQ(service_->remove(id_).error().code, Errc::misuse);
}

TEST_F(LocalEngine, UnregisterDoesNotWaitForADeadPeer) {
  HandMadePeer peer(name_);
  peer.gate().passages.store(1);
  peer.hang_up();
  EXPECT_TRUE(service_->remove(id_));
}

TEST_F(LocalEngine, StrangersAreCutOff) {
  const Fd socket = std::move(*connect_local(name_));
  const std::array<char, 7> nonsense{};
  ASSERT_GT(::send(socket.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL), 0);
  Packet packet;
  PacketStatus status = PacketStatus::would_block;
  while (status == PacketStatus::would_block) status = receive_packet(socket.get(), packet);
  EXPECT_EQ(status, PacketStatus::closed);
}

// The listener belongs to this process, but another one answers, as if the pid had been recycled.
TEST(LocalPeer, ARecycledPidIsNeverWritten) {
  const std::string text = "local-00112233445566778899aabbccddeeff:" + std::to_string(::getpid());
  const LocalDescriptor descriptor = parse_local_descriptor(text).value();
  const Fd listener = std::move(*listen_local(descriptor.socket_name));
  Pool pool(1U << 20U, false);
  const Region region = pool.region(0);
  const Fd gate(::memfd_create("gate", MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(gate.get(), sizeof(LocalGate)), 0);
  ASSERT_EQ(::fcntl(gate.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    int socket = -1;
    while (socket < 0) socket = ::accept(listener.get(), nullptr, nullptr);
    LocalMessage message;
    message.kind = LocalMessage::Kind::gate;
    send_packet(socket, message, gate.get());
    message.kind = LocalMessage::Kind::added;
    message.region = 1;
    message.address = region.address;
    message.length_bytes = region.length_bytes;
    send_packet(socket, message, -1);
    message.kind = LocalMessage::Kind::ready;
    send_packet(socket, message, -1);
    ::pause();
  }
  Waker waker = std::move(*Waker::create());
  engine::LocalPeer peer(descriptor, 1, Clock::now());
  const std::vector<std::byte> source(1000, std::byte{1});
  const std::vector<WriteRun> batch = {
      {reinterpret_cast<std::uint64_t>(source.data()), region.address, source.size()}};
  peer.submit(Ticket{1}, batch);
  while (!peer.can_copy() && !peer.is_lost()) peer.refresh(waker, Clock::now());
  ASSERT_FALSE(peer.is_lost()) << peer.loss().text;
  std::vector<Completion> out;
  peer.copy_slice(out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].outcome, Outcome::failed);
  EXPECT_NE(out[0].error.text.find("not proven"), std::string::npos) << out[0].error.text;
  EXPECT_EQ(pool.bytes()[pool.region_offset(0)], kFill);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// As under a ptrace scope, a container's seccomp profile, or another user.
void forbid_process_vm_writev() {
  const std::array<sock_filter, 4> filter = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{static_cast<unsigned short>(filter.size()),
                           const_cast<sock_filter*>(filter.data())};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(LocalPeer, AForbiddenWriteSaysWhatToDo) {
  const auto receiver = std::move(*make_engine("local", {}));
  const auto sender = std::move(*make_engine("local", {}));
  Pool closed(1U << 20U, false), shared(1U << 20U, true);
  ASSERT_TRUE(receiver->register_region(closed.region(0)));
  ASSERT_TRUE(receiver->register_region(shared.region(0)));
  const std::vector<std::byte> source(1000, std::byte{1});
  const auto from = reinterpret_cast<std::uint64_t>(source.data());
  const EnginePeer to = sender->connect(receiver->local_descriptor().value()).value();
  // A filter binds only its thread.
  std::thread worker([&] {
    forbid_process_vm_writev();
    Driver driver(*sender);
    const std::vector<WriteRun> bad = {{from, closed.region(0).address, source.size()}};
    const Completion refused = driver.write(to, bad);
    EXPECT_EQ(refused.outcome, Outcome::failed);
    EXPECT_EQ(refused.error.code, Errc::unsupported);
    for (const char* word : {"process_vm_writev", "SharedMemory", "mooncake_tcp"}) {
      EXPECT_NE(refused.error.text.find(word), std::string::npos) << refused.error.text;
    }
    EXPECT_NE(refused.error.text.find(std::to_string(::getpid())), std::string::npos);
    const std::vector<WriteRun> good = {{from, shared.region(0).address, source.size()}};
    EXPECT_EQ(driver.write(to, good).outcome, Outcome::ok);
  });
  worker.join();
}

TEST(LocalPeer, AnUnsealedFileIsNotMappedButWritten) {
  const auto receiver = std::move(*make_engine("local", {}));
  const auto sender = std::move(*make_engine("local", {}));
  const Fd file(::memfd_create("unsealed", 0));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  Region region;
  region.address = reinterpret_cast<std::uint64_t>(memory);
  region.length_bytes = 4096;
  region.shared_fd = file.get();
  ASSERT_TRUE(receiver->register_region(region));
  const std::vector<std::byte> source(4096, std::byte{7});
  const std::vector<WriteRun> batch = {
      {reinterpret_cast<std::uint64_t>(source.data()), region.address, 4096}};
  Driver driver(*sender);
  const EnginePeer to = sender->connect(receiver->local_descriptor().value()).value();
  EXPECT_EQ(driver.write(to, batch).outcome, Outcome::ok);
  EXPECT_EQ(static_cast<std::byte*>(memory)[4095], std::byte{7});
  ::munmap(memory, 4096);
}

TEST(SharedMemory, IsZeroedSealedAndOwned) {
  EXPECT_FALSE(SharedMemory::create(0));
  SharedMemory memory = std::move(SharedMemory::create(10'000).value());
  const Region region = memory.region();
  EXPECT_EQ(region.length_bytes, 10'000U);
  EXPECT_EQ(memory.data()[9'999], std::byte{0});
  EXPECT_NE(::ftruncate(region.shared_fd, 10), 0);
  SharedMemory other = std::move(memory);
  EXPECT_EQ(other.region(), region);
  EXPECT_FALSE(SharedMemory::create(std::size_t{1} << 62U));
}

}  // namespace
}  // namespace baton::engine::test
