// Connections, their pools and the calls on them, all on one Boost.Asio thread.
#include "net/http_client.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <future>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "net/http_parser.hpp"

namespace baton::net {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kReadBlockBytes = 16384;
// Calls that call-backs start while the client is being destroyed; the rest is dropped.
constexpr int kLastTasksMax = 1000;

struct Call {
  Call(asio::io_context& io, HttpCall wanted, HttpClient::Callback callback)
      : request(std::move(wanted)), done(std::move(callback)), timer(io) {}

  HttpCall request;
  HttpClient::Callback done;  // empty once called
  asio::steady_timer timer;
  bool is_retry = false;
  bool is_finished() const { return !done; }
};

std::string describe(const HttpCall& call) {
  return call.method + " http://" + to_string(call.to) + call.target;
}

bool is_idempotent(const HttpCall& call) {
  return call.idempotent.value_or(call.method == "GET" || call.method == "HEAD" ||
                                  call.method == "PUT");
}

bool is_valid(const HttpCall& call) {
  const auto is_clean = [](std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) { return c >= 0 && c <= ' '; });
  };
  return !call.to.host.empty() && call.to.port != 0 && is_clean(call.to.host) &&
         call.target.starts_with('/') && is_clean(call.target) && is_clean(call.method) &&
         !call.method.empty();
}

std::string serialize(const HttpCall& call) {
  std::string out = call.method + " " + call.target + " HTTP/1.1\r\nHost: " + to_string(call.to) +
                    "\r\nUser-Agent: baton\r\nAccept: */*\r\n";
  for (const HttpHeader& header : call.headers) out += header.name + ": " + header.value + "\r\n";
  if (!call.body.empty()) out += "Content-Type: " + call.content_type + "\r\n";
  if (!call.body.empty() || call.method == "PUT" || call.method == "POST") {
    out += "Content-Length: " + std::to_string(call.body.size()) + "\r\n";
  }
  return out + "\r\n" + call.body;
}

class Connection;

// The connections to one address and the calls that wait for one.
struct Pool {
  std::set<std::shared_ptr<Connection>> open;  // the owner, busy and idle ones
  std::vector<std::shared_ptr<Connection>> idle;
  std::deque<std::shared_ptr<Call>> waiting;
};

// All pools and calls. Members run on the client thread, unless they say otherwise.
class Loop {
 public:
  explicit Loop(const HttpClientOptions& wanted) : options(wanted) {}
  void run();
  void stop();  // any thread but the client's own

  void start(std::shared_ptr<Call> call);
  void finish(const std::shared_ptr<Call>& call, Result<HttpReply> result);
  void arm_timer(const std::shared_ptr<Call>& call);
  void serve(Pool& pool);
  // The connection is done with its call: it rests in the pool, or is gone.
  void release(const std::shared_ptr<Connection>& connection, bool is_reusable);
  // A pooled connection was stale: all resting ones probably are. The call goes first.
  void retry(const std::shared_ptr<Call>& call);
  void close_all();

  const HttpClientOptions options;
  std::atomic<std::uint64_t> calls_count{0}, opened_count{0}, retries_count{0}, failures_count{0};
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::map<Endpoint, Pool> pools;  // after io: sockets must go before it
  std::set<std::shared_ptr<Call>> calls;
  bool is_stopping = false;
  std::thread thread;
};

// One connection and at most one call on it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Loop& client, Endpoint to)
      : client_(client),
        to_(std::move(to)),
        socket_(client.io),
        resolver_(client.io),
        idle_timer_(client.io) {}

  const Endpoint& to() const { return to_; }
  bool is_serving(const std::shared_ptr<Call>& call) const { return call_ == call; }
  void open_for(std::shared_ptr<Call> call);
  void reuse_for(std::shared_ptr<Call> call);
  void rest();
  void close();

 private:
  void on_resolved(const error_code& error, const tcp::resolver::results_type& found);
  void on_connected(const error_code& error);
  void write();
  void read();
  void on_read(const error_code& error, std::size_t bytes);
  void on_broken(const error_code& error);
  void on_bytes();
  bool pass_pieces();
  void conclude(Result<HttpReply> result, bool is_reusable);
  Error make_error(Errc code, const std::string& what) const;

  Loop& client_;
  const Endpoint to_;
  tcp::socket socket_;
  tcp::resolver resolver_;
  asio::steady_timer idle_timer_;
  std::shared_ptr<Call> call_;
  std::optional<HttpReplyReader> reader_;
  std::string output_, input_;
  std::array<char, kReadBlockBytes> block_;
  bool is_writing_ = false;
  bool got_bytes_ = false;  // of the current call's answer
  bool was_reused_ = false;
  bool is_closed_ = false;
};

