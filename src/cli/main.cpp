// The `baton` command: one program, one file per sub-command.
#include <csignal>
#include <variant>

#include "base/overloaded.hpp"
#include "cli/arguments.hpp"
#include "cli/options.hpp"
#include "cli/signals.hpp"

int main(int count, char** values) {
  using namespace baton;
  const std::variant<cli::Command, int> parsed = cli::parse_arguments(count, values);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  // Before the first thread, so that every thread inherits it.
  cli::block_stop_signals();
  return std::visit(
      overloaded{
          [](const cli::BootstrapOptions& options) { return cli::run_bootstrap(options); },
          [](const cli::PrefillOptions& options) { return cli::run_prefill(options); },
          [](const cli::DecodeOptions& options) { return cli::run_decode(options); },
          [](const cli::GenerateOptions& options) { return cli::run_generate(options); },
          [](const cli::DemoOptions& options) { return cli::run_demo(options); },
      },
      std::get<cli::Command>(parsed));
}
