// `baton generate`: one request to a prefill and a decode process that run somewhere.
#include <chrono>
#include <optional>
#include <utility>

#include "cli/options.hpp"
#include "cli/run_requests.hpp"
#include "cli/service.hpp"

namespace baton::cli {

int run_generate(const GenerateOptions& options) {
  constexpr const char* kCommand = "generate";
  const Result<refengine::Tokenizer> tokenizer =
      refengine::Tokenizer::load(options.model + "/merges.txt");
  if (!tokenizer) return fail(kCommand, tokenizer.error().text);
  const Result<StopSignals> signals = StopSignals::create();
  if (!signals) return fail(kCommand, signals.error().text);

  ServeRequest request;
  request.room.value = options.room.value_or(random_room(1));
  request.generate = {tokenizer->encode(options.prompt), options.tokens_count, options.sampling};
  request.bootstrap = options.bootstrap;
  std::optional<std::string> shown;
  if (!options.is_json) shown = options.prompt;
  const RunOptions run{
      {options.prefill, options.decode},
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.timeout_seconds)),
      shown};
  const Result<std::vector<HandOffOutcome>> outcomes =
      run_requests({request}, run, *signals, nullptr);
  if (!outcomes) return report_error(kCommand, outcomes.error());

  Report report = make_report({request}, *outcomes, options.prefill.host == options.decode.host);
  report.texts.push_back(text_of(*tokenizer, outcomes->front().tokens));
  if (options.compare) {
    const Result<refengine::Model> model = refengine::Model::load(options.model);
    if (!model) return fail(kCommand, model.error().text);
    const Result<Comparison> same = compare_with_one_process(*model, {request}, *outcomes);
    if (!same) return fail(kCommand, same.error().text);
    report.comparison = *same;
  }
  return print_report(report, options.is_json);
}

}  // namespace baton::cli
