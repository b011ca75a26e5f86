// Rank: the model, its pools in shared memory, and who uses which part of them.
#pragma once

#include <memory>
#include <string>

#include "baton/result.hpp"
#include "baton/shared_memory.hpp"
#include "baton/types.hpp"
#include "cli/options.hpp"
#include "refengine/aux.hpp"
#include "refengine/engine.hpp"
#include "refengine/model.hpp"
#include "refengine/pools.hpp"
#include "refengine/tokenizer.hpp"

namespace baton::cli {

// Must outlive the manager that registers its memory. `pages` and `aux_rows` belong to the
// scheduler thread.
struct Rank {
  // `seed` scatters the pages; two sides with the same order would hide a mix-up of page numbers.
  static Result<std::unique_ptr<Rank>> create(const RankOptions& options, std::uint64_t seed);

  KvArgs kv_args() const;
  // limit: the request can never be run here, however long it waits.
  Result<void> check(const refengine::GenerateRequest& request) const;
  std::size_t pages_for(std::size_t tokens) const { return pool.shape().pages_for(tokens); }

  refengine::Model model;
  refengine::Tokenizer tokenizer;
  SharedMemory kv_memory, aux_memory;
  refengine::KvPool pool;
  refengine::AuxPool aux;
  refengine::PageAllocator pages;
  refengine::PageAllocator aux_rows;
  std::string kv_dtype;
};

std::size_t pages_count(const RankOptions& options);

}  // namespace baton::cli
