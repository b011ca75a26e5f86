// Keeps the unfinished line between pieces.
#include "net/line_splitter.hpp"

#include <utility>

namespace baton::net {

LineSplitter::LineSplitter(std::function<bool(std::string_view)> on_line)
    : on_line_(std::move(on_line)) {}

bool LineSplitter::operator()(std::string_view piece) {
  while (true) {
    const std::size_t newline = piece.find('\n');
    if (newline == std::string_view::npos) {
      partial_.append(piece);
      return true;
    }
    partial_.append(piece.substr(0, newline));
    piece.remove_prefix(newline + 1);
    const std::string line = std::exchange(partial_, std::string());
    if (!deliver(line)) return false;
  }
}

bool LineSplitter::finish() {
  if (partial_.empty()) return true;
  return deliver(std::exchange(partial_, std::string()));
}

bool LineSplitter::deliver(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return on_line_(line);
}

}  // namespace baton::net
