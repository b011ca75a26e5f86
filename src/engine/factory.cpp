// Makes engines by name.
#include <string>

#include "baton/engine.hpp"
#include "engine/local_engine.hpp"
#include "engine/tcp_engine.hpp"

namespace baton {

std::vector<std::string> engine_names() { return {"local", "mooncake_tcp"}; }

Result<std::unique_ptr<TransferEngine>> make_engine(std::string_view name,
                                                    const EngineOptions& options) {
  if (name == "local") return engine::LocalEngine::create();
  if (name == "mooncake_tcp") return engine::TcpEngine::create(options);
  return Error{Errc::invalid_argument,
               "engine \"" + std::string(name) + "\" is unknown; known: local, mooncake_tcp"};
}

}  // namespace baton
