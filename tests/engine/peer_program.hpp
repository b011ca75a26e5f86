// The peer process of the engine tests: registers a pool and obeys lines on its standard input.
#pragma once

namespace baton::engine::test {

// --peer <engine> <shared|private> <port> <region bytes>
int run_peer_program(int argc, char** argv);

}  // namespace baton::engine::test
