// The test program, which is also the peer process that the tests start: --peer runs that.
#include <gtest/gtest.h>

#include <string_view>

#include "engine/peer_program.hpp"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--peer") {
    return baton::engine::test::run_peer_program(argc, argv);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
