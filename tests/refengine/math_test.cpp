// The engine's own functions against libm, and the order of its sums.
#include "refengine/math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "refengine/sampler.hpp"

namespace baton::refengine {
namespace {

// Numbers in [-1, 1) whose sums round, so that another order would show.
std::vector<float> noise(std::size_t count, std::uint64_t seed) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(hash_pair(seed, i) >> 40U) / 8388608.0F - 1.0F);
  }
  return values;
}

TEST(Math, ExponentialIsAccurateAndSaturates) {
  for (float x = -86.5F; x < 87.5F; x += 0.0137F) {
    const double wanted = std::exp(static_cast<double>(x));
    EXPECT_NEAR(exponential(x) / wanted, 1.0, 3e-7) << x;
  }
  EXPECT_EQ(exponential(0.0F), 1.0F);
  EXPECT_EQ(exponential(-1000.0F), exponential(-87.0F));
  EXPECT_TRUE(std::isfinite(exponential(1000.0F)));
}

TEST(Math, ManyExponentialsAreTheSameAsOne) {
  std::vector<float> many = noise(101, 1);
  const std::vector<float> one = many;
  exponentials(many, 0.25F);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(many[i], exponential(one[i] - 0.25F));
}

TEST(Math, LogarithmIsAccurate) {
  for (float x = 1e-6F; x < 1e7F; x *= 1.0173F) {
    const double wanted = std::log(static_cast<double>(x));
    EXPECT_NEAR(logarithm(x), wanted, 3e-7 * std::max(1.0, std::abs(wanted))) << x;
  }
  EXPECT_EQ(logarithm(1.0F), 0.0F);
}

TEST(Math, SineAndCosineAgreeWithLibm) {
  for (double x = 0.0; x < 600.0; x += 0.00731) {
    ASSERT_NEAR(sine(x), std::sin(x), 1e-14) << x;
    ASSERT_NEAR(cosine(x), std::cos(x), 1e-14) << x;
  }
}

TEST(Math, Bf16RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0F), 0x3f80);
  EXPECT_EQ(to_bf16(from_bf16(0xbf01)), 0xbf01);
  EXPECT_EQ(to_bf16(1.0F + 1.0F / 256), 0x3f80);                 // a tie goes to the even one
  EXPECT_EQ(to_bf16(1.0F + 3.0F / 256), 0x3f82);                 // a tie, odd below
  EXPECT_EQ(to_bf16(1.0F + 1.0F / 256 + 1.0F / 65536), 0x3f81);  // just above the tie
}

TEST(Math, DotUsesEightLanesAndOneTree) {
  const std::vector<float> a = noise(64, 2);
  const std::vector<float> b = noise(64, 3);
  float lanes[8] = {};
  for (std::size_t i = 0; i < 64; ++i) lanes[i % 8] += a[i] * b[i];
  for (std::size_t i = 0; i < 4; ++i) lanes[i] += lanes[i + 4];
  EXPECT_EQ(dot(a, b), (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]));
}

// Every tile shape of the kernel (rows in fours and alone, outputs by 32 and by 8).
TEST(Math, MatmulSumsInIndexOrderForAnyShape) {
  for (const std::size_t rows : {1, 2, 3, 4, 5, 8, 11}) {
    for (const std::size_t out : {8, 32, 40, 88, 128}) {
      constexpr std::size_t kIn = 37;
      const std::vector<float> x = noise(rows * (kIn + 3), 4);
      const std::vector<float> w = noise(kIn * out, 5);
      std::vector<float> y(rows * out);
      matmul({x.data(), rows, kIn + 3}, {w.data(), kIn, out}, y.data());
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t o = 0; o < out; ++o) {
          float sum = 0.0F;
          for (std::size_t i = 0; i < kIn; ++i) sum += x[r * (kIn + 3) + i] * w[i * out + o];
          ASSERT_EQ(y[r * out + o], sum) << rows << "x" << out << " at " << r << "," << o;
        }
      }
    }
  }
}

TEST(Math, PartialsAreAddedInPairs) {
  const std::vector<float> p0 = noise(16, 6), p1 = noise(16, 7), p2 = noise(16, 8),
                           p3 = noise(16, 9);
  std::vector<float> out = noise(16, 10);
  const std::vector<float> before = out;
  add_partials(p0, p1, p2, p3, out);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], before[i] + ((p0[i] + p1[i]) + (p2[i] + p3[i])));
  }
}

}  // namespace
}  // namespace baton::refengine
