// PrefillRuntime: threads and wiring of one prefill rank.
#pragma once

#include <memory>

#include "baton/manager.hpp"
#include "core/prefill_node.hpp"
#include "runtime/rank_runtime.hpp"
#include "runtime/transfer_queue.hpp"

namespace baton::runtime {

class PrefillRuntime final : public RankRuntime<core::PrefillNode, core::PrefillEvent> {
 public:
  static Result<std::shared_ptr<PrefillRuntime>> create(PrefillConfig config,
                                                        std::unique_ptr<TransferEngine> engine);
  ~PrefillRuntime() override { shutdown(); }

  // Fails live rooms, lets writes in flight settle, joins the threads. Idempotent.
  void shutdown();

 private:
  using RankRuntime::RankRuntime;
  void carry_out(const Wake& wake) override;
  void start();

  std::unique_ptr<TransferQueue> transfers_;
};

}  // namespace baton::runtime
