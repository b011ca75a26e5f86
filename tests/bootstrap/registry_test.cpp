// The registry as a function: what the recordings do not show. [spec 6]
#include "bootstrap/registry.hpp"

#include <gtest/gtest.h>

#include "bootstrap/json_text.hpp"
#include "bootstrap/query_string.hpp"

namespace baton::bootstrap {
namespace {

using net::HttpResponse;

constexpr Instant kStart{std::chrono::hours(1)};
constexpr const char* kTrouble = "500 Internal Server Error\n\nServer got itself in trouble";

HttpResponse ask(Registry& registry, std::string method, std::string target, std::string body = "",
                 Instant now = kStart) {
  net::HttpRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.body = std::move(body);
  return registry.handle(request, now);
}

// A registration; `more` replaces or adds members (later keys win).
std::string put_body(const std::string& more = "") {
  return R"({"attn_tp_size": 1, "attn_tp_rank": 0, "attn_cp_size": 1, "attn_cp_rank": 0,
             "attn_dp_size": 1, "attn_dp_rank": 0, "pp_size": 1, "pp_rank": 0,
             "system_dp_size": 1, "system_dp_rank": 0, "rank_ip": "10.0.0.1", "rank_port": 4000,
             "page_size": 16, "kv_cache_dtype": "bfloat16")" +
         more + "}";
}

HttpResponse put(Registry& registry, const std::string& more = "") {
  return ask(registry, "PUT", "/route", put_body(more));
}

HttpResponse topology(Registry& registry) {
  return ask(registry, "GET",
             "/route?prefill_dp_rank=-1&prefill_cp_rank=-1&target_tp_rank=-1&target_pp_rank=-1");
}

HttpResponse route(Registry& registry, const std::string& dp, const std::string& cp,
                   const std::string& tp, const std::string& pp) {
  return ask(registry, "GET",
             "/route?prefill_dp_rank=" + dp + "&prefill_cp_rank=" + cp + "&target_tp_rank=" + tp +
                 "&target_pp_rank=" + pp);
}

void expect_trouble(const HttpResponse& response) {
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body, kTrouble);
  EXPECT_TRUE(response.close);
}

// [spec W12] The reference is ready here, and answers for ranks that never came.
TEST(Registry, RankThatRegistersTwiceCountsOnce) {
  Registry registry;
  for (int repeat = 0; repeat < 5; ++repeat) {
    EXPECT_EQ(put(registry, R"(, "attn_tp_size": 2)").body, "OK");
  }
  EXPECT_FALSE(registry.is_ready());
  EXPECT_EQ(topology(registry).status, 503);
  EXPECT_EQ(topology(registry).body,
            "Prefill server not fully registered yet (1 workers registered).");
  put(registry, R"(, "attn_tp_size": 2, "attn_tp_rank": 1)");
  EXPECT_TRUE(registry.is_ready());
  EXPECT_EQ(topology(registry).status, 200);
}

TEST(Registry, RanksOutsideTheShapeDoNotMakeItReady) {
  Registry registry;
  put(registry, R"(, "attn_tp_size": 2)");
  put(registry, R"(, "attn_tp_size": 4, "attn_tp_rank": 3)");
  put(registry, R"(, "attn_tp_size": 2, "attn_tp_rank": -1)");
  EXPECT_FALSE(registry.is_ready());
  put(registry, R"(, "attn_tp_size": 2, "attn_tp_rank": 1)");
  EXPECT_TRUE(registry.is_ready());
  EXPECT_NE(topology(registry).body.find("\"attn_tp_size\": 2,"), std::string::npos);
}

