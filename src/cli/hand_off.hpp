// HandOffs: requests sent to a prefill and a decode process, and what came back.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.hpp"
#include "baton/result.hpp"
#include "cli/messages.hpp"
#include "cli/wakeup.hpp"
#include "net/http_client.hpp"
#include "net/line_splitter.hpp"

namespace baton::cli {

struct Deployment {
  Endpoint prefill, decode;
};

struct HandOffOutcome {
  PrefillReply prefill;
  std::vector<std::int32_t> tokens;
  DoneLine decode;
};

// Sends both halves of each request at the same time; they find each other by the room.
class HandOffs {
 public:
  HandOffs(Deployment deployment, std::size_t requests_max, Duration timeout);
  // Ends what is open: closes its connections, at which both sides abort the request.
  ~HandOffs();

  // `on_text` is called on the client's thread.
  void start(const ServeRequest& request, std::function<void(std::string_view)> on_text);

  // Readable when a request ended since wakeup().clear().
  Wakeup& wakeup() { return wakeup_; }
  bool is_done() const;
  // The first failure of any request.
  std::optional<Error> error() const;
  // In the order of start(); once is_done() and without an error.
  std::vector<HandOffOutcome> take_outcomes();

 private:
  struct Request {
    HandOffOutcome outcome;
    std::optional<net::LineSplitter> lines;
    std::function<void(std::string_view)> on_text;
    bool is_complete = false;  // the line "done" came
  };

  net::HttpCall call_to(const Endpoint& to, const std::string& body) const;
  void on_prefill(Request& request, const Result<net::HttpReply>& reply);
  bool on_decode_line(Request& request, std::string_view line);
  void on_decode(Request& request, const Result<net::HttpReply>& reply);
  void fail(Error error);
  void end_half();

  Deployment deployment_;
  Duration timeout_;
  Wakeup wakeup_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Request>> requests_;  // contents belong to the client's thread
  std::size_t halves_open_ = 0;                     // guarded by mutex_
  std::optional<Error> error_;                      // guarded by mutex_
  net::HttpClient client_;                          // last: its thread uses all of the above
};

}  // namespace baton::cli
