// Accepting, reading, answering and closing HTTP connections, all on one Boost.Asio thread.
#include "net/http_server.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/address.hpp"
#include "base/assert.hpp"
#include "net/http_parser.hpp"

namespace baton::net {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kReadBlockBytes = 4096;
constexpr int kListenBacklog = 4096;
// After an answer that ends the connection, input is thrown away for this long: closing with
// unread input would reset the connection, and the client might never see the answer.
constexpr Duration kDrainTimeout = std::chrono::seconds(2);
// How long accepting rests when the process has no file descriptors left.
constexpr Duration kAcceptRest = std::chrono::milliseconds(100);
constexpr Duration kTickMax = std::chrono::seconds(1);
constexpr Duration kTickMin = std::chrono::milliseconds(5);

struct Counters {
  std::atomic<std::uint64_t> open{0}, accepted{0}, refused{0};
  std::atomic<std::uint64_t> requests{0}, malformed{0}, timeouts{0}, exceptions{0};
};

void add(std::atomic<std::uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

// Lets responders on other threads reach the server thread, until the server is gone.
class Gate {
 public:
  explicit Gate(asio::io_context& io) : io_(&io) {}
  void close() {
    const std::scoped_lock lock(mutex_);
    io_ = nullptr;
  }
  template <class Task>
  void post(Task&& task) {
    const std::scoped_lock lock(mutex_);
    if (io_ != nullptr) asio::post(*io_, std::forward<Task>(task));
  }

 private:
  std::mutex mutex_;
  asio::io_context* io_;
};

class Session;

// What all connections of a server share. Server thread only, but for the counters and the gate.
struct Shared {
  HttpServerOptions options;
  HttpHandler handler;
  Counters counters;
  std::shared_ptr<Gate> gate;
  std::unordered_map<Session*, std::shared_ptr<Session>> sessions;  // the owners
};

// One connection: requests one after the other, each answered before the next is looked at.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Shared& shared, tcp::socket socket) : shared_(shared), socket_(std::move(socket)) {}
  ~Session();

  void start();
  bool is_overdue(Instant now) const { return deadline_ <= now; }
  void close();

 private:
  enum class Phase {
    reading,    // waits for a request, or for the rest of one
    answering,  // a request is with the handler, or its answer is being written
    draining,   // the last answer is written; waits for the client to hang up
    closed,
  };
  enum class Deadline { none, idle, header, body, write, drain };

  void read();
  void on_read(const error_code& error, std::size_t bytes);
  void on_end_of_input();
  void parse();
  void dispatch();
  void refuse(ReadProgress fault);
  void open_exchange(const ExchangeFacts& facts);
  void pump();
  void write();
  void on_written(const error_code& error, std::size_t bytes);
  void finish_answer();
  void set_deadline(Deadline kind, Duration timeout);

  Shared& shared_;
  tcp::socket socket_;
  Phase phase_ = Phase::reading;
  Deadline deadline_kind_ = Deadline::none;
  Instant deadline_ = Instant::max();

  bool is_reading_ = false;
  bool input_ended_ = false;
  std::array<char, kReadBlockBytes> block_;
  std::string input_;                        // read but not yet parsed
  std::optional<HttpRequestReader> reader_;  // while a request is incomplete
  bool sent_continue_ = false;

  std::shared_ptr<HttpExchange> exchange_;
  std::string output_;  // being written
  std::size_t written_ = 0;
  bool is_writing_ = false;
  bool answer_finished_ = false, answer_closes_ = false;
};

Session::~Session() {
  if (exchange_) exchange_->mark_client_gone();
}

void Session::start() {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  set_deadline(Deadline::idle, shared_.options.idle_timeout);
  read();
}

// The server looks at all deadlines in a fixed beat; so moving one costs no timer operation.
void Session::set_deadline(Deadline kind, Duration timeout) {
  deadline_kind_ = kind;
  deadline_ = kind == Deadline::none ? Instant::max() : Clock::now() + timeout;
}

void Session::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  error_code ignored;
  socket_.close(ignored);
  const std::shared_ptr<HttpExchange> exchange = std::move(exchange_);
  shared_.counters.open.fetch_sub(1, std::memory_order_relaxed);
  shared_.sessions.erase(this);  // may be the last owner: `this` is not used any more
  if (exchange) exchange->mark_client_gone();
}

void Session::read() {
  const bool is_full =
      phase_ == Phase::answering && input_.size() >= shared_.options.pipelined_bytes_max;
  if (is_reading_ || input_ended_ || phase_ == Phase::closed || is_full) return;
  is_reading_ = true;
  socket_.async_read_some(asio::buffer(block_),
                          [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                            self->on_read(error, bytes);
                          });
}

void Session::on_read(const error_code& error, std::size_t bytes) {
  is_reading_ = false;
  if (phase_ == Phase::closed) return;
  if (error) return on_end_of_input();
  if (phase_ != Phase::draining) input_.append(block_.data(), bytes);
  if (phase_ == Phase::reading) parse();
  read();
}

