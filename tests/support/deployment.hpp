// Deployment: bootstrap server, prefill rank and decode rank with real sockets, in one process.
#pragma once

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "baton/bootstrap.hpp"
#include "baton/engine.hpp"
#include "baton/manager.hpp"
#include "baton/shared_memory.hpp"

namespace baton::tests {

// Generous: the machine is shared and may stall for seconds.
inline constexpr Duration kPatience = std::chrono::seconds(30);

// True once `ready` holds; false after kPatience.
inline bool eventually(const std::function<bool()>& ready) {
  const Instant give_up = Clock::now() + kPatience;
  while (!ready()) {
    if (Clock::now() >= give_up) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

// A small KV pool with aux rows and one state component, in one shared allocation.
struct Pool {
  static constexpr std::uint32_t kLayers = 3, kPages = 64, kPageSize = 4, kAuxRows = 16,
                                 kStateSlots = 8;
  static constexpr std::uint64_t kPageBytes = 256, kAuxBytes = 72, kStateBytes = 320;

  explicit Pool(bool shareable = true) : memory(*SharedMemory::create(1 << 20)) {
    std::uint64_t next = reinterpret_cast<std::uint64_t>(memory.data());
    const auto take = [&](std::uint64_t items, std::uint64_t item_bytes) {
      const KvBuffer buffer{next, items * item_bytes, item_bytes};
      next += buffer.length_bytes;
      return buffer;
    };
    args.page_size = kPageSize;
    args.kv_cache_dtype = "bfloat16";
    for (std::uint32_t entry = 0; entry < 2 * kLayers; ++entry) {
      args.kv.push_back(take(kPages, kPageBytes));
    }
    args.aux = {take(kAuxRows, kAuxBytes), take(kAuxRows, 8)};
    args.state = {{StateKind::mamba, {take(kStateSlots, kStateBytes)}, {}, {}}};
    args.memory = {memory.region()};
    if (!shareable) args.memory[0].shared_fd = -1;
  }

  std::byte* at(const KvBuffer& buffer, std::uint64_t index) const {
    return reinterpret_cast<std::byte*>(buffer.address) + index * buffer.item_bytes;
  }
  bool page_equals(const Pool& other, PageIndex here, PageIndex there) const {
    for (std::size_t entry = 0; entry < args.kv.size(); ++entry) {
      if (std::memcmp(at(args.kv[entry], static_cast<std::uint64_t>(here)),
                      other.at(other.args.kv[entry], static_cast<std::uint64_t>(there)),
                      kPageBytes) != 0) {
        return false;
      }
    }
    return true;
  }
  void fill(unsigned seed) const {
    for (std::size_t index = 0; index < memory.size_bytes(); ++index) {
      seed = seed * 1664525u + 1013904223u;
      memory.data()[index] = static_cast<std::byte>(seed >> 24);
    }
  }

  SharedMemory memory;
  KvArgs args;
};

inline std::unique_ptr<TransferEngine> engine_or_die(const std::string& name) {
  return std::move(*make_engine(name, EngineOptions{}));
}

class Deployment {
 public:
  explicit Deployment(const std::string& engine, bool shareable = true)
      : engine_name(engine), prefill_pool(shareable), decode_pool(shareable) {
    server = std::move(*BootstrapServer::start("127.0.0.1", 0));
    prefill_pool.fill(1);
  }

  PrefillConfig prefill_config() const {
    PrefillConfig config;
    config.host = "127.0.0.1";
    config.kv = prefill_pool.args;
    config.bootstrap_address = server->address();
    return config;
  }
  DecodeConfig decode_config() const {
    DecodeConfig config;
    config.host = "127.0.0.1";
    config.kv = decode_pool.args;
    return config;
  }
  void start() {
    prefill = std::move(*PrefillManager::create(prefill_config(), engine_or_die(engine_name)));
    decode = std::move(*DecodeManager::create(decode_config(), engine_or_die(engine_name)));
  }
  KvReceiver receive(RoomId room) { return std::move(*decode->open(room, server->address())); }

  std::string engine_name;
  std::unique_ptr<BootstrapServer> server;
  Pool prefill_pool, decode_pool;
  std::unique_ptr<PrefillManager> prefill;
  std::unique_ptr<DecodeManager> decode;
};

}  // namespace baton::tests
