// Frames: one ZeroMQ multipart message as bytes. Empty frames count.
#pragma once

#include <string>
#include <vector>

namespace baton {

using Frame = std::string;
using Frames = std::vector<Frame>;

}  // namespace baton
