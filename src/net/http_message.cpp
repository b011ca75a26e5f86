// Header look-up without regard to case.
#include "net/http_message.hpp"

#include <algorithm>

namespace baton::net {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view left, std::string_view right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

std::string_view find_header(const std::vector<HttpHeader>& headers, std::string_view name) {
  for (const HttpHeader& header : headers) {
    if (same_name(header.name, name)) return header.value;
  }
  return {};
}

}  // namespace baton::net
