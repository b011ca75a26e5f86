// TensorFile: a model.safetensors file, read whole and checked before a weight is believed.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "baton/result.hpp"

namespace baton::refengine {

// One entry of the header; `begin` and `end` are offsets in the file.
struct TensorEntry {
  std::string dtype;
  std::vector<std::size_t> shape;
  std::size_t begin = 0, end = 0;
};

// Layout: u64 length of the header (little-endian), a JSON header (name -> dtype, shape,
// data_offsets), then the raw rows.
class TensorFile {
 public:
  // Checks every entry of the header against the size of the file, so that a truncated download
  // is found here and not as a wrong number later.
  static Result<TensorFile> open(const std::string& path);

  // A BF16 tensor as floats, in the order of the file. The error names the file, the tensor, and
  // what was expected and found.
  Result<std::vector<float>> read(const std::string& name,
                                  const std::vector<std::size_t>& shape) const;

 private:
  Result<void> parse_header();

  std::string path_;
  std::string bytes_;
  std::map<std::string, TensorEntry> entries_;
};

}  // namespace baton::refengine
