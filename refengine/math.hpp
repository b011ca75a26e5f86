// The arithmetic of the engine: few operations, each with one fixed order, so that bits never vary.
//
// Two rules make a result independent of how the work was cut into chunks, pages or batches. Every
// output element has one accumulator that runs over its inputs in index order (or a fixed 8-lane
// tree where the inputs are contiguous), and vectorisation is across outputs only. Nothing here
// calls libm apart from sqrt, which IEEE 754 defines to the last bit. The files are compiled with
// -ffp-contract=off: a fused multiply-add would round once instead of twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace baton::refengine {

// Relative error below 3e-7. Saturates outside [-87, 88] instead of reaching denormals or infinity.
float exponential(float x);
// x[i] = exponential(x[i] - shift).
void exponentials(std::span<float> x, float shift);
// Natural logarithm of a positive normal number; error below 3e-7 relative to max(1, |result|).
float logarithm(float x);
// In radians, for 0 <= x < 1e5.
double sine(double x);
double cosine(double x);

float from_bf16(std::uint16_t bits);
// Rounds to nearest, ties to even.
std::uint16_t to_bf16(float value);

// Sum of products by eight lanes and a fixed tree. Both spans have the same multiple of 8 elements.
float dot(std::span<const float> a, std::span<const float> b);

// x / sqrt(mean(x^2) + epsilon) * weight, in place or not.
void rms_norm(std::span<const float> x, std::span<const float> weight, float epsilon,
              std::span<float> out);

// A matrix of activations: `rows` tokens, consecutive rows are `stride` floats apart.
struct Rows {
  const float* data = nullptr;
  std::size_t rows = 0;
  std::size_t stride = 0;
};

// A slice of rows of a weight matrix that is stored [in][out].
struct Weights {
  const float* data = nullptr;
  std::size_t in = 0;
  std::size_t out = 0;
};

// y[t][o] = sum over i of x[t][i] * w[i][o]; y is dense, `x.rows` by `w.out`.
void matmul(const Rows& x, const Weights& w, float* y);

// out[i] = sum over r of weights[r] * rows[r][i], in the order of rows; as wide as the stride,
// which is a multiple of 8.
void weighted_sum(const Rows& rows, const float* weights, float* out);

// gate = silu(gate) * up.
void silu_times(std::span<float> gate, std::span<const float> up);

// out += (p0 + p1) + (p2 + p3): the fixed combination of the row-parallel partial sums.
void add_partials(std::span<const float> p0, std::span<const float> p1, std::span<const float> p2,
                  std::span<const float> p3, std::span<float> out);

}  // namespace baton::refengine