Error Connection::make_error(Errc code, const std::string& what) const {
  return Error{code, describe(call_->request) + ": " + what};
}

void Connection::open_for(std::shared_ptr<Call> call) {
  call_ = std::move(call);
  error_code error;
  const asio::ip::address address = asio::ip::make_address(to_.host, error);
  auto self = shared_from_this();
  if (!error) {
    socket_.async_connect({address, to_.port},
                          [self](const error_code& failed) { self->on_connected(failed); });
    return;
  }
  resolver_.async_resolve(
      to_.host, std::to_string(to_.port),
      [self](const error_code& failed, const auto& found) { self->on_resolved(failed, found); });
}

void Connection::on_resolved(const error_code& error, const tcp::resolver::results_type& found) {
  if (is_closed_) return;
  if (error) {
    return conclude(make_error(Errc::unreachable,
                               "the host " + to_.host + " is not known (" + error.message() + ")"),
                    false);
  }
  asio::async_connect(socket_, found,
                      [self = shared_from_this()](const error_code& failed, const auto&) {
                        self->on_connected(failed);
                      });
}

void Connection::on_connected(const error_code& error) {
  if (is_closed_) return;
  if (error) {
    return conclude(make_error(Errc::unreachable,
                               "cannot connect to " + to_string(to_) + ": " + error.message()),
                    false);
  }
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  write();
  read();
}

void Connection::reuse_for(std::shared_ptr<Call> call) {
  idle_timer_.cancel();
  call_ = std::move(call);
  was_reused_ = true;
  write();
}

void Connection::write() {
  got_bytes_ = false;
  const HttpReadLimits limits{std::size_t{64} << 10, client_.options.reply_bytes_max};
  reader_.emplace(limits, call_->request.method == "HEAD");
  output_ = serialize(call_->request);
  is_writing_ = true;
  asio::async_write(socket_, asio::buffer(output_),
                    [self = shared_from_this()](const error_code& error, std::size_t) {
                      // A failure shows on the reading side too, and there perhaps behind an
                      // early answer such as 413.
                      self->is_writing_ = static_cast<bool>(error);
                    });
}

void Connection::read() {
  socket_.async_read_some(asio::buffer(block_),
                          [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                            self->on_read(error, bytes);
                          });
}

void Connection::on_read(const error_code& error, std::size_t bytes) {
  if (is_closed_) return;
  // At rest, neither an end nor uninvited bytes leave anything to use this connection for.
  if (!call_) return client_.release(shared_from_this(), false);
  if (error) return on_broken(error);
  got_bytes_ = true;
  input_.append(block_.data(), bytes);
  on_bytes();
  if (!is_closed_) read();
}

void Connection::on_broken(const error_code& error) {
  if (!got_bytes_) {
    if (was_reused_ && !call_->is_retry && is_idempotent(call_->request)) {
      const std::shared_ptr<Call> call = std::move(call_);
      const auto self = shared_from_this();
      client_.release(self, false);
      return client_.retry(call);
    }
    return conclude(make_error(Errc::unreachable, to_string(to_) +
                                                      " closed the connection without an answer (" +
                                                      error.message() + ")"),
                    false);
  }
  if (error == asio::error::eof && reader_->feed_end() == ReadProgress::complete) {
    if (!pass_pieces()) return;
    return conclude(HttpReply{reader_->status(), reader_->headers(), reader_->take_body()}, false);
  }
  conclude(make_error(Errc::unreachable, "the connection to " + to_string(to_) +
                                             " broke in mid-answer (" + error.message() + ")"),
           false);
}

