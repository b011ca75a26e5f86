// MemoryEngine: copies between engines of one process that share a hub.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "baton/engine.hpp"
#include "engine/peer_directory.hpp"
#include "engine/regions.hpp"

namespace baton::engine {

// Where the engines of one process find each other. Shared by all of them; thread-safe.
class MemoryHub {
 public:
  std::uint64_t join(std::shared_ptr<RegionTable> table);
  void leave(std::uint64_t number);
  // Null when that engine is gone.
  std::shared_ptr<RegionTable> find(std::uint64_t number) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<RegionTable>> tables_;
  std::uint64_t next_ = 1;
};

// For tests, simulation and single-process use. Descriptor: "memory:<number>".
class MemoryEngine final : public TransferEngine {
 public:
  explicit MemoryEngine(std::shared_ptr<MemoryHub> hub);
  ~MemoryEngine() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  Result<RegionId> register_region(const Region& region) override;
  Result<void> unregister_region(RegionId region) override;
  Result<std::string> local_descriptor() const override;
  Result<EnginePeer> connect(std::string_view descriptor) override;
  void disconnect(EnginePeer peer) override;
  Result<Admission> submit(Ticket ticket, EnginePeer peer, WriteBatch batch) override;
  void cancel(Ticket ticket) override;
  std::size_t progress(std::vector<Completion>& out) override;
  int event_descriptor() const override { return -1; }

 private:
  struct Open {
    Ticket ticket;
    EnginePeer peer;
    WriteBatch batch;
    bool is_cancelled = false;
  };
  void read_news();
  Completion finish(const Open& open);

  std::shared_ptr<MemoryHub> hub_;
  std::shared_ptr<RegionTable> regions_;
  std::uint64_t number_ = 0;
  Capabilities capabilities_;
  PeerDirectory directory_;
  std::unordered_map<EnginePeer, std::uint64_t> peers_;  // worker thread
  std::deque<Open> open_;                                // worker thread
};

}  // namespace baton::engine
