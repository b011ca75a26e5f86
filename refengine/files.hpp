// Reads a whole file into memory, with an error that names it.
#pragma once

#include <string>

#include "baton/result.hpp"

namespace baton::refengine {

// not_found: no such file. io: it cannot be read.
Result<std::string> read_file(const std::string& path);

}  // namespace baton::refengine
