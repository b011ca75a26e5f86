// DecodeRuntime: threads and wiring of one decode rank.
#pragma once

#include <memory>
#include <mutex>

#include "baton/manager.hpp"
#include "bootstrap/client.hpp"
#include "core/decode_node.hpp"
#include "runtime/rank_runtime.hpp"

namespace baton::runtime {

class DecodeRuntime final : public RankRuntime<core::DecodeNode, core::DecodeEvent> {
 public:
  static Result<std::shared_ptr<DecodeRuntime>> create(DecodeConfig config,
                                                       std::unique_ptr<TransferEngine> engine);
  ~DecodeRuntime() override { shutdown(); }

  // Fails live rooms, tells prefill, fences the memory, joins the threads. Idempotent.
  void shutdown();

 private:
  using RankRuntime::RankRuntime;
  void carry_out(const Wake& wake) override;
  void start_requests();
  void start_request(const core::RequestTopology& request);
  void start_request(const core::RequestRoute& request);
  bool wait_until_quiet(Duration limit);

  // Guards `client_` against shutdown() while a request is being started.
  std::mutex client_mutex_;
  std::unique_ptr<bootstrap::BootstrapClient> client_;
};

}  // namespace baton::runtime
