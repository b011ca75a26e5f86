// The only file that knows CLI11: names, defaults, limits and help of every option.
#include "cli/arguments.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "baton/engine.hpp"

namespace baton::cli {

namespace {

constexpr const char* kDefaultPrompt =
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, "
    "must be in want of a wife.";

constexpr std::size_t kTokensMax = 1U << 20U;  // far above any context; keeps sums from overflowing

// A number in a range. Help lines would repeat the type before the range, so they go without both.
template <class Number>
CLI::Validator in_range(Number lowest, Number highest) {
  return CLI::Range(lowest, highest).description("");
}

CLI::Validator count() { return in_range(std::size_t{1}, kTokensMax); }
CLI::Validator count_or_zero() { return in_range(std::size_t{0}, kTokensMax); }

void add_model(CLI::App& app, std::string& model) {
  model = BATON_MODEL_DIR;
  app.add_option("--model", model, "Folder with config.json, merges.txt and model.safetensors")
      ->capture_default_str();
}

void add_transport(CLI::App& app, std::string& transport) {
  app.add_option("--transport", transport, "How the KV bytes travel")
      ->check(CLI::IsMember(engine_names()))
      ->capture_default_str();
}

void add_pool(CLI::App& app, std::size_t& page_size, std::size_t& pages_count) {
  app.add_option("--page-size", page_size, "Tokens in a page; must be the same on both sides")
      ->check(in_range(std::size_t{1}, std::size_t{1024}))
      ->capture_default_str();
  app.add_option("--pages", pages_count,
                 "Pages in the KV pool; 0: enough for " + std::to_string(kPoolTokens) + " tokens")
      ->check(count_or_zero())
      ->capture_default_str();
}

void add_chunk(CLI::App& app, std::size_t& chunk_tokens) {
  app.add_option("--chunk", chunk_tokens,
                 "Prompt tokens that are computed, and then sent, at a time; 0: the whole prompt")
      ->check(count_or_zero())
      ->capture_default_str();
}

void add_tamper(CLI::App& app, std::string& tamper) {
  app.add_option("--tamper", tamper,
                 "Damage the transfer on purpose, to see that the comparison catches it")
      ->check(CLI::IsMember({"flip-bit", "swap-pages", "drop-page", "early-success"}));
}

void add_rank(CLI::App& app, RankOptions& rank) {
  app.add_option("--host", rank.host, "Address of this host that the other processes reach it at")
      ->capture_default_str();
  app.add_option("--http-port", rank.http_port, "Port of POST /generate and GET /health; 0: any")
      ->capture_default_str();
  add_model(app, rank.model);
  add_transport(app, rank.transport);
  add_pool(app, rank.page_size, rank.pages_count);
  app.add_option("--requests-max", rank.requests_max,
                 "Requests that hold pages at once; later ones wait")
      ->check(in_range(std::size_t{1}, std::size_t{4096}))
      ->capture_default_str();
  app.add_option("--kv-dtype", rank.kv_dtype,
                 "Name of the KV cache's type, compared with the peer's (the bytes are bfloat16)")
      ->capture_default_str();
}

void add_request(CLI::App& app, RequestOptions& request) {
  request.prompt = kDefaultPrompt;
  app.add_option("--prompt", request.prompt, "Text to go on from")->capture_default_str();
  app.add_option("--tokens", request.tokens_count, "Tokens to generate")
      ->check(count())
      ->capture_default_str();
  app.add_option("--temperature", request.sampling.temperature,
                 "0: always the likeliest token (this model then soon repeats itself)")
      ->check(in_range(0.0F, 100.0F))
      ->capture_default_str();
  app.add_option("--top-k", request.sampling.top_k, "Choose among the K likeliest; 0: among all")
      ->capture_default_str();
  app.add_option("--seed", request.sampling.seed, "The same seed gives the same text")
      ->capture_default_str();
}

void add_timeout(CLI::App& app, const char* name, double& seconds, const char* help) {
  app.add_option(name, seconds, help)->check(in_range(0.1, 86400.0))->capture_default_str();
}

// What is wrong with a "host:port", in CLI11's way: empty if nothing is.
std::string check_address(const std::string& text) {
  const Result<Endpoint> parsed = parse_endpoint(text);
  return parsed ? std::string() : parsed.error().text;
}

void add_endpoint(CLI::App& app, const char* name, Endpoint& endpoint, const char* help) {
  const auto store = [&endpoint](const std::string& text) {
    if (Result<Endpoint> parsed = parse_endpoint(text)) endpoint = *std::move(parsed);
  };
  app.add_option_function<std::string>(name, store, help)
      ->type_name("HOST:PORT")
      ->check(check_address)
      ->required();
}

void add_bootstrap_address(CLI::App& app, std::string& address, const char* help) {
  app.add_option("--bootstrap", address, help)
      ->type_name("HOST:PORT")
      ->check(check_address)
      ->required();
}

struct AllOptions {
  BootstrapOptions bootstrap;
  PrefillOptions prefill;
  DecodeOptions decode;
  GenerateOptions generate;
  DemoOptions demo;
};

void add_demo(CLI::App& app, DemoOptions& demo) {
  add_request(app, demo);
  add_model(app, demo.model);
  add_transport(app, demo.transport);
  add_pool(app, demo.page_size, demo.pages_count);
  add_chunk(app, demo.chunk_tokens);
  app.add_option("--requests", demo.requests_count, "Requests at once, each with its own prompt")
      ->check(in_range(std::size_t{1}, std::size_t{256}))
      ->capture_default_str();
  app.add_flag("--json", demo.is_json, "Print one JSON object instead of text and a table");
  add_tamper(app, demo.tamper);
  app.footer(
      "Exit status: 0 if everything is identical to a run in one process, 1 if not.\n"
      "Examples:\n"
      "  baton demo\n"
      "  baton demo --transport mooncake_tcp --requests 32 --chunk 37\n"
      "  baton demo --tamper flip-bit");
}

void add_prefill(CLI::App& app, PrefillOptions& prefill) {
  add_bootstrap_address(app, prefill.bootstrap, "The bootstrap server to register with");
  add_rank(app, prefill);
  add_chunk(app, prefill.chunk_tokens);
  add_timeout(app, "--bootstrap-timeout", prefill.bootstrap_timeout_seconds,
              "Seconds that a request may wait for decode");
  add_tamper(app, prefill.tamper);
  app.footer(
      "Prints \"ready HOST:PORT\" once requests can come, and serves until SIGINT or SIGTERM.\n"
      "POST /generate {\"room\", \"prompt\" or \"tokens\", \"count\", \"temperature\", \"top_k\",\n"
      "\"seed\", \"bootstrap\"} answers when the KV cache has been handed over.");
}

void add_decode(CLI::App& app, DecodeOptions& decode) {
  add_rank(app, decode);
  add_timeout(app, "--waiting-timeout", decode.waiting_timeout_seconds,
              "Seconds that a request may wait for prefill");
  app.footer(
      "Prints \"ready HOST:PORT\" once requests can come, and serves until SIGINT or SIGTERM.\n"
      "POST /generate {\"room\", \"prompt\" or \"tokens\", \"count\", \"temperature\", \"top_k\",\n"
      "\"seed\", \"bootstrap\"} answers one JSON line a token, and a last line with \"done\" or\n"
      "\"error\".");
}

void add_generate(CLI::App& app, GenerateOptions& generate) {
  add_endpoint(app, "--prefill", generate.prefill, "Where `baton prefill` serves HTTP");
  add_endpoint(app, "--decode", generate.decode, "Where `baton decode` serves HTTP");
  add_bootstrap_address(app, generate.bootstrap, "The bootstrap server, as decode reaches it");
  add_request(app, generate);
  app.add_option("--room", generate.room, "Number of the hand-off; default: a random one")
      ->check(in_range(std::uint64_t{1}, (std::uint64_t{1} << 63U) - 1));
  app.add_flag("--compare", generate.compare,
               "Compute the same in this process and compare (needs --model)");
  add_model(app, generate.model);
  app.add_flag("--json", generate.is_json, "Print one JSON object instead of text and a table");
  add_timeout(app, "--timeout", generate.timeout_seconds, "Seconds without a sign of life");
}

void add_bootstrap(CLI::App& app, BootstrapOptions& bootstrap) {
  app.add_option("--host", bootstrap.host, "Address to listen at")->capture_default_str();
  app.add_option("--port", bootstrap.port, "Port to listen at; 0: any")->capture_default_str();
  app.footer("Prints \"ready HOST:PORT\" and serves until SIGINT or SIGTERM. One per deployment.");
}

}  // namespace

std::variant<Command, int> parse_arguments(int words_count, char** words) {
  CLI::App app("Baton hands the KV cache of a request from prefill to decode.", "baton");
  app.set_version_flag("--version", std::string("baton ") + BATON_VERSION);
  app.require_subcommand(1);
  app.footer("Start with `baton demo`. `baton COMMAND --help` tells what a command takes.");
  AllOptions all;
  CLI::App* demo = app.add_subcommand(
      "demo", "Hand over between two processes here, and compare with one process");
  CLI::App* bootstrap = app.add_subcommand("bootstrap", "Run the bootstrap server");
  CLI::App* prefill = app.add_subcommand("prefill", "Run a prefill process");
  CLI::App* decode = app.add_subcommand("decode", "Run a decode process");
  CLI::App* generate = app.add_subcommand("generate", "Send a request to prefill and decode");
  add_demo(*demo, all.demo);
  add_bootstrap(*bootstrap, all.bootstrap);
  add_prefill(*prefill, all.prefill);
  add_decode(*decode, all.decode);
  add_generate(*generate, all.generate);
  try {
    app.parse(words_count, words);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    const std::string command = chosen.empty() ? "baton" : "baton " + chosen[0]->get_name();
    std::cerr << command << ": " << error.what() << "; see " << command << " --help\n";
    return kExitUsage;
  }
  if (demo->parsed()) return Command(all.demo);
  if (bootstrap->parsed()) return Command(all.bootstrap);
  if (prefill->parsed()) return Command(all.prefill);
  if (decode->parsed()) return Command(all.decode);
  return Command(all.generate);
}

}  // namespace baton::cli
