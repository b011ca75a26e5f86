// fork, exec, pipes and /proc for the end-to-end tests.
#include "e2e/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace baton::e2e {

namespace {

using SteadyClock = std::chrono::steady_clock;

std::string read_proc(pid_t pid, const char* file) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/" + file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

// The fourth field of /proc/PID/stat; the second may contain blanks and parentheses. Zombies do not
// count: they run no more.
pid_t parent_of(pid_t pid) {
  const std::string stat = read_proc(pid, "stat");
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos) return -1;
  std::istringstream rest(stat.substr(end + 1));
  std::string state;
  pid_t parent = -1;
  rest >> state >> parent;
  return state == "Z" ? -1 : parent;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> result;
  DIR* folder = opendir("/proc");
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid > 0 && parent_of(pid) == parent) result.push_back(pid);
  }
  if (folder != nullptr) closedir(folder);
  return result;
}

// Appends what can be read without waiting; closes the descriptor at the end of the stream.
void drain(int& descriptor, std::string& text) {
  char block[4096];
  while (descriptor >= 0) {
    const ssize_t count = read(descriptor, block, sizeof block);
    if (count < 0) return;
    if (count == 0) {
      close(descriptor);
      descriptor = -1;
      return;
    }
    text.append(block, static_cast<std::size_t>(count));
  }
}

}  // namespace

Process::Process(const Arguments& arguments, const Arguments& wrapper) {
  Arguments command = wrapper;
  command.emplace_back(BATON_BINARY);
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(err, O_CLOEXEC | O_NONBLOCK) != 0) {
    std::abort();
  }
  pid_ = fork();
  if (pid_ == 0) {
    // A test program that dies takes what it started with it.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    fcntl(STDOUT_FILENO, F_SETFL, 0);
    fcntl(STDERR_FILENO, F_SETFL, 0);
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  out_descriptor_ = out[0];
  err_descriptor_ = err[0];
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_descriptor_ >= 0) close(out_descriptor_);
  if (err_descriptor_ >= 0) close(err_descriptor_);
}

void Process::signal(int number) const { kill(pid_, number); }

void Process::read_more(std::chrono::milliseconds longest) {
  pollfd entries[2] = {{out_descriptor_, POLLIN, 0}, {err_descriptor_, POLLIN, 0}};
  poll(entries, 2, static_cast<int>(longest.count()));
  drain(out_descriptor_, out_);
  drain(err_descriptor_, err_);
}

bool Process::wait_for_output(const std::string& text) {
  const auto deadline = SteadyClock::now() + kHangLimit;
  while (out_.find(text) == std::string::npos) {
    if (out_descriptor_ < 0 || SteadyClock::now() >= deadline) return false;
    read_more(std::chrono::milliseconds(100));
  }
  return true;
}

std::string Process::ready_address() {
  constexpr const char* kReady = "ready ";
  if (!wait_for_output("\n")) return {};
  const std::size_t begin = out_.find(kReady);
  if (begin == std::string::npos) return {};
  const std::size_t address = begin + std::string(kReady).size();
  return out_.substr(address, out_.find('\n', address) - address);
}

int Process::wait() {
  const auto deadline = SteadyClock::now() + kHangLimit;
  while (pid_ > 0) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      break;
    }
    if (SteadyClock::now() >= deadline) return -1;
    // Without a descriptor to wait for, this is a short sleep.
    read_more(std::chrono::milliseconds(10));
  }
  drain(out_descriptor_, out_);
  drain(err_descriptor_, err_);
  return status_;
}

Output run(const Arguments& arguments) {
  Process process(arguments);
  const int status = process.wait();
  return {status, process.out(), process.err()};
}

pid_t find_child(pid_t parent, const std::string& command) {
  for (const pid_t child : children_of(parent)) {
    const std::string line = read_proc(child, "cmdline");  // words that end in NUL
    const std::size_t end = line.find('\0');
    if (end != std::string::npos &&
        line.compare(end + 1, command.size() + 1, command + '\0') == 0) {
      return child;
    }
  }
  return -1;
}

std::size_t count_children(pid_t parent) { return children_of(parent).size(); }

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

}  // namespace baton::e2e
