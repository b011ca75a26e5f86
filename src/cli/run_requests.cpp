// Sends requests and waits for them, for signals, and for children that end.
#include "cli/run_requests.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <random>
#include <string_view>

#include "cli/service.hpp"

namespace baton::cli {

namespace {

// Every event raises a descriptor; this only bounds the damage of one that is lost.
constexpr Duration kSleepLongest = std::chrono::seconds(1);
// How long the death of a process may take to be reported after its connections broke.
constexpr Duration kDeathNewsDelay = std::chrono::milliseconds(200);

void show(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// The prompt comes with the first piece of text: before an error message it would be noise.
std::function<void(std::string_view)> text_printer(const std::optional<std::string>& prompt) {
  if (!prompt) return {};
  return [prompt = *prompt, is_first = true](std::string_view piece) mutable {
    if (is_first) show(prompt);
    is_first = false;
    show(piece);
  };
}

}  // namespace

std::uint64_t random_room(std::size_t count) {
  std::random_device device;
  const std::uint64_t number = static_cast<std::uint64_t>(device()) << 32U | device();
  return 1 + number % ((std::uint64_t{1} << 62U) - count);
}

Result<std::vector<HandOffOutcome>> run_requests(const std::vector<ServeRequest>& requests,
                                                 const RunOptions& options,
                                                 const StopSignals& signals, Children* children) {
  HandOffs hand_offs(options.deployment, requests.size(), options.timeout);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    hand_offs.start(requests[i], text_printer(i == 0 ? options.shown_prompt : std::nullopt));
  }
  for (;;) {
    hand_offs.wakeup().clear();
    while (const std::optional<int> signal = signals.take()) {
      if (*signal != SIGCHLD) return interrupted();
    }
    const std::optional<Error> error = hand_offs.error();
    if (children != nullptr) {
      // That a process died says more than that a connection broke, but may be known later.
      if (error) sleep_on(signals.descriptor(), signals.descriptor(), kDeathNewsDelay);
      if (Result<void> alive = children->check(); !alive) return alive.error();
    }
    if (error) return *error;
    if (hand_offs.is_done()) return hand_offs.take_outcomes();
    sleep_on(hand_offs.wakeup().descriptor(), signals.descriptor(), kSleepLongest);
  }
}

int print_report(const Report& report, bool is_json) {
  if (!is_json) show("\n\n");
  show(is_json ? json(report) : table(report));
  return report.comparison && !report.comparison->all() ? kExitFailed : kExitOk;
}

int report_error(const char* command, const Error& error) {
  if (is_interrupted(error)) return kExitInterrupted;
  return fail(command, error.text);
}

std::string text_of(const refengine::Tokenizer& tokenizer,
                    const std::vector<std::int32_t>& tokens) {
  refengine::Utf8Stream stream;
  std::string text;
  for (const std::int32_t token : tokens) text += stream.push(tokenizer.bytes(token));
  return text + stream.finish();
}

}  // namespace baton::cli
