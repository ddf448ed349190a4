// Eight fp32 lanes and what the kernels do with them. Where lanes are added up their number is fixed, not the
// machine's, so that the order of every sum, and with it every bit of a result, is the same on every CPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>
#define ZL_AVX2 1
#endif

namespace zl {

constexpr int kLanes = 8;

typedef float Floats __attribute__((vector_size(32)));

inline Floats load(const float* from) {
    Floats v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <typename Vector>
inline void store(float* to, Vector v) {
    std::memcpy(to, &v, sizeof v);
}

// The value in every lane. Taking 0 away changes no number, -0 included, so it costs nothing; adding it would.
template <typename Vector = Floats>
inline Vector all(float value) {
    return value - Vector{};
}

// a * b + c, rounded once.
inline Floats multiply_add(Floats a, Floats b, Floats c) {
#ifdef ZL_AVX2
    return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    Floats out;
    for (int i = 0; i < kLanes; ++i) out[i] = std::fma(a[i], b[i], c[i]);
    return out;
#endif
}

// As many lanes as the machine has, for sums that never leave their lane.
#if defined(__AVX512F__)
constexpr int kWide = 16;
typedef float Wide __attribute__((vector_size(64)));

inline Wide multiply_add(Wide a, Wide b, Wide c) { return (Wide)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
#else
constexpr int kWide = kLanes;
typedef Floats Wide;
#endif

inline Wide load_wide(const float* from) {
    Wide v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

inline Wide root(Wide v) {
    for (int i = 0; i < kWide; ++i) v[i] = std::sqrt(v[i]);
    return v;
}

// The lanes' sum, always in the same order.
inline float sum(Floats v) {
    float a = v[0] + v[4], b = v[1] + v[5], c = v[2] + v[6], d = v[3] + v[7];
    return (a + c) + (b + d);
}

// The sums of four vectors.
inline void sum_four(const Floats v[4], float out[4]) {
#ifdef ZL_AVX2
    const __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps((__m256)v[0], (__m256)v[1]), _mm256_hadd_ps((__m256)v[2], (__m256)v[3]));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1)));
#else
    for (int i = 0; i < 4; ++i) {
        const Floats& w = v[i];
        out[i] = ((w[0] + w[1]) + (w[2] + w[3])) + ((w[4] + w[5]) + (w[6] + w[7]));
    }
#endif
}

inline float largest(Floats v) {
    float best = v[0];
    for (int i = 1; i < kLanes; ++i) best = v[i] > best ? v[i] : best;
    return best;
}

inline Floats from_bytes(const int8_t* from) {
#ifdef ZL_AVX2
    return (Floats)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)from)));
#else
    Floats v;
    for (int i = 0; i < kLanes; ++i) v[i] = from[i];
    return v;
#endif
}

// The four eights of 16 bytes of half-byte numbers: first all low halves, then all high ones.
inline void from_halves(const uint8_t* from, Floats numbers[4]) {
#ifdef ZL_AVX2
    const __m128i both = _mm_loadu_si128((const __m128i*)from), low = _mm_set1_epi8(15);
    const __m128i first = _mm_and_si128(both, low), second = _mm_and_si128(_mm_srli_epi16(both, 4), low);
    const __m128i eights[4] = {first, _mm_srli_si128(first, 8), second, _mm_srli_si128(second, 8)};
    for (int i = 0; i < 4; ++i) numbers[i] = (Floats)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eights[i]));
#else
    for (int i = 0; i < 2 * kLanes; ++i) {
        numbers[i / kLanes][i % kLanes] = from[i] & 15;
        numbers[2 + i / kLanes][i % kLanes] = from[i] >> 4;
    }
#endif
}

inline Floats from_bfloat16(const uint16_t* from) {
#ifdef ZL_AVX2
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)from));
    return (Floats)_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
#else
    Floats v;
    for (int i = 0; i < kLanes; ++i) {
        uint32_t bits = (uint32_t)from[i] << 16;
        float value;
        std::memcpy(&value, &bits, sizeof value);
        v[i] = value;
    }
    return v;
#endif
}

// Rounds to nearest, ties to even, as torch does; a NaN stays one.
inline uint16_t to_bfloat16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (value != value) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float from_half(uint16_t bits) {
#ifdef ZL_AVX2
    return _cvtsh_ss(bits);
#else
    _Float16 value;
    std::memcpy(&value, &bits, sizeof bits);
    return (float)value;
#endif
}

// e^x within 2 ulp: the range reduction and polynomial of Cephes' expf (Moshier, netlib). e^-inf is 0.
template <typename Vector>
inline Vector exponential(Vector x) {
    using Whole = decltype(x < x);
    const Vector lowest = all<Vector>(-87.33654f), highest = all<Vector>(88.02f);
    const Whole vanishes = x < lowest;
    x = x < lowest ? lowest : x;
    x = x > highest ? highest : x;
    Vector n = x * 1.44269504088896341f;
    // Adding and taking away 1.5 * 2^23 rounds to the nearest whole number.
    n = (n + 12582912.0f) - 12582912.0f;
    x = multiply_add(n, all<Vector>(-0.693359375f), x);
    x = multiply_add(n, all<Vector>(2.12194440e-4f), x);
    Vector p = all<Vector>(1.9875691500e-4f);
    p = multiply_add(p, x, all<Vector>(1.3981999507e-3f));
    p = multiply_add(p, x, all<Vector>(8.3334519073e-3f));
    p = multiply_add(p, x, all<Vector>(4.1665795894e-2f));
    p = multiply_add(p, x, all<Vector>(1.6666665459e-1f));
    p = multiply_add(p, x, all<Vector>(5.0000001201e-1f));
    p = multiply_add(p, x * x, x + 1.0f);
    Whole power = (__builtin_convertvector(n, Whole) + 127) << 23;
    Vector scaled = p * (Vector)power;
    return (Vector)((Whole)scaled & ~vanishes);
}

}  // namespace zl
