// The one-process generator.
#include "refengine/engine.hpp"

#include <algorithm>
#include <utility>

#include "refengine/digest.hpp"
#include "refengine/tokenizer.hpp"

namespace baton::refengine {

Sequence::Sequence(const Model& model, const KvPool& pool, std::vector<PageIndex> pages,
                   std::size_t tokens_count)
    : model_(&model), pool_(&pool), pages_(std::move(pages)), tokens_count_(tokens_count) {}

Result<void> Sequence::extend(std::span<const std::int32_t> tokens) {
  Result<std::vector<float>> hidden = model_->forward(tokens, tokens_count_, {pool_, pages_});
  if (!hidden) return hidden.error();
  hidden_ = std::move(*hidden);
  tokens_count_ += tokens.size();
  return {};
}

std::vector<float> Sequence::logits() const { return model_->logits(hidden_); }

std::int32_t Sequence::choose(std::span<const float> logits, const SamplingParams& params) const {
  return sample(logits, params, tokens_count_);
}

Result<void> check_fits(const ModelConfig& config, const GenerateRequest& request) {
  if (request.prompt.empty() || request.tokens_count == 0) {
    return Error{Errc::invalid_argument, "a request needs a prompt and at least one token to make"};
  }
  // The last token is sampled but never computed, so it needs no place of its own.
  const std::size_t places = request.prompt.size() + request.tokens_count - 1;
  if (places <= config.context) return {};
  return Error{Errc::limit, "the prompt has " + std::to_string(request.prompt.size()) +
                                " tokens and " + std::to_string(request.tokens_count) +
                                " more are asked for, but the model's context is " +
                                std::to_string(config.context) +
                                " tokens; shorten the prompt or ask for fewer tokens"};
}

Result<GenerateOutcome> generate(const Model& model, const GenerateRequest& request,
                                 const GenerateShape& shape) {
  if (Result<void> fits = check_fits(model.config(), request); !fits) return fits.error();
  const std::size_t prompt_tokens = request.prompt.size();
  const PoolShape pool_of_one = pool_shape(model.config(), 1, shape.page_size);
  const std::size_t pages = pool_of_one.pages_for(prompt_tokens + request.tokens_count);
  // Spare pages, so that the request's own do not fill the pool and really lie scattered.
  const PoolShape extents = pool_shape(model.config(), pages + pages / 2 + 2, shape.page_size);
  std::vector<std::byte> memory(extents.total_bytes());
  const KvPool pool(extents, memory);
  Sequence sequence(model, pool, *PageAllocator(extents.pages).take(pages), 0);

  const std::size_t chunk = shape.chunk_tokens == 0 ? prompt_tokens : shape.chunk_tokens;
  for (std::size_t at = 0; at < prompt_tokens; at += chunk) {
    const std::size_t count = std::min(chunk, prompt_tokens - at);
    const auto tokens = std::span(request.prompt).subspan(at, count);
    if (Result<void> done = sequence.extend(tokens); !done) return done.error();
  }
  GenerateOutcome outcome;
  outcome.kv_digests = kv_digests(pool, sequence.pages(), prompt_tokens);
  LogitsDigest all;
  for (;;) {
    const std::vector<float> logits = sequence.logits();
    all.add(logits);
    outcome.logits_digests.push_back(logits_digest(logits));
    const std::int32_t token = sequence.choose(logits, request.sampling);
    if (outcome.tokens.empty()) {
      outcome.aux =
          make_aux_row(sequence.hidden(), logits, token, static_cast<std::int32_t>(prompt_tokens));
    }
    outcome.tokens.push_back(token);
    if (token == Tokenizer::kEos || outcome.tokens.size() == request.tokens_count) break;
    if (Result<void> done = sequence.extend({&token, 1}); !done) return done.error();
  }
  outcome.all_logits_digest = all.value();
  return outcome;
}

}  // namespace baton::refengine
