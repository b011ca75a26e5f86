// HttpExchange and HttpResponder: how a handler answers one request, at once, later or piecewise.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "net/http_message.hpp"

namespace baton::net {

// What the exchange must know about its request to write a correct answer.
struct ExchangeFacts {
  bool is_head = false;      // headers only
  bool is_http_1_0 = false;  // no chunks: a streamed answer ends with the connection
  bool keep_alive = true;    // the client wants to use the connection again
  std::size_t stream_bytes_max = std::size_t{8} << 20;  // unsent; a slower client is cut off
};

// The meeting point of a handler (any thread) and the connection (server thread): the handler puts
// an answer in, the connection takes bytes out.
class HttpExchange {
 public:
  // `poke` tells the connection, from any thread, that there is something to take; it must not
  // call back into the exchange.
  HttpExchange(const ExchangeFacts& facts, std::function<void()> poke);

  // Handler's side; see HttpResponder.
  void respond(HttpResponse response);
  void begin(HttpResponse head);
  bool write(std::string_view piece);
  void end();
  bool client_gone() const;
  void on_client_gone(std::function<void()> callback);
  // The last responder is gone: an unanswered request gets a 500, an unfinished stream is cut.
  void abandon();

  // Connection's side.
  struct Output {
    std::string bytes;      // to be written now
    bool finished = false;  // nothing will follow
    bool close = false;     // end the connection after the bytes
  };
  Output take();
  // Once the client is known to be away. Runs the call-back of on_client_gone.
  void mark_client_gone();

 private:
  enum class Phase { open, streaming, done };  // no answer yet; pieces may follow; complete

  void put_head(const HttpResponse& response, bool is_stream);  // needs mutex_
  void abort_stream();                                          // needs mutex_

  const ExchangeFacts facts_;
  const std::function<void()> poke_;
  mutable std::mutex mutex_;
  Phase phase_ = Phase::open;
  std::string pending_;
  bool close_ = false;
  bool is_gone_ = false;
  std::function<void()> gone_callback_;
};

// The handler's handle on one request; copies share it. All calls from any thread, also after the
// server was destroyed (they do nothing then). Either respond() once, or begin(), write()...,
// end(). If every copy is destroyed before the end, the client gets a 500 or a cut connection.
class HttpResponder {
 public:
  explicit HttpResponder(std::shared_ptr<HttpExchange> exchange);

  void respond(HttpResponse response);
  // Starts a streamed answer (chunked transfer encoding); `head.body` is its first piece if any.
  void begin(HttpResponse head);
  // Never blocks. False: the client went away or is too slow, stop producing.
  bool write(std::string_view piece);
  void end();
  // True once the client closed its side or the connection broke.
  bool client_gone() const;
  // Called once, on the server thread or at once here; must not block.
  void on_client_gone(std::function<void()> callback);

 private:
  struct Ticket;  // abandons the exchange when the last copy goes
  std::shared_ptr<Ticket> ticket_;
};

}  // namespace baton::net
