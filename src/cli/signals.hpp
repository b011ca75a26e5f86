// StopSignals: SIGINT, SIGTERM and the end of children as a file descriptor to wait on.
#pragma once

#include <cstdint>
#include <optional>
#include <thread>

#include "baton/result.hpp"
#include "cli/wakeup.hpp"

namespace baton::cli {

// Blocks SIGINT, SIGTERM and SIGCHLD in this thread and those that it starts later, and ignores
// SIGPIPE: a reader that went away shows as a failed write.
void block_stop_signals();
// In a child, between fork and exec: signals act as usual again. Async-signal-safe.
void restore_default_signals();

// What a wait that SIGINT or SIGTERM ended answers.
Error interrupted();
bool is_interrupted(const Error& error);

class StopSignals {
 public:
  // Needs block_stop_signals() first.
  static Result<StopSignals> create();
  StopSignals(StopSignals&& other) noexcept;
  StopSignals& operator=(StopSignals&& other) noexcept;
  ~StopSignals();

  int descriptor() const { return descriptor_; }
  // The number of a signal that came, nullopt if none did. Does not block.
  std::optional<int> take() const;
  // Blocks until SIGINT or SIGTERM.
  void wait_for_stop() const;

 private:
  explicit StopSignals(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

// While it lives, SIGINT and SIGTERM end the process at once: for the time in which a process
// starts up, which may block for many seconds and leaves nothing to clean up.
class ExitOnStop {
 public:
  explicit ExitOnStop(const StopSignals& signals);
  ~ExitOnStop();
  ExitOnStop(const ExitOnStop&) = delete;
  ExitOnStop& operator=(const ExitOnStop&) = delete;

 private:
  Wakeup over_;
  std::thread thread_;
};

}  // namespace baton::cli
