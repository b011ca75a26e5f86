// The values that the HTTP server and client exchange with their users.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton::net {

inline constexpr std::string_view kTextContent = "text/plain; charset=utf-8";
inline constexpr std::string_view kJsonContent = "application/json; charset=utf-8";

struct HttpHeader {
  std::string name, value;

  friend bool operator==(const HttpHeader&, const HttpHeader&) = default;
};

// The first header of that name (case does not matter), or an empty view.
std::string_view find_header(const std::vector<HttpHeader>& headers, std::string_view name);

struct HttpRequest {
  std::string method;  // as sent: "GET", "PUT", ...
  std::string target;  // path and query, not decoded
  std::vector<HttpHeader> headers;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string content_type{kTextContent};
  std::string body;
  std::vector<HttpHeader> headers;  // beyond Content-Type, Content-Length and Connection
  bool close = false;               // end the connection after this answer
};

}  // namespace baton::net
