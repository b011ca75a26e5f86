// Runs the real command as processes, and finds those that were left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace baton::e2e {

using Arguments = std::vector<std::string>;

// Long enough for a slow machine under sanitizers; a test that gets here has hung.
constexpr std::chrono::seconds kHangLimit{120};

// A running `baton ARGUMENTS...`; killed when it goes out of scope.
class Process {
 public:
  // `wrapper` comes before the program ("ip netns exec NAME").
  explicit Process(const Arguments& arguments, const Arguments& wrapper = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;

  // Reads stdout until it contains `text`; false at the end of the stream or of kHangLimit.
  bool wait_for_output(const std::string& text);
  // Waits for the line "ready HOST:PORT"; empty if the process ended instead.
  std::string ready_address();

  // Waits for the end. The exit status, 128 + the signal that killed it, or -1 if it hung.
  int wait();
  // What was read so far; all of it after wait().
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

 private:
  void read_more(std::chrono::milliseconds longest);

  pid_t pid_ = -1;
  int out_descriptor_ = -1, err_descriptor_ = -1;
  int status_ = -1;
  std::string out_, err_;
};

struct Output {
  int status = -1;
  std::string out, err;
};

// Runs to the end.
Output run(const Arguments& arguments);

// Children of `parent` (grandchildren are not looked for): their pids, by the sub-command they run.
pid_t find_child(pid_t parent, const std::string& command);
std::size_t count_children(pid_t parent);

// From now on, processes that lose their parent become children of this one, so that
// count_children(getpid()) finds orphans.
void adopt_orphans();

}  // namespace baton::e2e
