// Counter-based Gumbel noise, a pure function of (seed, position, token id): the integers are those of
// `sampling/noise.py` bit by bit, the logarithms more precise ones than there.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace zl {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
constexpr int kUniformBits = 40;
// The most that the noise can be: that of the smallest uniform, 2^-40.
constexpr double kMostNoise = 27.7259;

// SplitMix64.
inline uint64_t mix(uint64_t value) {
    value += kGolden;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
    return value ^ (value >> 31);
}

inline uint64_t stream_key(uint64_t seed, int64_t position) {
    return mix(mix(seed) + ((uint64_t)position + 1) * kGolden);
}

// 40 random bits; the uniform is (bits + 1) * 2^-40.
inline uint64_t random_bits(uint64_t key, int64_t token) {
    return mix(key + (uint64_t)token * kGolden) >> (64 - kUniformBits);
}

// Within 4e-6 of what torch computes in fp32 from the same uniform.
inline double gumbel(uint64_t bits) {
    const float uniform = std::min((float)(bits + 1) * 0x1p-40f, 1 - 0x1p-24f);
    return -std::log(-std::log1p(-(double)uniform));
}

// Not below `gumbel(bits)`, and 0.7 above it at most where it is large: -log(-log1p(-u)) <= -log(u).
inline double gumbel_bound(uint64_t bits) {
    const int whole = 63 - __builtin_clzll(bits + 1);
    return (kUniformBits - whole) * 0.693148;
}

}  // namespace zl