void Session::on_end_of_input() {
  input_ended_ = true;
  if (phase_ != Phase::answering) return close();
  // Its answer is still written: the client may only have closed its sending side.
  exchange_->mark_client_gone();
}

void Session::parse() {
  if (input_.empty()) return;
  if (!reader_) {
    reader_.emplace(
        HttpReadLimits{shared_.options.header_bytes_max, shared_.options.body_bytes_max});
    sent_continue_ = false;
  }
  const ReadProgress progress = reader_->feed(input_);
  if (progress == ReadProgress::complete) return dispatch();
  if (is_failure(progress)) return refuse(progress);
  if (progress == ReadProgress::needs_header) {
    if (deadline_kind_ != Deadline::header) {
      set_deadline(Deadline::header, shared_.options.header_timeout);
    }
    return;
  }
  if (deadline_kind_ != Deadline::body) set_deadline(Deadline::body, shared_.options.body_timeout);
  if (sent_continue_ || is_writing_ || !reader_->wants_continue()) return;
  sent_continue_ = true;
  output_ = "HTTP/1.1 100 Continue\r\n\r\n";
  write();
}

void Session::open_exchange(const ExchangeFacts& facts) {
  phase_ = Phase::answering;
  reader_.reset();
  set_deadline(Deadline::none, {});
  exchange_ = std::make_shared<HttpExchange>(facts, [gate = shared_.gate, weak = weak_from_this()] {
    gate->post([weak] {
      if (const std::shared_ptr<Session> self = weak.lock()) self->pump();
    });
  });
}

void Session::dispatch() {
  ExchangeFacts facts;
  facts.is_head = reader_->is_head();
  facts.is_http_1_0 = reader_->is_http_1_0();
  facts.keep_alive = reader_->keep_alive();
  facts.stream_bytes_max = shared_.options.stream_bytes_max;
  HttpRequest request = reader_->take();
  open_exchange(facts);
  add(shared_.counters.requests);
  try {
    shared_.handler(std::move(request), HttpResponder(exchange_));
  } catch (...) {
    // The responder's last copy died on the way out, and that has answered 500.
    add(shared_.counters.exceptions);
  }
  pump();
}

void Session::refuse(ReadProgress fault) {
  add(shared_.counters.malformed);
  HttpResponse response;
  if (fault == ReadProgress::body_too_large) {
    response.status = 413;
    response.body = "Request body is larger than the allowed " +
                    std::to_string(shared_.options.body_bytes_max) + " bytes";
  } else if (fault == ReadProgress::header_too_large) {
    response.status = 431;
    response.body = "Request headers are larger than the allowed " +
                    std::to_string(shared_.options.header_bytes_max) + " bytes";
  } else {
    response.status = 400;
    response.body = "400: Bad Request";
  }
  ExchangeFacts facts;
  facts.keep_alive = false;  // where the next request would begin is not known
  open_exchange(facts);
  input_.clear();
  exchange_->respond(std::move(response));
  pump();
}

void Session::pump() {
  if (phase_ != Phase::answering || is_writing_) return;
  if (!answer_finished_) {
    HttpExchange::Output next = exchange_->take();
    answer_finished_ = next.finished;
    answer_closes_ = next.close;
    if (!next.bytes.empty()) {
      output_ = std::move(next.bytes);
      return write();
    }
  }
  if (answer_finished_) finish_answer();
}

void Session::write() {
  is_writing_ = true;
  if (phase_ == Phase::answering) set_deadline(Deadline::write, shared_.options.write_timeout);
  socket_.async_write_some(asio::buffer(output_.data() + written_, output_.size() - written_),
                           [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                             self->on_written(error, bytes);
                           });
}

void Session::on_written(const error_code& error, std::size_t bytes) {
  if (phase_ == Phase::closed) return;
  if (error) return close();
  written_ += bytes;
  if (written_ < output_.size()) return write();
  is_writing_ = false;
  written_ = 0;
  output_.clear();
  if (phase_ == Phase::answering) set_deadline(Deadline::none, {});
  pump();
}

void Session::finish_answer() {
  answer_finished_ = false;
  exchange_.reset();
  if (input_ended_) return close();
  if (answer_closes_) {
    phase_ = Phase::draining;
    input_.clear();
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    set_deadline(Deadline::drain, kDrainTimeout);
    return read();
  }
  phase_ = Phase::reading;
  set_deadline(Deadline::idle, shared_.options.idle_timeout);
  parse();  // a pipelined request may already be here
  read();
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, HttpHandler handler)
      : shared_{options, std::move(handler), {}, nullptr, {}} {}
  ~Impl();

  Result<void> listen();
  void run();
  std::uint16_t port() const { return port_; }
  std::string address() const { return to_string(Endpoint{shared_.options.host, port_}); }
  HttpServerStats stats() const;

 private:
  void accept();
  void on_accepted(const error_code& error, tcp::socket socket);
  void tick();
  void close_overdue();

  Shared shared_;  // before io_, whose destructor ends the sessions
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer accept_timer_{io_};
  asio::steady_timer tick_timer_{io_};
  Duration tick_ = kTickMax;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

