// The HTTP face of prefill and decode.
#include "cli/service.hpp"

#include <cstdio>
#include <utility>

namespace baton::cli {

int fail(std::string_view role, const std::string& text) {
  std::fprintf(stderr, "baton %.*s: %s\n", static_cast<int>(role.size()), role.data(),
               text.c_str());
  return kExitFailed;
}

Result<std::unique_ptr<TransferEngine>> make_rank_engine(const RankOptions& options) {
  EngineOptions engine;
  engine.host = options.host;
  return make_engine(options.transport, engine);
}

net::HttpResponse error_response(int status, const std::string& text) {
  net::HttpResponse response;
  response.status = status;
  response.content_type = net::kJsonContent;
  response.body = encode_error(text);
  return response;
}

namespace {

net::HttpResponse health_response(std::string_view role) {
  net::HttpResponse response;
  response.content_type = net::kJsonContent;
  response.body = "{\"role\": \"" + std::string(role) + "\", \"status\": \"ok\"}";
  return response;
}

void on_generate(const net::HttpRequest& http, net::HttpResponder responder, const Rank& rank,
                 const Submit& submit) {
  Result<ServeRequest> request = decode_request(http.body, rank.tokenizer);
  if (!request) return responder.respond(error_response(400, request.error().text));
  if (Result<void> fits = rank.check(request->generate); !fits) {
    return responder.respond(error_response(400, fits.error().text));
  }
  if (!submit(std::move(*request), responder)) {
    responder.respond(error_response(503, "too many requests wait here; try again later"));
  }
}

}  // namespace

Result<std::unique_ptr<net::HttpServer>> serve(std::string_view role, const RankOptions& options,
                                               const Rank& rank, Submit submit) {
  net::HttpServerOptions server;
  server.host = options.host;
  server.port = options.http_port;
  return net::HttpServer::start(
      server, [role = std::string(role), &rank, submit = std::move(submit)](
                  net::HttpRequest request, net::HttpResponder responder) {
        const std::string path = request.target.substr(0, request.target.find('?'));
        const char* method = path == "/health" ? "GET" : "POST";
        if (path != "/health" && path != "/generate") {
          responder.respond(error_response(404, "no " + path + " here; POST /generate"));
        } else if (request.method != method) {
          responder.respond(error_response(405, path + " takes " + method));
        } else if (path == "/health") {
          responder.respond(health_response(role));
        } else {
          on_generate(request, std::move(responder), rank, submit);
        }
      });
}

int announce_and_wait(const std::string& address, const StopSignals& signals) {
  std::printf("ready %s\n", address.c_str());
  std::fflush(stdout);
  signals.wait_for_stop();
  return kExitOk;
}

}  // namespace baton::cli
