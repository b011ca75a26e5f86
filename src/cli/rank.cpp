// Builds a rank's memory and describes it to Baton.
#include "cli/rank.hpp"

#include <utility>

#include "refengine/engine.hpp"

namespace baton::cli {

namespace {

std::span<std::byte> bytes_of(const SharedMemory& memory) {
  return {memory.data(), memory.size_bytes()};
}

}  // namespace

std::size_t pages_count(const RankOptions& options) {
  if (options.pages_count != 0) return options.pages_count;
  return (kPoolTokens + options.page_size - 1) / options.page_size;
}

Result<std::unique_ptr<Rank>> Rank::create(const RankOptions& options, std::uint64_t seed) {
  Result<refengine::Model> model = refengine::Model::load(options.model);
  if (!model) return model.error();
  Result<refengine::Tokenizer> tokenizer =
      refengine::Tokenizer::load(options.model + "/merges.txt");
  if (!tokenizer) return tokenizer.error();
  const std::size_t count = pages_count(options);
  const refengine::PoolShape shape =
      refengine::pool_shape(model->config(), count, options.page_size);
  Result<SharedMemory> kv = SharedMemory::create(shape.total_bytes());
  if (!kv) return kv.error();
  Result<SharedMemory> aux =
      SharedMemory::create(refengine::AuxPool::total_bytes(options.requests_max));
  if (!aux) return aux.error();
  const refengine::KvPool pool(shape, bytes_of(*kv));
  const refengine::AuxPool aux_pool(options.requests_max, bytes_of(*aux));
  return std::make_unique<Rank>(
      Rank{std::move(*model), std::move(*tokenizer), std::move(*kv), std::move(*aux), pool,
           aux_pool, refengine::PageAllocator(count, seed),
           refengine::PageAllocator(options.requests_max, seed), options.kv_dtype});
}

KvArgs Rank::kv_args() const {
  const auto heads = static_cast<std::uint32_t>(model.config().kv_heads);
  KvArgs args;
  args.page_size = static_cast<std::uint32_t>(pool.shape().page_size);
  args.kv_cache_dtype = kv_dtype;
  args.kv = pool.buffers();
  args.aux = aux.buffers();
  args.kv_head_num = heads;
  args.total_kv_head_num = heads;
  args.memory = {kv_memory.region(), aux_memory.region()};
  return args;
}

Result<void> Rank::check(const refengine::GenerateRequest& request) const {
  if (Result<void> fits = refengine::check_fits(model.config(), request); !fits) return fits;
  const std::size_t needed = pages_for(request.prompt.size() + request.tokens_count - 1);
  if (needed <= pool.shape().pages) return {};
  return Error{Errc::limit, "the request needs " + std::to_string(needed) + " pages of " +
                                std::to_string(pool.shape().page_size) +
                                " tokens, but the pool has " + std::to_string(pool.shape().pages) +
                                "; start the process with more --pages"};
}

}  // namespace baton::cli