TEST(Registry, EveryAxisOfTheShapeCounts) {
  Registry registry;
  int count = 0;
  for (int dp = 0; dp < 2; ++dp) {
    for (int cp = 0; cp < 2; ++cp) {
      for (int tp = 0; tp < 2; ++tp) {
        for (int pp = 0; pp < 2; ++pp) {
          EXPECT_FALSE(registry.is_ready());
          put(registry, R"(, "attn_dp_size": 2, "attn_cp_size": 2, "attn_tp_size": 2, "pp_size": 2,
                           "attn_dp_rank": )" +
                            std::to_string(dp) + R"(, "attn_cp_rank": )" + std::to_string(cp) +
                            R"(, "attn_tp_rank": )" + std::to_string(tp) + R"(, "pp_rank": )" +
                            std::to_string(pp) + R"(, "rank_port": )" +
                            std::to_string(5000 + count++));
        }
      }
    }
  }
  EXPECT_TRUE(registry.is_ready());
  EXPECT_EQ(route(registry, "1", "0", "1", "1").body,
            R"({"rank_ip": "10.0.0.1", "rank_port": 5011})");
}

TEST(Registry, AddressesThatChangeAreReplaced) {
  Registry registry;
  put(registry);
  put(registry, R"(, "rank_ip": "10.0.0.2", "rank_port": "4001")");
  EXPECT_EQ(route(registry, "0", "0", "0", "0").body,
            R"({"rank_ip": "10.0.0.2", "rank_port": 4001})");
}

TEST(Registry, FirstRegistrationDecidesTheShape) {
  Registry registry;
  put(registry, R"(, "kv_cache_dtype": null)");
  put(registry, R"(, "page_size": 64, "kv_cache_dtype": "fp8", "prefill_http_port": "30001",
                   "load_balance_method": "round_robin")");
  put(registry, R"(, "kv_cache_dtype": "bf16", "prefill_http_port": 30002)");
  const std::string body = topology(registry).body;
  EXPECT_TRUE(body.starts_with(
      R"({"attn_tp_size": 1, "attn_cp_size": 1, "dp_size": 1, "pp_size": 1, "page_size": 16, )"
      R"("kv_cache_dtype": "fp8", "follow_bootstrap_room": true, )"
      R"("enable_dsa_cache_layer_split": false, "prefill_http_port": 30001, )"))
      << body;
}

TEST(Registry, PolicyKeyIsLeftOutWhileItSaysNothing) {
  Registry r1;
  put(r1);
  EXPECT_EQ(topology(r1).body.find("decode_allocation_policy"), std::string::npos);
  Registry r2(RegistryOptions{.always_send_policy = true});
  put(r2);
  EXPECT_NE(topology(r2).body.find(R"("enable_dsa_cache_layer_split": false, )"
                                   R"("decode_allocation_policy": "early", "prefill_http_port")"),
            std::string::npos);
  Registry other;
  put(other, R"(, "decode_allocation_policy": "prefill_complete")");
  EXPECT_NE(topology(other).body.find(R"("decode_allocation_policy": "prefill_complete", )"),
            std::string::npos);
  const HttpResponse refused = put(other);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.body, "Inconsistent prefill allocation policies");
}

TEST(Registry, LayoutsAreComparedAsValues) {
  Registry registry;
  EXPECT_EQ(put(registry, R"(, "dsv41_spec_layout": {"a": 1, "b": [1,2,"x, y: z"]})").status, 200);
  EXPECT_EQ(put(registry, R"(, "dsv41_spec_layout": {"b":[1, 2, "x, y: z"],"a":1})").status, 200);
  EXPECT_EQ(put(registry, R"(, "dsv41_spec_layout": {"a": 1})").status, 400);
  EXPECT_EQ(put(registry).body, "DeepSeek-V4.1 DSpark PD layout differs across prefill ranks");
  EXPECT_NE(
      topology(registry).body.find(R"("dsv41_spec_layout": {"b": [1, 2, "x, y: z"], "a": 1}, )"),
      std::string::npos);
}

