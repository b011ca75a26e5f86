// fork, exec, wait: children that end with their parent.
#include "cli/children.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

namespace baton::cli {

namespace {

// Registering with a bootstrap server that does not answer takes 15 s before the child gives up.
constexpr Duration kReadyTimeout = std::chrono::seconds(30);
constexpr Duration kStopTimeout = std::chrono::seconds(5);
constexpr Duration kStopPoll = std::chrono::milliseconds(5);
constexpr std::string_view kReady = "ready ";

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) {
    return std::string("was killed by signal ") + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  }
  return "ended with exit status " + std::to_string(WEXITSTATUS(status));
}

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(char* const* arguments, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above; then nobody would ever end us.
  if (getppid() != parent) _exit(1);
  setpgid(0, 0);
  dup2(output, STDOUT_FILENO);
  restore_default_signals();
  execv("/proc/self/exe", arguments);
  _exit(127);
}

}  // namespace

Children::~Children() { stop(); }

Result<std::string> Children::start(const std::string& name,
                                    const std::vector<std::string>& arguments,
                                    const StopSignals& signals) {
  if (Result<void> spawned = spawn(name, arguments); !spawned) return spawned.error();
  return read_ready_line(children_.back(), signals);
}

Result<void> Children::spawn(const std::string& name, const std::vector<std::string>& arguments) {
  std::vector<std::string> owned{"baton"};
  owned.insert(owned.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& argument : owned) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return Error{Errc::io, std::string("pipe2: ") + std::strerror(errno)};
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(pointers.data(), ends[1], parent);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return Error{Errc::io, "cannot start " + name + ": fork: " + std::strerror(errno)};
  }
  children_.push_back({name, pid, ends[0]});
  return {};
}

Result<std::string> Children::read_ready_line(const Child& child, const StopSignals& signals) {
  const Instant deadline = Clock::now() + kReadyTimeout;
  std::string line;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      return Error{Errc::timeout, "the " + child.name + " process did not become ready in time"};
    }
    pollfd entries[2] = {{child.output, POLLIN, 0}, {signals.descriptor(), POLLIN, 0}};
    poll(entries, 2, static_cast<int>(left.count()));
    const std::optional<int> signal = signals.take();
    if (signal == SIGINT || signal == SIGTERM) return interrupted();
    if ((entries[0].revents & (POLLIN | POLLHUP)) == 0) continue;
    char block[256];
    const ssize_t count = read(child.output, block, sizeof block);
    if (count <= 0) {
      // Its output is closed, so it is about to end; how it ended is what check() tells.
      siginfo_t info{};
      waitid(P_PID, static_cast<id_t>(child.pid), &info, WNOWAIT | WEXITED);
      if (Result<void> alive = check(); !alive) return alive.error();
      return Error{Errc::closed, "the " + child.name + " process closed its output"};
    }
    line.append(block, static_cast<std::size_t>(count));
    const std::size_t end = line.find('\n');
    if (end == std::string::npos) continue;
    if (line.compare(0, kReady.size(), kReady) == 0) {
      return line.substr(kReady.size(), end - kReady.size());
    }
    return Error{Errc::malformed, "the " + child.name + " process said: " + line.substr(0, end)};
  }
}

Result<void> Children::check() {
  for (Child& child : children_) {
    int status = 0;
    if (child.pid <= 0 || waitpid(child.pid, &status, WNOHANG) != child.pid) continue;
    const std::string number = std::to_string(child.pid);
    child.pid = -1;
    return Error{Errc::closed, "the " + child.name + " process (pid " + number + ") " +
                                   describe_end(status) + " before the work was done"};
  }
  return {};
}

// In reverse order, so that nobody registers with a server that is already gone.
void Children::stop() {
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    if (child->pid > 0) kill(child->pid, SIGTERM);
  }
  const Instant deadline = Clock::now() + kStopTimeout;
  for (Child& child : children_) {
    while (child.pid > 0 && waitpid(child.pid, nullptr, WNOHANG) == 0) {
      if (Clock::now() >= deadline) {
        kill(child.pid, SIGKILL);
        waitpid(child.pid, nullptr, 0);
        break;
      }
      std::this_thread::sleep_for(kStopPoll);
    }
    if (child.output >= 0) close(child.output);
  }
  children_.clear();
}

}  // namespace baton::cli