HttpServer::Impl::~Impl() {
  if (shared_.gate) shared_.gate->close();
  io_.stop();
  if (thread_.joinable()) {
    BATON_ASSERT(thread_.get_id() != std::this_thread::get_id());
    thread_.join();
  }
  shared_.sessions.clear();
}

Result<void> HttpServer::Impl::listen() {
  const HttpServerOptions& options = shared_.options;
  const std::string what =
      "cannot listen on " + to_string(Endpoint{options.host, options.port}) + ": ";
  error_code error;
  asio::ip::address address = asio::ip::make_address(options.host, error);
  if (error) {
    const auto found = tcp::resolver(io_).resolve(options.host, "", error);
    if (error)
      return Error{Errc::invalid_argument, what + "unknown host (" + error.message() + ")"};
    address = found.begin()->endpoint().address();
  }
  const tcp::endpoint endpoint(address, options.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && address.is_v6()) acceptor_.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(kListenBacklog, error);
  if (error == asio::error::address_in_use) {
    return Error{Errc::already_exists,
                 what + "the port is in use; stop the other process or choose another port"};
  }
  if (error) {
    const bool is_foreign = error == boost::system::errc::address_not_available;
    return Error{is_foreign ? Errc::invalid_argument : Errc::io, what + error.message()};
  }
  port_ = acceptor_.local_endpoint(error).port();
  return {};
}

void HttpServer::Impl::run() {
  const HttpServerOptions& options = shared_.options;
  const Duration shortest = std::min(
      {options.header_timeout, options.body_timeout, options.idle_timeout, options.write_timeout});
  tick_ = std::clamp(shortest / 4, kTickMin, kTickMax);
  shared_.gate = std::make_shared<Gate>(io_);
  accept();
  tick();
  thread_ = std::thread([this] {
    for (bool is_running = true; is_running;) {
      try {
        io_.run();
        is_running = false;
      } catch (...) {  // allocation: the connection at hand is lost, the server goes on
        add(shared_.counters.exceptions);
      }
    }
  });
  pthread_setname_np(thread_.native_handle(), options.thread_name.substr(0, 15).c_str());
}

void HttpServer::Impl::accept() {
  acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
    on_accepted(error, std::move(socket));
  });
}

void HttpServer::Impl::on_accepted(const error_code& error, tcp::socket socket) {
  if (error == asio::error::operation_aborted) return;
  if (error) {
    // Mostly EMFILE: the connection stays in the backlog and would be offered again at once.
    accept_timer_.expires_after(kAcceptRest);
    accept_timer_.async_wait([this](const error_code& stopped) {
      if (!stopped) accept();
    });
    return;
  }
  if (shared_.sessions.size() >= shared_.options.connections_max) {
    add(shared_.counters.refused);
  } else {
    add(shared_.counters.accepted);
    add(shared_.counters.open);
    const auto session = std::make_shared<Session>(shared_, std::move(socket));
    shared_.sessions.emplace(session.get(), session);
    session->start();
  }
  accept();
}

void HttpServer::Impl::tick() {
  tick_timer_.expires_after(tick_);
  tick_timer_.async_wait([this](const error_code& stopped) {
    if (stopped) return;
    close_overdue();
    tick();
  });
}

void HttpServer::Impl::close_overdue() {
  const Instant now = Clock::now();
  std::vector<std::shared_ptr<Session>> overdue;
  for (const auto& [key, session] : shared_.sessions) {
    if (session->is_overdue(now)) overdue.push_back(session);
  }
  for (const std::shared_ptr<Session>& session : overdue) {
    add(shared_.counters.timeouts);
    session->close();
  }
}

HttpServerStats HttpServer::Impl::stats() const {
  const auto get = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  const Counters& counters = shared_.counters;
  HttpServerStats stats;
  stats.connections_open = get(counters.open);
  stats.connections_accepted = get(counters.accepted);
  stats.connections_refused = get(counters.refused);
  stats.requests = get(counters.requests);
  stats.requests_malformed = get(counters.malformed);
  stats.timeouts = get(counters.timeouts);
  stats.handler_exceptions = get(counters.exceptions);
  return stats;
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      HttpHandler handler) {
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  if (Result<void> listening = impl->listen(); !listening) return listening.error();
  impl->run();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;
std::uint16_t HttpServer::port() const { return impl_->port(); }
std::string HttpServer::address() const { return impl_->address(); }
HttpServerStats HttpServer::stats() const { return impl_->stats(); }

}  // namespace baton::net
