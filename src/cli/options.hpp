// What each sub-command was asked to do: plain values, filled by arguments.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/address.hpp"
#include "refengine/sampler.hpp"

namespace baton::cli {

// Exit statuses of the command.
constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;  // it was tried and did not work, or a comparison said no
constexpr int kExitUsage = 2;   // the command line cannot be carried out
constexpr int kExitInterrupted = 130;

struct BootstrapOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
};

// What prefill and decode have in common.
struct RankOptions {
  std::string host = "127.0.0.1";  // where peers reach this process
  std::uint16_t http_port = 0;
  std::string model;
  std::string transport = "local";
  std::size_t page_size = 16;
  std::size_t pages_count = 0;  // 0: kPoolTokens worth of pages
  std::size_t requests_max = 64;
  std::string kv_dtype = "bfloat16";
};

// The pool's size when --pages is not given.
constexpr std::size_t kPoolTokens = 4096;

struct PrefillOptions : RankOptions {
  std::string bootstrap;          // "host:port"
  std::size_t chunk_tokens = 64;  // 0: the whole prompt
  std::string tamper;             // empty: no
  double bootstrap_timeout_seconds = 300;
};

struct DecodeOptions : RankOptions {
  double waiting_timeout_seconds = 300;
};

// A request as a person words it.
struct RequestOptions {
  std::string prompt;
  std::size_t tokens_count = 64;
  refengine::SamplingParams sampling{0.8F, 40, 7};
};

struct GenerateOptions : RequestOptions {
  Endpoint prefill, decode;
  std::string bootstrap;
  std::optional<std::uint64_t> room;
  bool is_json = false;
  bool compare = false;
  std::string model;  // for compare
  double timeout_seconds = 300;
};

struct DemoOptions : RequestOptions {
  std::string model;
  std::string transport = "local";
  std::size_t page_size = 16;
  std::size_t pages_count = 0;
  std::size_t chunk_tokens = 16;
  std::size_t requests_count = 1;
  bool is_json = false;
  std::string tamper;
};

using Command =
    std::variant<BootstrapOptions, PrefillOptions, DecodeOptions, GenerateOptions, DemoOptions>;

int run_bootstrap(const BootstrapOptions& options);
int run_prefill(const PrefillOptions& options);
int run_decode(const DecodeOptions& options);
int run_generate(const GenerateOptions& options);
int run_demo(const DemoOptions& options);

}  // namespace baton::cli
