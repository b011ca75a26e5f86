// TcpEngine: "mooncake_tcp", our implementation of the protocol that Mooncake speaks over TCP.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "baton/engine.hpp"
#include "engine/peer_directory.hpp"
#include "engine/tcp_peer.hpp"
#include "engine/tcp_server.hpp"
#include "engine/waker.hpp"

namespace baton::engine {

// Descriptor (and Mooncake session id): "host:rpc_port". Receiving runs on the server's thread,
// sending inside progress().
class TcpEngine final : public TransferEngine {
 public:
  static Result<std::unique_ptr<TransferEngine>> create(const EngineOptions& options);

  const Capabilities& capabilities() const override { return capabilities_; }
  Result<RegionId> register_region(const Region& region) override;
  Result<void> unregister_region(RegionId region) override;
  Result<std::string> local_descriptor() const override { return server_->name(); }
  Result<EnginePeer> connect(std::string_view descriptor) override;
  void disconnect(EnginePeer peer) override;
  Result<Admission> submit(Ticket ticket, EnginePeer peer, WriteBatch batch) override;
  void cancel(Ticket ticket) override;
  std::size_t progress(std::vector<Completion>& out) override;
  int event_descriptor() const override { return waker_.epoll_descriptor(); }

 private:
  TcpEngine(std::unique_ptr<tcp::TcpServer> server, Waker waker, std::uint32_t lanes_count);
  void read_news();
  void read_events();
  void take_turns(std::vector<Completion>& out);
  void sleep_or_not();

  Capabilities capabilities_;
  std::uint32_t lanes_count_;
  std::unique_ptr<tcp::TcpServer> server_;
  PeerDirectory directory_;
  // Everything below belongs to the worker thread.
  Waker waker_;
  std::unordered_map<EnginePeer, std::unique_ptr<tcp::TcpPeer>> peers_;
  std::vector<Completion> waiting_;  // made before the next progress()
  std::size_t open_count_ = 0;
};

}  // namespace baton::engine
