// Reads a whole file into memory.
#include "refengine/files.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace baton::refengine {

Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) {
    const Errc code = errno == ENOENT || errno == ENOTDIR ? Errc::not_found : Errc::io;
    return Error{code, "cannot open " + path + ": " + std::strerror(errno) +
                           "; --model must name a folder with config.json, merges.txt and "
                           "model.safetensors"};
  }
  std::string text;
  char block[65536];
  while (const std::size_t count = std::fread(block, 1, sizeof block, file.get())) {
    text.append(block, count);
  }
  if (std::ferror(file.get()) != 0) {
    return Error{Errc::io, "cannot read " + path + ": " + std::strerror(errno)};
  }
  return text;
}

}  // namespace baton::refengine
