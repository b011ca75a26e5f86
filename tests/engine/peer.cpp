// Starting, asking and ending peers.
#include "engine/peer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

extern char** environ;

namespace baton::engine::test {

InProcessPeer::InProcessPeer(std::unique_ptr<TransferEngine> engine, std::size_t region_bytes,
                             bool is_shared)
    : pool_(region_bytes, is_shared), engine_(std::move(engine)) {
  for (std::size_t i = 0; i < 2; ++i) {
    regions_.at(i) = engine_->register_region(pool_.region(i)).value();
  }
}

std::uint64_t InProcessPeer::base() const {
  return reinterpret_cast<std::uint64_t>(pool_.bytes().data());
}

std::vector<std::byte> InProcessPeer::read(std::size_t offset, std::size_t length) {
  const auto part = pool_.bytes().subspan(offset, length);
  return {part.begin(), part.end()};
}

std::string InProcessPeer::unregister(std::size_t index) {
  const Result<void> done = engine_->unregister_region(regions_.at(index));
  return done ? "ok" : done.error().text;
}

std::string InProcessPeer::enregister(std::size_t index) {
  const Result<RegionId> id = engine_->register_region(pool_.region(index));
  if (id) regions_.at(index) = *id;
  return id ? "ok" : id.error().text;
}

// posix_spawn, not fork: this process has threads.
ProcessPeer::ProcessPeer(const std::string& engine, std::size_t region_bytes, bool is_shared,
                         std::uint16_t port) {
  std::array<int, 2> input{}, output{};
  if (::pipe2(input.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  if (::pipe2(output.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  std::array<std::string, 6> words = {"/proc/self/exe",
                                      "--peer",
                                      engine,
                                      is_shared ? "shared" : "private",
                                      std::to_string(port),
                                      std::to_string(region_bytes)};
  std::array<char*, 7> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments.at(i) = words.at(i).data();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input[0], 0);
  ::posix_spawn_file_actions_adddup2(&actions, output[1], 1);
  const int fault =
      ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(input[0]);
  ::close(output[1]);
  to_ = ::fdopen(input[1], "w");
  from_ = ::fdopen(output[0], "r");
  if (fault != 0) throw std::runtime_error("posix_spawn");
  const std::string line = read_line();
  const std::size_t space = line.find(' ');
  descriptor_ = line.substr(0, space);
  if (descriptor_ == "error") throw std::runtime_error(line);
  base_ = std::stoull(line.substr(space + 1));
}

ProcessPeer::~ProcessPeer() {
  kill_and_reap();
  std::fclose(to_);
  std::fclose(from_);
}

void ProcessPeer::kill_and_reap() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

std::string ProcessPeer::read_line() {
  std::string line;
  for (int c = std::fgetc(from_); c != '\n' && c != EOF; c = std::fgetc(from_)) {
    line += static_cast<char>(c);
  }
  return line;
}

std::string ProcessPeer::ask(const std::string& line) {
  std::fprintf(to_, "%s\n", line.c_str());
  std::fflush(to_);
  return read_line();
}

std::vector<std::byte> ProcessPeer::read(std::size_t offset, std::size_t length) {
  std::fprintf(to_, "read %zu %zu\n", offset, length);
  std::fflush(to_);
  std::vector<std::byte> bytes(length);
  EXPECT_EQ(std::fread(bytes.data(), 1, length, from_), length);
  return bytes;
}

std::string ProcessPeer::unregister(std::size_t index) {
  return ask("unregister " + std::to_string(index));
}

std::string ProcessPeer::enregister(std::size_t index) {
  return ask("register " + std::to_string(index));
}

}  // namespace baton::engine::test
