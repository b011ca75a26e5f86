// The log on top of spdlog: one logger for the process, replaced as a whole by configure_log().
#include "obs/log.hpp"

#include <fmt/args.h>
#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "obs/rate_limit.hpp"

namespace baton::obs {

namespace {

constexpr std::array<std::string_view, 6> kLevelNames = {"off",  "error", "warn",
                                                         "info", "debug", "trace"};
// Time (UTC), level, thread, message.
constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%eZ %l %t %v";
constexpr Duration kLimitInterval = std::chrono::minutes(1);
constexpr std::size_t kLimitKeysMax = 1024;

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::off: return spdlog::level::off;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::trace: return spdlog::level::trace;
  }
  return spdlog::level::off;
}

LogLevel baton_level(spdlog::level::level_enum level) {
  for (const LogLevel candidate :
       {LogLevel::error, LogLevel::warn, LogLevel::info, LogLevel::debug, LogLevel::trace}) {
    if (spdlog_level(candidate) == level) return candidate;
  }
  return LogLevel::error;
}

// Hands finished lines to the user's function.
class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(std::function<void(LogLevel, std::string_view)> function)
      : function_(std::move(function)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    function_(baton_level(message.level),
              std::string_view(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}

  std::function<void(LogLevel, std::string_view)> function_;
};

std::shared_ptr<spdlog::logger> make_logger(LogConfig config) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (config.sink) {
    sink = std::make_shared<FunctionSink>(std::move(config.sink));
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
  sink->set_formatter(
      std::make_unique<spdlog::pattern_formatter>(kPattern, spdlog::pattern_time_type::utc));
  auto logger = std::make_shared<spdlog::logger>("baton", std::move(sink));
  logger->set_level(spdlog::level::trace);  // the level is judged before values are computed
  return logger;
}

// Never destroyed: threads may log while the process ends.
struct State {
  std::atomic<LogLevel> level{LogConfig{}.level};
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> logger = make_logger({});
  RateLimit limit{kLimitInterval, kLimitKeysMax};
};

State& state() {
  static State* const instance = new State;
  return *instance;
}

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      result += '\\';
      result += character;
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += character;
    }
  }
  return result;
}

std::string formatted(std::string_view format, std::span<const LogValue> values) {
  fmt::dynamic_format_arg_store<fmt::format_context> arguments;
  for (const LogValue& value : values) {
    std::visit(
        [&](const auto& plain) {
          if constexpr (std::is_same_v<std::decay_t<decltype(plain)>, std::string_view>) {
            arguments.push_back(escaped(plain));
          } else {
            arguments.push_back(plain);
          }
        },
        value.value());
  }
  return fmt::vformat(fmt::string_view(format.data(), format.size()), arguments);
}

void emit(LogLevel level, const std::string& line) {
  std::shared_ptr<spdlog::logger> logger;
  {
    const std::lock_guard lock(state().mutex);
    logger = state().logger;
  }
  logger->log(spdlog_level(level), spdlog::string_view_t(line));
}

}  // namespace

std::string_view to_string(LogLevel level) {
  return kLevelNames.at(static_cast<std::size_t>(level));
}

std::optional<LogLevel> parse_log_level(std::string_view text) {
  for (std::size_t index = 0; index < kLevelNames.size(); ++index) {
    if (kLevelNames[index] == text) return static_cast<LogLevel>(index);
  }
  return std::nullopt;
}

void configure_log(LogConfig config) {
  const LogLevel level = config.level;
  std::shared_ptr<spdlog::logger> logger = make_logger(std::move(config));
  const std::lock_guard lock(state().mutex);
  state().logger = std::move(logger);
  state().level.store(level, std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) { return level <= state().level.load(std::memory_order_relaxed); }

void write_log(LogLevel level, std::string_view format, std::span<const LogValue> values) {
  emit(level, formatted(format, values));
}

void write_log_limited(LogLevel level, std::string_view key, std::string_view format,
                       std::span<const LogValue> values) {
  const std::optional<std::uint64_t> suppressed = state().limit.admit(key, Clock::now());
  if (!suppressed) return;
  std::string line = formatted(format, values);
  if (*suppressed > 0) line += fmt::format(" suppressed {}", *suppressed);
  emit(level, line);
}

}  // namespace baton::obs
