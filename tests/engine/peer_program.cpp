// Commands: "read <offset> <length>" (raw bytes follow), "guards", "unregister <index>",
// "register <index>", "quit". The first line it prints is "<descriptor> <address>".
#include "engine/peer_program.hpp"

#include <signal.h>
#include <sys/prctl.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "engine/pool.hpp"

namespace baton::engine::test {
namespace {

void say(const std::string& line) {
  std::cout << line << '\n';
  std::cout.flush();
}

void obey(const std::string& word, TransferEngine& engine, Pool& pool,
          std::array<RegionId, 2>& regions) {
  std::size_t first = 0, second = 0;
  if (word == "read") {
    std::cin >> first >> second;
    std::cout.write(reinterpret_cast<const char*>(pool.bytes().data() + first),
                    static_cast<std::streamsize>(second));
    std::cout.flush();
  } else if (word == "guards") {
    say(pool.guards_are_intact() ? "intact" : "damaged");
  } else if (word == "unregister") {
    std::cin >> first;
    const Result<void> done = engine.unregister_region(regions.at(first));
    say(done ? "ok" : done.error().text);
  } else if (word == "register") {
    std::cin >> first;
    const Result<RegionId> id = engine.register_region(pool.region(first));
    if (id) regions.at(first) = *id;
    say(id ? "ok" : id.error().text);
  }
}

}  // namespace

int run_peer_program(int argc, char** argv) {
  if (argc < 6) return 2;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  EngineOptions options;
  options.port = static_cast<std::uint16_t>(std::atoi(argv[4]));
  auto engine = make_engine(argv[2], options);
  if (!engine) {
    say("error " + engine.error().text);
    return 1;
  }
  Pool pool(static_cast<std::size_t>(std::atoll(argv[5])), std::strcmp(argv[3], "shared") == 0);
  std::array<RegionId, 2> regions{};
  for (std::size_t i = 0; i < 2; ++i) {
    regions.at(i) = (*engine)->register_region(pool.region(i)).value();
  }
  say((*engine)->local_descriptor().value() + " " +
      std::to_string(reinterpret_cast<std::uint64_t>(pool.bytes().data())));
  std::string word;
  while (std::cin >> word && word != "quit") obey(word, **engine, pool, regions);
  return 0;
}

}  // namespace baton::engine::test
