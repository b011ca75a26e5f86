// What `generate` and `demo` share: sending requests, showing the text, and the final report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "baton/result.hpp"
#include "cli/children.hpp"
#include "cli/hand_off.hpp"
#include "cli/options.hpp"
#include "cli/report.hpp"
#include "cli/signals.hpp"
#include "refengine/tokenizer.hpp"

namespace baton::cli {

// A room number that no other client is likely to choose, with room for `count` successors.
std::uint64_t random_room(std::size_t count);

struct RunOptions {
  Deployment deployment;
  Duration timeout{};
  // Print this and then the text of the first request, as it is generated; nullopt: print nothing.
  std::optional<std::string> shown_prompt;
};

// Blocks until every request ended, one failed, a stop signal came (Errc::closed) or one of
// `children` (may be null) ended.
Result<std::vector<HandOffOutcome>> run_requests(const std::vector<ServeRequest>& requests,
                                                 const RunOptions& options,
                                                 const StopSignals& signals, Children* children);

// Prints the report and answers the exit status.
int print_report(const Report& report, bool is_json);

// The exit status for an error that ended a run; prints it unless the user asked for the end.
int report_error(const char* command, const Error& error);

std::string text_of(const refengine::Tokenizer& tokenizer, const std::vector<std::int32_t>& tokens);

}  // namespace baton::cli
