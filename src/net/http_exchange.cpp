// Turns a handler's answer into the bytes of an HTTP response, whole or in chunks.
#include "net/http_exchange.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace baton::net {

namespace {

constexpr std::string_view kTrouble = "500 Internal Server Error\n\nServer got itself in trouble";

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Request Entity Too Large";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Unknown";
  }
}

void append(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

void append_chunk(std::string& out, std::string_view piece) {
  std::array<char, 2 * sizeof(std::size_t)> digits{};
  const auto [end, fault] =
      std::to_chars(digits.data(), digits.data() + digits.size(), piece.size(), 16);
  out.append(digits.data(), end).append("\r\n").append(piece).append("\r\n");
}

}  // namespace

HttpExchange::HttpExchange(const ExchangeFacts& facts, std::function<void()> poke)
    : facts_(facts), poke_(std::move(poke)) {}

void HttpExchange::put_head(const HttpResponse& response, bool is_stream) {
  close_ = response.close || !facts_.keep_alive || (is_stream && facts_.is_http_1_0);
  pending_.append(facts_.is_http_1_0 ? "HTTP/1.0 " : "HTTP/1.1 ");
  pending_.append(std::to_string(response.status)).append(" ");
  pending_.append(reason_phrase(response.status)).append("\r\n");
  append(pending_, "Content-Type", response.content_type);
  for (const HttpHeader& header : response.headers) append(pending_, header.name, header.value);
  if (!is_stream) {
    append(pending_, "Content-Length", std::to_string(response.body.size()));
  } else if (!facts_.is_http_1_0) {
    append(pending_, "Transfer-Encoding", "chunked");
  }
  append(pending_, "Server", "baton");  // no Date: nothing in Baton reads a wall clock
  if (close_) {
    append(pending_, "Connection", "close");
  } else if (facts_.is_http_1_0) {
    append(pending_, "Connection", "keep-alive");
  }
  pending_.append("\r\n");
}

void HttpExchange::respond(HttpResponse response) {
  const std::scoped_lock lock(mutex_);
  if (phase_ != Phase::open) return;
  phase_ = Phase::done;
  put_head(response, false);
  if (!facts_.is_head) pending_.append(response.body);
  poke_();
}

void HttpExchange::begin(HttpResponse head) {
  const std::scoped_lock lock(mutex_);
  if (phase_ != Phase::open) return;
  phase_ = Phase::streaming;
  if (is_gone_) return abort_stream();
  put_head(head, true);
  if (!head.body.empty() && !facts_.is_head) {
    if (facts_.is_http_1_0)
      pending_.append(head.body);
    else
      append_chunk(pending_, head.body);
  }
  poke_();
}

bool HttpExchange::write(std::string_view piece) {
  const std::scoped_lock lock(mutex_);
  if (phase_ != Phase::streaming) return false;
  if (piece.empty() || facts_.is_head) return true;  // an empty chunk would end the stream
  if (pending_.size() + piece.size() > facts_.stream_bytes_max) {
    is_gone_ = true;
    abort_stream();
    return false;
  }
  const bool was_empty = pending_.empty();
  if (facts_.is_http_1_0)
    pending_.append(piece);
  else
    append_chunk(pending_, piece);
  if (was_empty) poke_();  // otherwise the connection has not yet answered the last poke
  return true;
}

void HttpExchange::end() {
  const std::scoped_lock lock(mutex_);
  if (phase_ != Phase::streaming) return;
  phase_ = Phase::done;
  if (!facts_.is_http_1_0 && !facts_.is_head) pending_.append("0\r\n\r\n");
  poke_();
}

void HttpExchange::abort_stream() {
  phase_ = Phase::done;
  pending_.clear();
  close_ = true;
  poke_();
}

bool HttpExchange::client_gone() const {
  const std::scoped_lock lock(mutex_);
  return is_gone_;
}

void HttpExchange::on_client_gone(std::function<void()> callback) {
  {
    const std::scoped_lock lock(mutex_);
    if (!is_gone_) {
      gone_callback_ = std::move(callback);
      return;
    }
  }
  if (callback) callback();
}

void HttpExchange::abandon() {
  HttpResponse trouble;
  trouble.status = 500;
  trouble.body = kTrouble;
  trouble.close = true;
  respond(std::move(trouble));
  const std::scoped_lock lock(mutex_);
  gone_callback_ = nullptr;
  if (phase_ == Phase::streaming) abort_stream();
}

HttpExchange::Output HttpExchange::take() {
  const std::scoped_lock lock(mutex_);
  Output output;
  output.bytes.swap(pending_);
  output.finished = phase_ == Phase::done;
  output.close = output.finished && close_;
  return output;
}

void HttpExchange::mark_client_gone() {
  std::function<void()> callback;
  {
    const std::scoped_lock lock(mutex_);
    is_gone_ = true;
    callback.swap(gone_callback_);
    // A client that only closed its sending side still gets a plain answer, but no stream: nobody
    // can tell it from one that went away, and a stream may go on for ever.
    if (phase_ == Phase::streaming) abort_stream();
  }
  if (!callback) return;
  try {
    callback();
  } catch (...) {  // a user's mistake must not end the connection's thread
  }
}

struct HttpResponder::Ticket {
  explicit Ticket(std::shared_ptr<HttpExchange> owned) : exchange(std::move(owned)) {}
  ~Ticket() { exchange->abandon(); }
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  std::shared_ptr<HttpExchange> exchange;
};

HttpResponder::HttpResponder(std::shared_ptr<HttpExchange> exchange)
    : ticket_(std::make_shared<Ticket>(std::move(exchange))) {}

void HttpResponder::respond(HttpResponse response) {
  ticket_->exchange->respond(std::move(response));
}
void HttpResponder::begin(HttpResponse head) { ticket_->exchange->begin(std::move(head)); }
bool HttpResponder::write(std::string_view piece) { return ticket_->exchange->write(piece); }
void HttpResponder::end() { ticket_->exchange->end(); }
bool HttpResponder::client_gone() const { return ticket_->exchange->client_gone(); }
void HttpResponder::on_client_gone(std::function<void()> callback) {
  ticket_->exchange->on_client_gone(std::move(callback));
}

}  // namespace baton::net
