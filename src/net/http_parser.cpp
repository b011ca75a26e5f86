// The one user of Boost.Beast: its parser behind our readers.
#include "net/http_parser.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <utility>

namespace baton::net {

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

template <class Parser>
void prepare(std::optional<Parser>& parser, const HttpReadLimits& limits) {
  parser.emplace();
  parser->header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
  parser->body_limit(limits.body_bytes_max);
}

// Feeds until the message is complete, the input is used up, or something is wrong.
template <class Parser>
ReadProgress feed_parser(Parser& parser, std::string& input, error_code& error) {
  while (!parser.is_done() && !input.empty()) {
    // Not before the headers are complete: Boost 1.74 forgets in its eager mode that they announced
    // a body beyond the limit, and reads on.
    parser.eager(parser.is_header_done());
    const std::size_t used = parser.put(boost::asio::buffer(input), error);
    input.erase(0, used);
    if (error == http::error::need_more) break;
    if (error == http::error::header_limit) return ReadProgress::header_too_large;
    if (error == http::error::body_limit) return ReadProgress::body_too_large;
    if (error) return ReadProgress::malformed;
    if (used == 0) break;
  }
  error = {};
  if (parser.is_done()) return ReadProgress::complete;
  return parser.is_header_done() ? ReadProgress::needs_body : ReadProgress::needs_header;
}

template <class Fields>
std::vector<HttpHeader> copy_headers(const Fields& fields) {
  std::vector<HttpHeader> headers;
  for (const auto& field : fields) {
    headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  return headers;
}

}  // namespace

struct HttpRequestReader::Impl {
  std::optional<http::request_parser<http::string_body>> parser;
};

HttpRequestReader::HttpRequestReader(const HttpReadLimits& limits)
    : impl_(std::make_unique<Impl>()) {
  prepare(impl_->parser, limits);
}

HttpRequestReader::~HttpRequestReader() = default;

ReadProgress HttpRequestReader::feed(std::string& input) {
  error_code error;
  return feed_parser(*impl_->parser, input, error);
}

bool HttpRequestReader::wants_continue() const {
  return boost::beast::iequals(impl_->parser->get()[http::field::expect], "100-continue");
}

bool HttpRequestReader::is_head() const {
  return impl_->parser->get().method() == http::verb::head;
}

bool HttpRequestReader::is_http_1_0() const { return impl_->parser->get().version() < 11; }

bool HttpRequestReader::keep_alive() const { return impl_->parser->get().keep_alive(); }

HttpRequest HttpRequestReader::take() {
  auto& message = impl_->parser->get();
  HttpRequest request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  request.headers = copy_headers(message);
  request.body = std::move(message.body());
  return request;
}

struct HttpReplyReader::Impl {
  HttpReadLimits limits;
  bool is_head = false;
  std::optional<http::response_parser<http::string_body>> parser;
  std::string fault;

  void restart() {
    prepare(parser, limits);
    parser->skip(is_head);
  }
  bool is_interim() const {
    return parser->is_header_done() && parser->get().result_int() / 100 == 1;
  }
};

HttpReplyReader::HttpReplyReader(const HttpReadLimits& limits, bool is_head)
    : impl_(std::make_unique<Impl>()) {
  impl_->limits = limits;
  impl_->is_head = is_head;
  impl_->restart();
}

HttpReplyReader::~HttpReplyReader() = default;

ReadProgress HttpReplyReader::feed(std::string& input) {
  error_code error;
  ReadProgress progress = feed_parser(*impl_->parser, input, error);
  while (progress == ReadProgress::complete && impl_->is_interim()) {
    impl_->restart();
    progress = feed_parser(*impl_->parser, input, error);
  }
  if (error) impl_->fault = error.message();
  return progress;
}

ReadProgress HttpReplyReader::feed_end() {
  error_code error;
  if (!impl_->parser->is_done()) impl_->parser->put_eof(error);
  if (!error && impl_->parser->is_done()) return ReadProgress::complete;
  impl_->fault = "the connection ended in mid-answer";
  return ReadProgress::malformed;
}

int HttpReplyReader::status() const { return static_cast<int>(impl_->parser->get().result_int()); }

std::vector<HttpHeader> HttpReplyReader::headers() const {
  return copy_headers(impl_->parser->get());
}

bool HttpReplyReader::keep_alive() const { return impl_->parser->get().keep_alive(); }

std::string HttpReplyReader::take_body() {
  return std::exchange(impl_->parser->get().body(), std::string());
}

const std::string& HttpReplyReader::fault() const { return impl_->fault; }

}  // namespace baton::net
