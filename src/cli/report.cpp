// Adds up and prints what a run did.
#include "cli/report.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "refengine/digest.hpp"

namespace baton::cli {

namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

// The first token's logits were computed by prefill, the others by decode.
std::vector<std::uint64_t> all_logits(const HandOffOutcome& outcome) {
  std::vector<std::uint64_t> digests{outcome.prefill.logits_digest};
  const std::vector<std::uint64_t>& rest = outcome.decode.logits_digests;
  digests.insert(digests.end(), rest.begin(), rest.end());
  return digests;
}

[[gnu::format(printf, 2, 3)]] void add_line(std::string& text, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
  text += '\n';
}

const char* yes_or_no(bool value) { return value ? "yes" : "NO"; }

double gigabytes_per_second(const Report& report) {
  if (report.transfer_seconds <= 0) return 0;
  return static_cast<double>(report.bytes) / report.transfer_seconds / 1e9;
}

}  // namespace

Result<Comparison> compare_with_one_process(const refengine::Model& model,
                                            const std::vector<ServeRequest>& requests,
                                            const std::vector<HandOffOutcome>& outcomes) {
  Comparison same;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const HandOffOutcome& outcome = outcomes[i];
    const Result<refengine::GenerateOutcome> alone =
        refengine::generate(model, requests[i].generate, {});
    if (!alone) return alone.error();
    same.tokens &=
        outcome.tokens == alone->tokens && outcome.prefill.first_token == alone->tokens.front();
    same.logits_bits &= all_logits(outcome) == alone->logits_digests;
    same.kv_bytes &= outcome.decode.kv_digests == alone->kv_digests;
    const std::uint64_t aux = refengine::bytes_digest(refengine::aux_bytes(alone->aux));
    same.aux_bytes &=
        outcome.decode.aux_digest == aux && outcome.decode.room_word == requests[i].room.value;
  }
  return same;
}

Report make_report(const std::vector<ServeRequest>& requests,
                   const std::vector<HandOffOutcome>& outcomes, bool is_one_host) {
  Report report;
  report.requests = requests.size();
  std::vector<double> notices;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const HandOffOutcome& outcome = outcomes[i];
    report.prompt_tokens += requests[i].generate.prompt.size();
    report.generated_tokens += outcome.tokens.size();
    report.pages += outcome.prefill.pages;
    report.chunks += outcome.prefill.chunks;
    report.bytes += outcome.prefill.bytes;
    report.transfer_seconds += outcome.prefill.transfer_seconds;
    if (outcome.prefill.last_write_done_ns == 0) continue;
    const auto ns = outcome.decode.success_seen_ns - outcome.prefill.last_write_done_ns;
    notices.push_back(static_cast<double>(ns) * 1e-9);
  }
  if (is_one_host && !notices.empty()) {
    const auto middle = notices.begin() + static_cast<std::ptrdiff_t>(notices.size() / 2);
    std::nth_element(notices.begin(), middle, notices.end());
    report.notice_seconds = *middle;
  }
  return report;
}

std::string table(const Report& report) {
  std::string text;
  add_line(text, "requests        %zu", report.requests);
  add_line(text, "tokens          %zu in prompts, %zu generated", report.prompt_tokens,
           report.generated_tokens);
  add_line(text, "moved           %llu pages in %llu chunks, %.3f MiB",
           static_cast<unsigned long long>(report.pages),
           static_cast<unsigned long long>(report.chunks),
           static_cast<double>(report.bytes) / kMebibyte);
  add_line(text, "transfer        %.3f ms from first send to Success%s, %.3f GB/s",
           report.transfer_seconds * 1e3, report.requests > 1 ? ", summed" : "",
           gigabytes_per_second(report));
  if (report.notice_seconds) {
    add_line(text, "notice          %.0f us from the last byte written to decode seeing Success%s",
             *report.notice_seconds * 1e6, report.requests > 1 ? " (median)" : "");
  }
  if (report.comparison) {
    add_line(text, "identical to one process:");
    add_line(text, "  tokens        %s", yes_or_no(report.comparison->tokens));
    add_line(text, "  logits bits   %s", yes_or_no(report.comparison->logits_bits));
    add_line(text, "  KV bytes      %s", yes_or_no(report.comparison->kv_bytes));
    add_line(text, "  aux bytes     %s", yes_or_no(report.comparison->aux_bytes));
  }
  return text;
}

std::string json(const Report& report) {
  nlohmann::ordered_json object = {{"requests", report.requests},
                                   {"prompt_tokens", report.prompt_tokens},
                                   {"generated_tokens", report.generated_tokens},
                                   {"pages", report.pages},
                                   {"chunks", report.chunks},
                                   {"bytes", report.bytes},
                                   {"transfer_seconds", report.transfer_seconds},
                                   {"gigabytes_per_second", gigabytes_per_second(report)}};
  if (report.notice_seconds) object["notice_seconds"] = *report.notice_seconds;
  if (report.comparison) {
    object["identical"] = {{"tokens", report.comparison->tokens},
                           {"logits_bits", report.comparison->logits_bits},
                           {"kv_bytes", report.comparison->kv_bytes},
                           {"aux_bytes", report.comparison->aux_bytes}};
  }
  object["texts"] = report.texts;
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace baton::cli
