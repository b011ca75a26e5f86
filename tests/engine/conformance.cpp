// Making senders, peers and models for the conformance suite.
#include "engine/conformance.hpp"

#include <cstdlib>
#include <cstring>

#include "engine/faulty_engine.hpp"

namespace baton::engine::test {

std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

std::vector<Kind> all_kinds() {
  return {{"memory", "memory", false, false},
          {"faulty_without_faults", "faulty", false, false},
          {"local_shared", "local", true, true},
          {"local_process_vm", "local", false, true},
          {"local_in_process", "local", true, false},
          {"mooncake_tcp", "mooncake_tcp", false, true},
          {"mooncake_tcp_in_process", "mooncake_tcp", false, false}};
}

std::vector<Kind> process_kinds() {
  std::vector<Kind> kinds = all_kinds();
  std::erase_if(kinds, [](const Kind& kind) { return !kind.is_process; });
  return kinds;
}

std::string kind_name(const testing::TestParamInfo<Kind>& info) { return info.param.name; }

std::size_t pool_bytes(std::size_t region_bytes) { return 3 * kGuardBytes + 2 * region_bytes; }

void Conformance::SetUp() {
  const char* wanted = std::getenv("BATON_TEST_SEED");
  seed_ = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : std::random_device{}();
  random_.seed(seed_);
  trace_ = std::make_unique<testing::ScopedTrace>(__FILE__, __LINE__,
                                                  "BATON_TEST_SEED=" + std::to_string(seed_));
}

std::unique_ptr<TransferEngine> Conformance::make_sender() {
  const std::string& name = GetParam().engine;
  if (name == "memory") return std::make_unique<MemoryEngine>(hub_);
  if (name == "faulty") {
    return std::make_unique<FaultyEngine>(std::make_unique<MemoryEngine>(hub_), FaultSettings{},
                                          [] { return Clock::now(); });
  }
  auto engine = make_engine(name, {});
  EXPECT_TRUE(engine) << engine.error().text;
  return std::move(*engine);
}

std::unique_ptr<Peer> Conformance::make_peer(std::size_t region_bytes, std::uint16_t port) {
  const Kind& kind = GetParam();
  if (kind.is_process) {
    return std::make_unique<ProcessPeer>(kind.engine, region_bytes, kind.is_shared, port);
  }
  return std::make_unique<InProcessPeer>(make_sender(), region_bytes, kind.is_shared);
}

std::vector<std::byte> Conformance::random_bytes(std::size_t length) {
  std::vector<std::byte> bytes(length);
  std::uint64_t state = random_();
  for (std::size_t i = 0; i < length; i += sizeof(std::uint64_t)) {
    // A short generator (splitmix64): the sanitizers make the long one slow.
    std::uint64_t word = state += 0x9E3779B97F4A7C15;
    word = (word ^ (word >> 30U)) * 0xBF58476D1CE4E5B9;
    word = (word ^ (word >> 27U)) * 0x94D049BB133111EB;
    std::memcpy(bytes.data() + i, &word, std::min(sizeof word, length - i));
  }
  return bytes;
}

void Model::apply(const std::vector<WriteRun>& batch) {
  for (const WriteRun& run : batch) {
    std::memcpy(expected_.data() + (run.target - base_), reinterpret_cast<const void*>(run.source),
                run.length_bytes);
  }
}

}  // namespace baton::engine::test