TEST(Registry, BodiesThatMakeNoSenseAreTrouble) {
  Registry registry;
  const std::string deep(100'000, '[');
  for (const std::string& body :
       {std::string(), std::string("not json"), std::string("[]"), std::string("3"),
        std::string("{}"), deep, "{\"a\": " + deep + "}", std::string("{\"a\": \"\xff\"}"),
        put_body(R"(, "rank_port": "x")"), put_body(R"(, "rank_ip": 3)"),
        put_body(R"(, "attn_tp_size": 0)"), put_body(R"(, "attn_tp_size": 1000000)"),
        put_body(R"(, "page_size": null)"), put_body(R"(, "kv_cache_dtype": 3)"),
        put_body(R"(, "attn_tp_rank": 99999999999999999999)"), put_body(R"(, "attn_tp_rank": 1.5)"),
        put_body(R"(, "prefill_http_port": "x")")}) {
    expect_trouble(ask(registry, "PUT", "/route", body));
    expect_trouble(ask(registry, "POST", "/register_dp_rank", body));
    expect_trouble(ask(registry, "POST", "/query_dp_ranks", body));
  }
  EXPECT_EQ(registry.cells_count(), 0u);
}

TEST(Registry, OrderOfChecksOnRoutes) {
  Registry registry;
  EXPECT_EQ(route(registry, "", "0", "0", "0").status, 400);
  EXPECT_EQ(ask(registry, "GET", "/route").body, "Missing inputs for bootstrap server.");
  expect_trouble(route(registry, "x", "0", "0", "0"));  // converted before readiness is tested
  EXPECT_EQ(route(registry, "0", "x", "0", "0").status, 503);  // and these after
  put(registry);
  expect_trouble(route(registry, "0", "x", "0", "0"));
  expect_trouble(route(registry, "-1", "-1", "-1", "x"));
  EXPECT_EQ(route(registry, "-1", "0", "-1", "-1").body,
            "Bootstrap info not found for dp_rank=-1 cp_rank=0 tp_rank=-1 pp_rank=-1");
  EXPECT_EQ(route(registry, "-1", "0", "-1", "-1").status, 404);
  EXPECT_EQ(route(registry, "%30", "+0", "0_0", "00").status, 200);  // as Python's int() reads
}

TEST(Registry, MethodsAndPaths) {
  Registry registry;
  for (const char* method : {"HEAD", "POST", "DELETE", "OPTIONS", "BREW"}) {
    const HttpResponse response = ask(registry, method, "/route");
    EXPECT_EQ(response.status, 405);
    EXPECT_EQ(response.body, "Method not allowed");
    EXPECT_EQ(response.content_type, "application/json; charset=utf-8");
    EXPECT_TRUE(response.headers.empty());
  }
  for (const char* path : {"/register_dp_rank", "/query_dp_ranks", "/health"}) {
    const HttpResponse response = ask(registry, "DELETE", path);
    EXPECT_EQ(response.status, 405);
    EXPECT_EQ(response.body, "405: Method Not Allowed");
    EXPECT_EQ(response.headers[0],
              (net::HttpHeader{"Allow", std::string(path) == "/health" ? "GET,HEAD" : "POST"}));
  }
  EXPECT_EQ(ask(registry, "HEAD", "/health").body, "OK");
  EXPECT_EQ(ask(registry, "GET", "/health?x=y#z").body, "OK");
  for (const char* path : {"/", "/routes", "/route/", "*", ""}) {
    EXPECT_EQ(ask(registry, "GET", path).status, 404) << path;
    EXPECT_EQ(ask(registry, "GET", path).body, "404: Not Found");
  }
}

TEST(Registry, RoomsAreAnsweredInTheOrderAsked) {
  Registry registry;
  const auto add = [&](const std::string& room, int rank) {
    return ask(registry, "POST", "/register_dp_rank",
               "{\"bootstrap_room\": " + room + ", \"dp_rank\": " + std::to_string(rank) + "}");
  };
  EXPECT_EQ(add("5", 1).body, "OK");
  EXPECT_EQ(add("\"9223372036854775807\"", 2).body, "OK");
  EXPECT_EQ(add("5", 3).body, "OK");
  expect_trouble(add("-5", 3));
  expect_trouble(add("9223372036854775808", 3));
  expect_trouble(add("6", -1));
  const auto query = [&](const std::string& rooms) {
    return ask(registry, "POST", "/query_dp_ranks", "{\"bootstrap_rooms\": " + rooms + "}");
  };
  const HttpResponse response = query("[\"9223372036854775807\", 1, 5, \"5\", -1]");
  EXPECT_EQ(response.body, R"({"9223372036854775807": 2, "5": 3})");
  EXPECT_EQ(response.content_type, "application/json; charset=utf-8");
  EXPECT_EQ(query("[5]").body, query("[5]").body);  // not consumed
  expect_trouble(query("5"));
  expect_trouble(query("[\"x\"]"));
}

// [spec 6.7]
TEST(Registry, RoomsLiveBetweenOneAndTwoIntervals) {
  RegistryOptions options;
  options.room_interval = std::chrono::seconds(120);
  Registry registry(options);
  const auto at = [](int seconds) { return kStart + std::chrono::seconds(seconds); };
  const auto add = [&](const char* room, Instant now) {
    ask(registry, "POST", "/register_dp_rank",
        std::string("{\"dp_rank\": 0, \"bootstrap_room\": ") + room + "}", now);
  };
  add("1", at(0));
  add("2", at(1));
  ask(registry, "GET", "/health", "", at(120));
  EXPECT_EQ(registry.rooms_count(), 2u);  // not older than one interval
  add("1", at(130));                      // stamped anew
  ask(registry, "GET", "/health", "", at(240));
  EXPECT_EQ(registry.rooms_count(), 1u);
  ask(registry, "GET", "/health", "", at(360));
  EXPECT_EQ(registry.rooms_count(), 0u);
}

TEST(Registry, TablesAreBounded) {
  RegistryOptions options;
  options.rooms_max = 1;
  options.cells_max = 1;
  Registry registry(options);
  const auto add = [&](const char* room) {
    return ask(registry, "POST", "/register_dp_rank",
               std::string("{\"dp_rank\": 0, \"bootstrap_room\": ") + room + "}");
  };
  EXPECT_EQ(add("1").status, 200);
  EXPECT_EQ(add("2").status, 503);
  EXPECT_EQ(add("1").status, 200);
  EXPECT_EQ(put(registry).status, 200);
  EXPECT_EQ(put(registry, R"(, "attn_tp_rank": 1)").status, 503);
  EXPECT_EQ(put(registry).status, 200);
}

TEST(JsonText, SpacingLeavesStringsAlone) {
  EXPECT_EQ(space_json(R"({"a,b":[1,2],"c:\"d,e\\":{}})"), R"({"a,b": [1, 2], "c:\"d,e\\": {}})");
  EXPECT_EQ(quote_json("a\"\\\n\xc3\xa9\x7f"), R"("a\"\\\n\u00e9\u007f")");
  EXPECT_EQ(canonical_json(R"({"b": 1, "a": [ ]})"), R"({"a":[],"b":1})");
  EXPECT_EQ(canonical_json("{"), std::nullopt);
  EXPECT_TRUE(is_shallow_json("\"" + std::string(1000, '[') + "\""));
  EXPECT_FALSE(is_shallow_json(std::string(65, '[')));
}

TEST(QueryString, IntegersAsPythonReadsThem) {
  EXPECT_EQ(parse_integer(" +1_000\n"), 1000);
  EXPECT_EQ(parse_integer("-007"), -7);
  for (const char* text :
       {"", " ", "+", "1__0", "_1", "1_", "0x1", "1.0", "1 2", "--1", "9223372036854775808"}) {
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  }
}

TEST(QueryString, ParametersAreDecodedAndTheFirstOneCounts) {
  EXPECT_EQ(query_parameter("a=1&b=%20x+y%2&a=2", "a"), "1");
  EXPECT_EQ(query_parameter("a=1&b=%20x+y%2&a=2", "b"), " x y%2");
  EXPECT_EQ(query_parameter("&&a&=3", "a"), "");
  EXPECT_EQ(query_parameter("%61=4", "a"), "4");
}

}  // namespace
}  // namespace baton::bootstrap
