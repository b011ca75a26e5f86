// Logging: five levels, one line per event, a rate limit per key. spdlog stays in log.cpp.
//
// A line is `event key value key value`: lower case, no `=`, so that a double click selects a
// value. Texts from outside are quoted in the format: BATON_LOG(warn, "peer_lost peer \"{}\"",
// name).
//
// Levels by volume: error (cannot go on as usual), warn (unexpected, goes on), info (per process or
// peer), debug (per room), trace (per message).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

namespace baton::obs {

enum class LogLevel : std::uint8_t { off, error, warn, info, debug, trace };

std::string_view to_string(LogLevel level);
std::optional<LogLevel> parse_log_level(std::string_view text);  // what to_string() gives

// The log is the one process-wide thing in Baton: it belongs to whoever owns main().
struct LogConfig {
  LogLevel level = LogLevel::warn;
  // Gets every finished line, from any thread, one at a time. Empty: lines go to stderr.
  std::function<void(LogLevel level, std::string_view line)> sink;
};

// May be called at any time, from any thread; before the first call LogConfig{} is in force.
void configure_log(LogConfig config);
bool log_enabled(LogLevel level);

// One value of a line. Texts are escaped (control characters, quotes), so a peer cannot forge
// lines.
class LogValue {
 public:
  LogValue(bool value) : value_(value) {}
  template <std::signed_integral Integer>
  LogValue(Integer value) : value_(static_cast<std::int64_t>(value)) {}
  template <std::unsigned_integral Integer>
  requires(!std::same_as<Integer, bool>) LogValue(Integer value)
      : value_(static_cast<std::uint64_t>(value)) {}
  LogValue(double value) : value_(value) {}
  template <class Text>
  requires std::convertible_to<const Text&, std::string_view> LogValue(const Text& text)
      : value_(std::string_view(text)) {}

  using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view>;
  const Value& value() const { return value_; }

 private:
  Value value_;
};

// Not constexpr and not defined: a call of it in a constant expression stops the compiler.
void wrong_number_of_values();

// A format whose `{}` count is checked when the program is compiled.
template <std::size_t values_count>
struct LogFormat {
  template <std::size_t length>
  consteval LogFormat(const char (&format)[length]) : text(format, length - 1) {
    std::size_t places = 0;
    for (std::size_t i = 0; i + 1 < text.size(); ++i)
      places += text[i] == '{' && text[i + 1] == '}';
    if (places != values_count) wrong_number_of_values();
  }
  std::string_view text;
};

void write_log(LogLevel level, std::string_view format, std::span<const LogValue> values);
// At most one line per key and minute; the next one ends in `suppressed N` if N were left out.
void write_log_limited(LogLevel level, std::string_view key, std::string_view format,
                       std::span<const LogValue> values);

template <class... Values>
void log(LogLevel level, std::type_identity_t<LogFormat<sizeof...(Values)>> format,
         const Values&... values) {
  const LogValue list[] = {LogValue(values)..., LogValue(false)};  // no empty arrays in C++
  write_log(level, format.text, std::span(list).first(sizeof...(Values)));
}

template <class... Values>
void log_limited(LogLevel level, std::string_view key,
                 std::type_identity_t<LogFormat<sizeof...(Values)>> format,
                 const Values&... values) {
  const LogValue list[] = {LogValue(values)..., LogValue(false)};
  write_log_limited(level, key, format.text, std::span(list).first(sizeof...(Values)));
}

}  // namespace baton::obs

// Macros, so that a line that is switched off does not compute its values.
#define BATON_LOG(level, ...)                                        \
  do {                                                               \
    if (::baton::obs::log_enabled(::baton::obs::LogLevel::level)) {  \
      ::baton::obs::log(::baton::obs::LogLevel::level, __VA_ARGS__); \
    }                                                                \
  } while (false)
#define BATON_LOG_LIMITED(level, key, ...)                                        \
  do {                                                                            \
    if (::baton::obs::log_enabled(::baton::obs::LogLevel::level)) {               \
      ::baton::obs::log_limited(::baton::obs::LogLevel::level, key, __VA_ARGS__); \
    }                                                                             \
  } while (false)
