// Registry: what the bootstrap server knows, as a pure function from request to response. [spec 6]
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "baton/types.hpp"
#include "net/http_message.hpp"

namespace baton::bootstrap {

struct RegistryOptions {
  // Clients of state R1 fail on keys they do not know, so by default the R2 key
  // decode_allocation_policy appears only when it says something (any policy but "early").
  bool always_send_policy = false;
  // A room's entry lives between one and two of these. [spec 6.7]
  Duration room_interval = std::chrono::seconds(120);
  // Beyond: 503. A million rooms are about 50 MB.
  std::size_t rooms_max = std::size_t{1} << 20;
  std::size_t cells_max = std::size_t{1} << 16;
};

// No clock, no lock: the caller passes the time and calls from one thread at a time.
class Registry {
 public:
  explicit Registry(const RegistryOptions& options = {}) : options_(options) {}

  net::HttpResponse handle(const net::HttpRequest& request, Instant now);

  // Every (dp, cp, tp, pp) cell of the shape has registered. The reference counts requests instead,
  // so there a rank that registers twice stands for one that never did. [spec W12]
  bool is_ready() const;
  std::size_t cells_count() const { return cells_.size(); }
  std::size_t rooms_count() const { return rooms_.size(); }

 private:
  using Cell = std::array<std::int64_t, 4>;  // dp group, cp, tp, pp
  struct Address {
    std::string ip;
    std::int64_t port = 0;
  };
  // Set by the first registration, for good; optional parts by the first that has them.
  struct Shape {
    std::int64_t attn_tp_size = 0, attn_cp_size = 0, dp_size = 0, pp_size = 0;
    std::int64_t page_size = 0;
    std::optional<std::string> kv_cache_dtype;
    bool follow_bootstrap_room = true;
    bool enable_dsa_cache_layer_split = false;
    std::optional<std::int64_t> prefill_http_port;
  };
  struct RoomEntry {
    std::int64_t dp_rank = 0;
    Instant since;
  };
  struct PutBody;  // one parsed registration
  static std::optional<PutBody> parse_put(const std::string& body);

  net::HttpResponse put_route(const std::string& body);
  net::HttpResponse get_route(std::string_view query) const;
  net::HttpResponse get_topology() const;
  net::HttpResponse register_dp_rank(const std::string& body, Instant now);
  net::HttpResponse query_dp_ranks(const std::string& body) const;
  void accept(const PutBody& put);
  bool is_in_shape(const Cell& cell) const;
  void drop_old_rooms(Instant now);

  RegistryOptions options_;
  std::optional<Shape> shape_;
  std::string layout_;            // dsv41_spec_layout as it came, spaced; empty: null
  std::string canonical_layout_;  // for comparing
  std::string policy_ = "early";
  std::map<Cell, Address> cells_;
  std::int64_t cells_in_shape_ = 0;
  std::unordered_map<std::uint64_t, RoomEntry> rooms_;
  std::optional<Instant> next_sweep_;
};

}  // namespace baton::bootstrap