// False if that was the end of the call.
bool Connection::pass_pieces() {
  if (!call_->request.on_piece || reader_->status() / 100 != 2) return true;
  const std::string piece = reader_->take_body();
  if (piece.empty()) return true;
  client_.arm_timer(call_);
  if (call_->request.on_piece(piece)) return true;
  conclude(make_error(Errc::closed, "ended by the receiver"), false);
  return false;
}

void Connection::on_bytes() {
  const ReadProgress progress = reader_->feed(input_);
  if (progress == ReadProgress::needs_header) return;
  if (is_failure(progress)) {
    const bool is_large = progress != ReadProgress::malformed;
    const std::string what =
        is_large ? "the answer is too large" : "the answer is not HTTP (" + reader_->fault() + ")";
    return conclude(make_error(is_large ? Errc::limit : Errc::malformed, what), false);
  }
  if (!pass_pieces() || progress != ReadProgress::complete) return;
  const bool is_reusable = reader_->keep_alive() && input_.empty() && !is_writing_;
  conclude(HttpReply{reader_->status(), reader_->headers(), reader_->take_body()}, is_reusable);
}

void Connection::conclude(Result<HttpReply> result, bool is_reusable) {
  const std::shared_ptr<Call> call = std::move(call_);
  call_.reset();
  const auto self = shared_from_this();  // release() may drop the last other owner
  client_.release(self, is_reusable);
  client_.finish(call, std::move(result));
}

void Connection::rest() {
  input_.clear();
  idle_timer_.expires_after(client_.options.idle_timeout);
  idle_timer_.async_wait([self = shared_from_this()](const error_code& stopped) {
    if (!stopped && !self->call_ && !self->is_closed_) self->client_.release(self, false);
  });
}

void Connection::close() {
  is_closed_ = true;
  error_code ignored;
  socket_.close(ignored);
  resolver_.cancel();
  idle_timer_.cancel();
}

void Loop::run() {
  thread = std::thread([this] {
    for (bool is_running = true; is_running;) {
      try {
        io.run();
        is_running = false;
      } catch (...) {  // allocation, or on_piece; the calls at hand end by their timeouts
      }
    }
  });
  pthread_setname_np(thread.native_handle(), options.thread_name.substr(0, 15).c_str());
}

void Loop::stop() {
  BATON_ASSERT(thread.get_id() != std::this_thread::get_id());
  asio::post(io, [this] {
    close_all();
    io.stop();
  });
  thread.join();
  // What call-backs have started meanwhile is refused here.
  io.restart();
  for (int count = 0; count < kLastTasksMax && io.poll_one() != 0; ++count) {
  }
}

void Loop::close_all() {
  is_stopping = true;
  for (auto& [to, pool] : pools) {
    pool.waiting.clear();
    pool.idle.clear();
    for (const auto& connection : pool.open) connection->close();
    pool.open.clear();
  }
  const std::set<std::shared_ptr<Call>> open_calls = calls;
  for (const std::shared_ptr<Call>& call : open_calls) {
    finish(call, Error{Errc::closed, describe(call->request) + ": the client is shutting down"});
  }
}

void Loop::start(std::shared_ptr<Call> call) {
  calls.insert(call);
  calls_count.fetch_add(1, std::memory_order_relaxed);
  if (is_stopping) {
    return finish(call, Error{Errc::closed, "the HTTP client is shutting down"});
  }
  if (!is_valid(call->request)) {
    return finish(call, Error{Errc::invalid_argument,
                              describe(call->request) + ": not a valid address or target"});
  }
  arm_timer(call);
  Pool& pool = pools[call->request.to];
  pool.waiting.push_back(std::move(call));
  serve(pool);
}

void Loop::finish(const std::shared_ptr<Call>& call, Result<HttpReply> result) {
  if (call->is_finished()) return;
  call->timer.cancel();
  calls.erase(call);
  if (!result) failures_count.fetch_add(1, std::memory_order_relaxed);
  const HttpClient::Callback done = std::exchange(call->done, nullptr);
  try {
    done(std::move(result));
  } catch (...) {  // a user's mistake must not disturb other calls
  }
}

