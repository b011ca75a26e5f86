// TcpServer: the receiving half of mooncake_tcp: RPC port, data port, and the thread that serves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/address.hpp"
#include "engine/regions.hpp"
#include "engine/tcp_data_session.hpp"
#include "engine/tcp_rpc_session.hpp"

namespace baton::engine::tcp {

// Peers write into the regions of its table, whether or not anybody calls progress().
class TcpServer {
 public:
  // Port 0: any. The data port is always chosen by the kernel.
  static Result<std::unique_ptr<TcpServer>> start(const Endpoint& rpc);
  ~TcpServer();

  // "host:rpc_port"
  const std::string& name() const { return name_; }
  // Tells this server from an earlier one at the same port.
  const std::string& identity() const { return identity_; }
  std::uint16_t data_port() const { return data_port_; }
  RegionTable& regions() { return regions_; }

 private:
  TcpServer() = default;
  Result<void> listen(const Endpoint& rpc);
  void serve();
  void on_event(std::uint64_t key);
  bool accept_data();
  void accept_rpc();
  void sweep();
  template <class Session>
  struct Watched {
    std::unique_ptr<Session> session;
    std::uint32_t interest = 0;
  };
  template <class Session>
  void update(std::uint64_t key, Watched<Session>& watched);
  std::optional<std::string> answer(std::uint8_t type, std::string_view json,
                                    const std::string& client);
  std::optional<std::string> fence(std::string_view json, const std::string& client);

  std::string name_, identity_;
  std::uint16_t data_port_ = 0;
  RegionTable regions_;
  Fd rpc_listener_, data_listener_, epoll_, stop_;
  // The serving thread's own.
  std::map<std::uint64_t, Watched<DataSession>> data_;
  std::map<std::uint64_t, Watched<RpcSession>> rpc_;
  std::uint64_t next_key_ = 16;
  RpcHandler handler_;
  std::thread thread_;
};

}  // namespace baton::engine::tcp
