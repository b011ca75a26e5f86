// The fixture of the conformance suite: one sender and its peers, for every kind of engine.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "baton/engine.hpp"
#include "engine/driver.hpp"
#include "engine/memory_engine.hpp"
#include "engine/peer.hpp"

namespace baton::engine::test {

// One way to move bytes.
struct Kind {
  std::string name;    // of the test
  std::string engine;  // "memory", "faulty", "local", "mooncake_tcp"
  bool is_shared = false;
  bool is_process = false;
};

std::ostream& operator<<(std::ostream& out, const Kind& kind);
std::vector<Kind> all_kinds();
std::vector<Kind> process_kinds();
std::string kind_name(const testing::TestParamInfo<Kind>& info);

class Conformance : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override;
  std::unique_ptr<TransferEngine> make_sender();
  std::unique_ptr<Peer> make_peer(std::size_t region_bytes, std::uint16_t port = 0);
  // Random bytes to send. The seed is printed with every failure.
  std::vector<std::byte> random_bytes(std::size_t length);
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  std::uint64_t seed_ = 0;
  std::mt19937_64 random_;
  std::shared_ptr<MemoryHub> hub_ = std::make_shared<MemoryHub>();
  std::unique_ptr<testing::ScopedTrace> trace_;
};

// What the peer's pool must look like, and the batch that makes it so.
class Model {
 public:
  Model(Peer& peer, std::size_t pool_bytes) : base_(peer.base()), expected_(pool_bytes, kFill) {}
  // The run copies source[source_offset, +length) to pool[offset, +length).
  WriteRun run(const std::vector<std::byte>& source, std::size_t source_offset, std::size_t offset,
               std::size_t length) const {
    return {reinterpret_cast<std::uint64_t>(source.data()) + source_offset, base_ + offset, length};
  }
  void apply(const std::vector<WriteRun>& batch);
  const std::vector<std::byte>& expected() const { return expected_; }
  std::size_t size() const { return expected_.size(); }

 private:
  std::uint64_t base_;
  std::vector<std::byte> expected_;
};

std::size_t pool_bytes(std::size_t region_bytes);

}  // namespace baton::engine::test