void Loop::arm_timer(const std::shared_ptr<Call>& call) {
  call->timer.expires_after(call->request.timeout);
  call->timer.async_wait([this, call](const error_code& stopped) {
    if (stopped || call->is_finished()) return;
    // A piece may have moved the deadline after this wait was already due.
    if (call->timer.expiry() > Clock::now()) return;
    const auto ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(call->request.timeout).count();
    Pool& pool = pools[call->request.to];
    std::erase(pool.waiting, call);
    const auto busy = std::find_if(pool.open.begin(), pool.open.end(), [&](const auto& candidate) {
      return candidate->is_serving(call);
    });
    if (busy != pool.open.end()) release(std::shared_ptr<Connection>(*busy), false);
    finish(call, Error{Errc::timeout, describe(call->request) + ": no answer within " +
                                          std::to_string(ms) + " ms"});
  });
}

void Loop::serve(Pool& pool) {
  while (!pool.waiting.empty()) {
    const std::shared_ptr<Call> call = pool.waiting.front();
    if (!pool.idle.empty()) {
      const std::shared_ptr<Connection> connection = pool.idle.back();
      pool.idle.pop_back();
      pool.waiting.pop_front();
      connection->reuse_for(call);
    } else if (pool.open.size() < options.connections_per_address_max) {
      pool.waiting.pop_front();
      opened_count.fetch_add(1, std::memory_order_relaxed);
      const auto connection = std::make_shared<Connection>(*this, call->request.to);
      pool.open.insert(connection);
      connection->open_for(call);
    } else {
      return;
    }
  }
}

void Loop::release(const std::shared_ptr<Connection>& connection, bool is_reusable) {
  Pool& pool = pools[connection->to()];
  if (is_reusable) {
    connection->rest();
    pool.idle.push_back(connection);
  } else {
    connection->close();
    std::erase(pool.idle, connection);
    pool.open.erase(connection);
  }
  serve(pool);
  if (pool.open.empty() && pool.waiting.empty()) pools.erase(connection->to());
}

void Loop::retry(const std::shared_ptr<Call>& call) {
  if (call->is_finished()) return;
  retries_count.fetch_add(1, std::memory_order_relaxed);
  call->is_retry = true;
  Pool& pool = pools[call->request.to];
  for (const auto& connection : pool.idle) {
    connection->close();
    pool.open.erase(connection);
  }
  pool.idle.clear();
  pool.waiting.push_front(call);
  serve(pool);
}

}  // namespace

class HttpClient::Impl : public Loop {
 public:
  using Loop::Loop;
};

HttpClient::HttpClient(const HttpClientOptions& options) : impl_(std::make_unique<Impl>(options)) {
  impl_->run();
}

HttpClient::~HttpClient() { impl_->stop(); }

void HttpClient::send(HttpCall call, Callback done) {
  BATON_ASSERT(done);
  asio::post(impl_->io,
             [impl = impl_.get(), started = std::make_shared<Call>(impl_->io, std::move(call),
                                                                   std::move(done))]() mutable {
               impl->start(std::move(started));
             });
}

Result<HttpReply> HttpClient::send_and_wait(HttpCall call) {
  BATON_ASSERT(impl_->thread.get_id() != std::this_thread::get_id());
  std::promise<Result<HttpReply>> reply;
  send(std::move(call), [&](Result<HttpReply> result) { reply.set_value(std::move(result)); });
  return reply.get_future().get();
}

void HttpClient::defer(std::function<void()> task) { asio::post(impl_->io, std::move(task)); }

HttpClientStats HttpClient::stats() const {
  HttpClientStats stats;
  stats.calls = impl_->calls_count.load(std::memory_order_relaxed);
  stats.connections_opened = impl_->opened_count.load(std::memory_order_relaxed);
  stats.retries = impl_->retries_count.load(std::memory_order_relaxed);
  stats.failures = impl_->failures_count.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace baton::net
