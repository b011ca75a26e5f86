// Children: processes that this one starts and that never outlive it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "baton/result.hpp"
#include "baton/types.hpp"
#include "cli/signals.hpp"

namespace baton::cli {

// Each child runs this same program with other arguments, in a process group of its own (Ctrl-C in
// a terminal reaches only us, and we end the children in order). If we are killed, the kernel kills
// them. One thread only: the kernel counts the death of the thread that forked as ours.
class Children {
 public:
  Children() = default;
  ~Children();  // stop()
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // Starts `baton ARGUMENTS...` and waits for its line "ready HOST:PORT"; answers HOST:PORT.
  // closed: a stop signal came. Other errors: the child ended, or said nothing in time; what it had
  // to say is on stderr.
  Result<std::string> start(const std::string& name, const std::vector<std::string>& arguments,
                            const StopSignals& signals);

  // To call when SIGCHLD came: an error that tells which child ended and how, if one did.
  Result<void> check();

  // SIGTERM to all, SIGKILL to those that are still there after a while; waits for every one.
  void stop();

 private:
  struct Child {
    std::string name;
    pid_t pid = -1;
    int output = -1;  // the child's stdout
  };

  Result<void> spawn(const std::string& name, const std::vector<std::string>& arguments);
  Result<std::string> read_ready_line(const Child& child, const StopSignals& signals);

  std::vector<Child> children_;
};

}  // namespace baton::cli
