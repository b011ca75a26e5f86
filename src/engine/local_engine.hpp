// LocalEngine: writes into processes on the same host by shared memory or process_vm_writev.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "baton/engine.hpp"
#include "engine/local_peer.hpp"
#include "engine/local_service.hpp"
#include "engine/peer_directory.hpp"
#include "engine/waker.hpp"

namespace baton::engine {

// Descriptor: "local-<nonce>:<pid>". Regions with a sealed memfd (SharedMemory) are mapped by the
// peer and written with plain copies; others need permission to ptrace the peer.
class LocalEngine final : public TransferEngine {
 public:
  static Result<std::unique_ptr<TransferEngine>> create();

  const Capabilities& capabilities() const override { return capabilities_; }
  Result<RegionId> register_region(const Region& region) override;
  Result<void> unregister_region(RegionId region) override;
  Result<std::string> local_descriptor() const override { return descriptor_.text; }
  Result<EnginePeer> connect(std::string_view descriptor) override;
  void disconnect(EnginePeer peer) override;
  Result<Admission> submit(Ticket ticket, EnginePeer peer, WriteBatch batch) override;
  void cancel(Ticket ticket) override;
  std::size_t progress(std::vector<Completion>& out) override;
  int event_descriptor() const override { return waker_.epoll_descriptor(); }

 private:
  LocalEngine(LocalDescriptor descriptor, std::unique_ptr<LocalService> service, Waker waker);
  void read_news();
  void refresh_peers();
  void copy_until_budget(std::vector<Completion>& out);
  void sleep_or_not();

  LocalDescriptor descriptor_;
  Capabilities capabilities_;
  std::unique_ptr<LocalService> service_;
  PeerDirectory directory_;
  // Everything below belongs to the worker thread.
  Waker waker_;
  std::unordered_map<EnginePeer, std::unique_ptr<LocalPeer>> peers_;
  std::vector<Completion> waiting_;  // ready before the next progress()
  std::size_t open_count_ = 0;
};

}  // namespace baton::engine
