// LineSplitter: cuts a stream of pieces into lines, for HttpCall::on_piece.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace baton::net {

class LineSplitter {
 public:
  // `on_line` gets each line without its "\n" or "\r\n"; false asks for no more.
  explicit LineSplitter(std::function<bool(std::string_view)> on_line);
  // False once on_line said so.
  bool operator()(std::string_view piece);
  // Delivers the last line if it had no newline.
  bool finish();

 private:
  bool deliver(std::string_view line);
  std::function<bool(std::string_view)> on_line_;
  std::string partial_;
};

}  // namespace baton::net
