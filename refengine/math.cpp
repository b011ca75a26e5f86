// The arithmetic of the engine; see the header for the rules that every function here keeps.
#include "refengine/math.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "refengine/check.hpp"

namespace baton::refengine {

namespace {

// Four floats that are added and multiplied side by side; lanes never meet.
using Lanes = float __attribute__((vector_size(16)));
constexpr std::size_t kLanes = 4;

Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

void store(const Lanes& lanes, float* to) { std::memcpy(to, &lanes, sizeof lanes); }

// One tile of the product: kTokens rows by 4 * kVectors outputs, each with its own accumulator.
template <std::size_t kTokens, std::size_t kVectors>
void matmul_tile(const Rows& x, const Weights& w, std::size_t token, std::size_t output, float* y) {
  Lanes sums[kTokens][kVectors] = {};
  const float* row = x.data + token * x.stride;
  const float* weight = w.data + output;
  for (std::size_t i = 0; i < w.in; ++i, weight += w.out) {
    Lanes column[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) column[v] = load(weight + v * kLanes);
    for (std::size_t t = 0; t < kTokens; ++t) {
      const float value = row[t * x.stride + i];
      const Lanes spread = {value, value, value, value};
      for (std::size_t v = 0; v < kVectors; ++v) sums[t][v] += spread * column[v];
    }
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      store(sums[t][v], y + (token + t) * w.out + output + v * kLanes);
    }
  }
}

// Reduces an angle to r in [-pi/4, pi/4] and the quadrant it came from. pi/2 is split so that the
// product of its head (33 bits) with the quadrant number is exact.
struct Angle {
  double r;
  unsigned quadrant;
};

Angle reduce(double x) {
  constexpr double kTwoOverPi = 0.63661977236758134308;
  constexpr double kHalfPiHead = 0x1.921fb544p+0;
  constexpr double kHalfPiTail = 6.07710050650619224932e-11;
  REFENGINE_CHECK(x >= 0.0);
  REFENGINE_CHECK(x < 1e5);
  const auto turns = static_cast<unsigned>(x * kTwoOverPi + 0.5);
  const double r = (x - turns * kHalfPiHead) - turns * kHalfPiTail;
  return {r, turns & 3U};
}

// Taylor series, summed from the smallest term by Horner's rule.
double series(double first, unsigned start, double r) {
  double sum = 0.0;
  for (unsigned n = start + 16; n > start; n -= 2) {
    sum = -(1.0 + sum) * (r * r) / static_cast<double>(n * (n - 1));
  }
  return first * (1.0 + sum);
}

double sine_near_zero(double r) { return series(r, 1, r); }
double cosine_near_zero(double r) { return series(1.0, 0, r); }

// In the header's words; inline so that loops over it are vectorised.
inline float exponential_inline(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2Head = 0.693359375F;  // few bits, so that its product with n is exact
  constexpr float kLn2Tail = -2.12194440e-4F;
  constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23: adding it leaves an integer
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  const float n = (x * kLog2E + kRounder) - kRounder;
  const float r = (x - n * kLn2Head) - n * kLn2Tail;
  float sum = 1.0F / 5040.0F;
  sum = sum * r + 1.0F / 720.0F;
  sum = sum * r + 1.0F / 120.0F;
  sum = sum * r + 1.0F / 24.0F;
  sum = sum * r + 1.0F / 6.0F;
  sum = sum * r + 0.5F;
  sum = sum * r + 1.0F;
  sum = sum * r + 1.0F;
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127);
  return sum * std::bit_cast<float>(exponent << 23U);
}

}  // namespace

float exponential(float x) { return exponential_inline(x); }

void exponentials(std::span<float> x, float shift) {
  for (float& value : x) value = exponential_inline(value - shift);
}

