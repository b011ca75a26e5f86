// Peer: the receiving side of a test, in this process or in another one.
#pragma once

#include <sys/types.h>

#include <array>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "baton/engine.hpp"
#include "engine/pool.hpp"

namespace baton::engine::test {

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string descriptor() const = 0;
  virtual std::uint64_t base() const = 0;  // address of the pool's first byte
  virtual std::vector<std::byte> read(std::size_t offset, std::size_t length) = 0;
  virtual bool guards_are_intact() = 0;
  virtual std::string unregister(std::size_t index) = 0;  // "ok" or why not
  virtual std::string enregister(std::size_t index) = 0;
  // Of the peer process; 0 if it is this one.
  virtual pid_t pid() const { return 0; }
  virtual void kill_and_reap() {}
};

class InProcessPeer final : public Peer {
 public:
  InProcessPeer(std::unique_ptr<TransferEngine> engine, std::size_t region_bytes, bool is_shared);
  std::string descriptor() const override { return engine_->local_descriptor().value(); }
  std::uint64_t base() const override;
  std::vector<std::byte> read(std::size_t offset, std::size_t length) override;
  bool guards_are_intact() override { return pool_.guards_are_intact(); }
  std::string unregister(std::size_t index) override;
  std::string enregister(std::size_t index) override;

 private:
  mutable Pool pool_;
  std::unique_ptr<TransferEngine> engine_;
  std::array<RegionId, 2> regions_{};
};

class ProcessPeer final : public Peer {
 public:
  ProcessPeer(const std::string& engine, std::size_t region_bytes, bool is_shared,
              std::uint16_t port);
  ~ProcessPeer() override;
  std::string descriptor() const override { return descriptor_; }
  std::uint64_t base() const override { return base_; }
  std::vector<std::byte> read(std::size_t offset, std::size_t length) override;
  bool guards_are_intact() override { return ask("guards") == "intact"; }
  std::string unregister(std::size_t index) override;
  std::string enregister(std::size_t index) override;
  pid_t pid() const override { return pid_; }
  void kill_and_reap() override;

 private:
  std::string ask(const std::string& line);
  std::string read_line();
  pid_t pid_ = 0;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::string descriptor_;
  std::uint64_t base_ = 0;
};

}  // namespace baton::engine::test
