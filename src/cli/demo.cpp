// `baton demo`: bootstrap server, prefill and decode as processes of this host, and the comparison.
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "cli/children.hpp"
#include "cli/options.hpp"
#include "cli/run_requests.hpp"
#include "cli/service.hpp"

namespace baton::cli {

namespace {

constexpr const char* kCommand = "demo";
constexpr Duration kTimeout = std::chrono::seconds(120);

// Requests after the first: different texts of different lengths, so that a mix-up between
// requests cannot go unseen.
constexpr std::array<const char*, 6> kMorePrompts = {
    "Emma could not help",
    "The family of Dashwood had long been settled in Sussex. Their estate was large, and",
    "She was",
    "\"My dear Mr. Bennet,\" said his lady to him one day, \"have you heard that",
    "No one who had ever seen Catherine Morland in her infancy would have supposed her born to be "
    "an heroine. Her situation in life, the character of her father and mother, her own person "
    "and disposition, were all equally against her.",
    "Sir Walter Elliot, of Kellynch Hall, in Somersetshire, was a man who, for his own amusement, "
    "never took up any book but"};

std::vector<ServeRequest> make_requests(const DemoOptions& options,
                                        const refengine::Tokenizer& tokenizer) {
  const std::uint64_t first_room = random_room(options.requests_count);
  std::vector<ServeRequest> requests;
  for (std::size_t i = 0; i < options.requests_count; ++i) {
    ServeRequest& request = requests.emplace_back();
    const std::string prompt = i == 0 ? options.prompt : kMorePrompts[i % kMorePrompts.size()];
    request.room.value = first_room + i;
    request.generate = {tokenizer.encode(prompt), options.tokens_count, options.sampling};
    request.generate.sampling.seed += i;
  }
  return requests;
}

std::vector<std::string> rank_arguments(const char* command, const DemoOptions& options) {
  return {command,
          "--model",
          options.model,
          "--transport",
          options.transport,
          "--page-size",
          std::to_string(options.page_size),
          "--pages",
          std::to_string(options.pages_count)};
}

// Starts the three processes and fills in where they are.
Result<Deployment> start_processes(const DemoOptions& options, const StopSignals& signals,
                                   Children& children, std::string& bootstrap) {
  Result<std::string> server = children.start("bootstrap", {"bootstrap"}, signals);
  if (!server) return server.error();
  bootstrap = *server;
  std::vector<std::string> arguments = rank_arguments("prefill", options);
  arguments.insert(arguments.end(),
                   {"--bootstrap", bootstrap, "--chunk", std::to_string(options.chunk_tokens)});
  if (!options.tamper.empty()) arguments.insert(arguments.end(), {"--tamper", options.tamper});
  const Result<std::string> prefill = children.start("prefill", arguments, signals);
  if (!prefill) return prefill.error();
  const Result<std::string> decode =
      children.start("decode", rank_arguments("decode", options), signals);
  if (!decode) return decode.error();
  Result<Endpoint> prefill_endpoint = parse_endpoint(*prefill);
  if (!prefill_endpoint) return prefill_endpoint.error();
  Result<Endpoint> decode_endpoint = parse_endpoint(*decode);
  if (!decode_endpoint) return decode_endpoint.error();
  return Deployment{*prefill_endpoint, *decode_endpoint};
}

Result<void> check_requests(const refengine::Model& model,
                            const std::vector<ServeRequest>& requests) {
  for (const ServeRequest& request : requests) {
    Result<void> fits = refengine::check_fits(model.config(), request.generate);
    if (!fits) return fits;
  }
  return {};
}

}  // namespace

int run_demo(const DemoOptions& options) {
  const Result<refengine::Model> model = refengine::Model::load(options.model);
  if (!model) return fail(kCommand, model.error().text);
  const Result<refengine::Tokenizer> tokenizer =
      refengine::Tokenizer::load(options.model + "/merges.txt");
  if (!tokenizer) return fail(kCommand, tokenizer.error().text);
  std::vector<ServeRequest> requests = make_requests(options, *tokenizer);
  if (Result<void> fit = check_requests(*model, requests); !fit) {
    return fail(kCommand, fit.error().text);
  }
  const Result<StopSignals> signals = StopSignals::create();
  if (!signals) return fail(kCommand, signals.error().text);

  Children children;
  std::string bootstrap;
  const Result<Deployment> deployment = start_processes(options, *signals, children, bootstrap);
  if (!deployment) return report_error(kCommand, deployment.error());
  for (ServeRequest& request : requests) request.bootstrap = bootstrap;
  std::optional<std::string> shown;
  if (!options.is_json) shown = options.prompt;
  const Result<std::vector<HandOffOutcome>> outcomes =
      run_requests(requests, {*deployment, kTimeout, shown}, *signals, &children);
  children.stop();
  if (!outcomes) return report_error(kCommand, outcomes.error());

  Report report = make_report(requests, *outcomes, true);
  for (const HandOffOutcome& outcome : *outcomes) {
    report.texts.push_back(text_of(*tokenizer, outcome.tokens));
  }
  const Result<Comparison> same = compare_with_one_process(*model, requests, *outcomes);
  if (!same) return fail(kCommand, same.error().text);
  report.comparison = *same;
  return print_report(report, options.is_json);
}

}  // namespace baton::cli