float logarithm(float x) {
  REFENGINE_CHECK(x > 0.0F);
  constexpr float kLn2 = 0.69314718F;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  int exponent = static_cast<int>(bits >> 23U) - 127;
  float m = std::bit_cast<float>((bits & 0x7fffffU) | 0x3f800000U);
  if (m > 1.41421356F) {
    m *= 0.5F;
    ++exponent;
  }
  const float s = (m - 1.0F) / (m + 1.0F);
  const float square = s * s;
  float sum = 1.0F / 9.0F;
  sum = sum * square + 1.0F / 7.0F;
  sum = sum * square + 1.0F / 5.0F;
  sum = sum * square + 1.0F / 3.0F;
  sum = sum * square + 1.0F;
  return 2.0F * s * sum + static_cast<float>(exponent) * kLn2;
}

double sine(double x) {
  const Angle angle = reduce(x);
  const bool swapped = (angle.quadrant & 1U) != 0;
  const double value = swapped ? cosine_near_zero(angle.r) : sine_near_zero(angle.r);
  return (angle.quadrant & 2U) != 0 ? -value : value;
}

double cosine(double x) {
  const Angle angle = reduce(x);
  const bool swapped = (angle.quadrant & 1U) != 0;
  const double value = swapped ? sine_near_zero(angle.r) : cosine_near_zero(angle.r);
  return angle.quadrant == 1 || angle.quadrant == 2 ? -value : value;
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t tie = (bits >> 16U) & 1U;
  return static_cast<std::uint16_t>((bits + 0x7fffU + tie) >> 16U);
}

float dot(std::span<const float> a, std::span<const float> b) {
  REFENGINE_CHECK(a.size() == b.size());
  REFENGINE_CHECK(a.size() % (2 * kLanes) == 0);
  Lanes low = {};
  Lanes high = {};
  for (std::size_t i = 0; i < a.size(); i += 2 * kLanes) {
    low += load(a.data() + i) * load(b.data() + i);
    high += load(a.data() + i + kLanes) * load(b.data() + i + kLanes);
  }
  const Lanes halves = low + high;
  return (halves[0] + halves[2]) + (halves[1] + halves[3]);
}

void rms_norm(std::span<const float> x, std::span<const float> weight, float epsilon,
              std::span<float> out) {
  const float mean = dot(x, x) / static_cast<float>(x.size());
  const float scale = 1.0F / std::sqrt(mean + epsilon);
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] * scale * weight[i];
}

void matmul(const Rows& x, const Weights& w, float* y) {
  REFENGINE_CHECK(w.out % (2 * kLanes) == 0);
  // Outputs outside, tokens inside: a strip of weights stays in the first-level cache.
  const std::size_t tiled = x.rows - x.rows % 4;
  for (std::size_t output = 0; tiled > 0 && output < w.out; output += 2 * kLanes) {
    for (std::size_t token = 0; token < tiled; token += 4) {
      matmul_tile<4, 2>(x, w, token, output, y);
    }
  }
  for (std::size_t token = tiled; token < x.rows; ++token) {
    std::size_t output = 0;
    for (; output + 8 * kLanes <= w.out; output += 8 * kLanes) {
      matmul_tile<1, 8>(x, w, token, output, y);
    }
    for (; output < w.out; output += 2 * kLanes) matmul_tile<1, 2>(x, w, token, output, y);
  }
}

void weighted_sum(const Rows& rows, const float* weights, float* out) {
  // The same loop as a product of one row with a matrix, seen from the other side.
  matmul({weights, 1, rows.rows}, {rows.data, rows.rows, rows.stride}, out);
}

void silu_times(std::span<float> gate, std::span<const float> up) {
  for (std::size_t i = 0; i < gate.size(); ++i) {
    gate[i] = gate[i] / (1.0F + exponential_inline(-gate[i])) * up[i];
  }
}

void add_partials(std::span<const float> p0, std::span<const float> p1, std::span<const float> p2,
                  std::span<const float> p3, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += (p0[i] + p1[i]) + (p2[i] + p3[i]);
}

}  // namespace baton::refengine
