// Attention of new tokens over their sequences' pages.
//
// A task is one row's key head and one span of its sequence, whose tokens it walks in order: nothing a neighbour
// does, nor how many there are, can change a bit of it.
#pragma once

#include <algorithm>

#include "vectors.h"

namespace zl {

// Widest head.
constexpr int kWidest = 256;

enum CacheFormat : int32_t { kCacheFloat32 = 0, kCacheBfloat16 = 1 };

// Keys or values of one layer, `[pages, kv_heads, page_size, head_dim]`.
struct Cache {
    void* data;
    int64_t kv_heads, page_size, head_dim;
    int32_t format;

    int64_t at(int64_t page, int64_t head, int64_t token) const {
        return ((page * kv_heads + head) * page_size + token) * head_dim;
    }
};

inline void put(const Cache& cache, int64_t at, const float* values) {
    for (int64_t i = 0; i < cache.head_dim; ++i) {
        if (cache.format == kCacheFloat32) {
            ((float*)cache.data)[at + i] = values[i];
        } else {
            ((uint16_t*)cache.data)[at + i] = to_bfloat16(values[i]);
        }
    }
}

// Tokens whose scores are computed together; a page holds a multiple of it.
constexpr int kTokens = 4;

// Tokens of a task. A sequence is always cut at its multiples, so that the cuts depend on nothing else.
constexpr int64_t kSpan = 256;

// Part of the attention of `queries` query heads that share a key head: over tokens `begin … end - 1`. `begin` is a
// multiple of `kSpan`, `end` at most `kSpan` further.
struct Span {
    const Cache& keys;
    const Cache& values;
    const int32_t* pages;
    int64_t head, begin, end;

    // The keys or values of the tokens from `token` on, up to the end of its page.
    template <int format>
    const char* at(const Cache& cache, int64_t token) const {
        const int64_t place = cache.at(pages[token / cache.page_size], head, token % cache.page_size);
        return (const char*)cache.data + place * (format == kCacheFloat32 ? 4 : 2);
    }

    // Asks for the page after the one that `token` begins: pages lie anywhere, which no processor foresees.
    template <int format>
    void prefetch(const Cache& cache, int64_t token) const {
        const int64_t next = token + cache.page_size;
        if (next >= end) return;
        const char* from = at<format>(cache, next);
        const int64_t bytes = std::min(cache.page_size, end - next) * cache.head_dim * (format == kCacheFloat32 ? 4 : 2);
        for (int64_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(from + byte);
    }
};

template <int format>
inline Floats eight(const char* from, int64_t index) {
    if constexpr (format == kCacheFloat32) return load((const float*)from + index);
    return from_bfloat16((const uint16_t*)from + index);
}

// Scores of all tokens, `scores` `[queries, kSpan]`; what lies beyond the end is -inf.
template <int format, int queries>
inline void score(const Span& span, const float* q, float* scores) {
    const int64_t width = span.keys.head_dim, page_size = span.keys.page_size;
    for (int64_t first = span.begin; first < span.end; first += page_size) {
        const char* keys = span.at<format>(span.keys, first);
        span.prefetch<format>(span.keys, first);
        // A page's last tokens may not exist yet; their scores are overwritten below.
        const int64_t tokens = std::min(page_size, span.end - first);
        for (int64_t token = 0; token < tokens; token += kTokens) {
            Floats total[queries][kTokens];
            for (auto& row : total)
                for (auto& each : row) each = Floats{};
            for (int64_t d = 0; d < width; d += kLanes) {
                Floats key[kTokens];
                for (int t = 0; t < kTokens; ++t) key[t] = eight<format>(keys, (token + t) * width + d);
                for (int i = 0; i < queries; ++i) {
                    const Floats query = load(q + i * width + d);
                    for (int t = 0; t < kTokens; ++t) total[i][t] = multiply_add(query, key[t], total[i][t]);
                }
            }
            for (int i = 0; i < queries; ++i) sum_four(total[i], scores + i * kSpan + first - span.begin + token);
        }
    }
    for (int i = 0; i < queries; ++i)
        for (int64_t token = span.end - span.begin; token < kSpan; ++token) scores[i * kSpan + token] = -INFINITY;
}

// Turns scores `[kSpan]` into weights e^(score - top); returns their sum.
inline float weigh(float* scores, float* top) {
    Floats best = load(scores);
    for (int64_t token = kLanes; token < kSpan; token += kLanes) {
        const Floats each = load(scores + token);
        best = each > best ? each : best;
    }
    *top = largest(best);
    Floats total = Floats{};
    for (int64_t token = 0; token < kSpan; token += kLanes) {
        const Floats weight = exponential(load(scores + token) - *top);
        store(scores + token, weight);
        total += weight;
    }
    return sum(total);
}

// The weighted sum of the values, `out` `[queries, head_dim]`.
template <int format, int queries>
inline void mix(const Span& span, const float* weights, float* out) {
    constexpr int kEights = queries > 3 ? 2 : 4;
    const int64_t width = span.values.head_dim, page_size = span.values.page_size;
    for (int64_t d = 0; d < width; d += kEights * kLanes) {
        Floats mixed[queries][kEights];
        for (auto& row : mixed)
            for (auto& each : row) each = Floats{};
        for (int64_t first = span.begin; first < span.end; first += page_size) {
            const char* values = span.at<format>(span.values, first);
            if (d == 0) span.prefetch<format>(span.values, first);
            const int64_t tokens = std::min(page_size, span.end - first);
            const float* weight = weights + first - span.begin;
            for (int64_t token = 0; token < tokens; ++token) {
                Floats value[kEights];
                for (int e = 0; e < kEights; ++e) value[e] = eight<format>(values, token * width + d + e * kLanes);
                for (int i = 0; i < queries; ++i) {
                    const Floats share = all(weight[i * kSpan + token]);
                    for (int e = 0; e < kEights; ++e) mixed[i][e] = multiply_add(share, value[e], mixed[i][e]);
                }
            }
        }
        for (int i = 0; i < queries; ++i)
            for (int e = 0; e < kEights; ++e) store(out + i * width + d + e * kLanes, mixed[i][e]);
    }
}

// A span's part of one query head's result: weighted values `[head_dim]`, then their weights' top score and sum.
inline int64_t partial_size(int64_t head_dim) { return head_dim + kLanes; }

template <int format, int queries>
inline void attend_some(const Span& span, const float* q, float* scores, float* partials, int64_t stride) {
    const int64_t width = span.keys.head_dim;
    float mixed[queries * kWidest];
    score<format, queries>(span, q, scores);
    for (int i = 0; i < queries; ++i) {
        float* partial = partials + i * stride;
        partial[width + 1] = weigh(scores + i * kSpan, &partial[width]);
    }
    mix<format, queries>(span, scores, mixed);
    for (int i = 0; i < queries; ++i) std::memcpy(partials + i * stride, mixed + i * width, width * sizeof(float));
}

// The part of `queries` query heads, `q` `[queries, head_dim]`; partials are `stride` numbers apart. `scores` is room
// for `4 * kSpan` numbers.
template <int format>
void attend(const Span& span, int queries, const float* q, float* scores, float* partials, int64_t stride) {
    for (int done = 0; done < queries;) {
        const int some = std::min(4, queries - done);
        const float* from = q + done * span.keys.head_dim;
        float* to = partials + done * stride;
        switch (some) {
            case 4: attend_some<format, 4>(span, from, scores, to, stride); break;
            case 3: attend_some<format, 3>(span, from, scores, to, stride); break;
            case 2: attend_some<format, 2>(span, from, scores, to, stride); break;
            default: attend_some<format, 1>(span, from, scores, to, stride);
        }
        done += some;
    }
}

// Puts a query head's spans together, in their order; `partials` `[spans, …]` lie `partial_size` apart.
inline void combine(const float* partials, int64_t spans, int64_t width, float* out) {
    const int64_t size = partial_size(width);
    float top = partials[width];
    for (int64_t s = 1; s < spans; ++s) top = std::max(top, partials[s * size + width]);
    float total = 0.0f;
    for (int64_t d = 0; d < width; d += kLanes) store(out + d, Floats{});
    for (int64_t s = 0; s < spans; ++s) {
        const float* partial = partials + s * size;
        const float weight = exponential(all(partial[width] - top))[0];
        total = std::fma(weight, partial[width + 1], total);
        for (int64_t d = 0; d < width; d += kLanes) {
            store(out + d, multiply_add(all(weight), load(partial + d), load(out + d)));
        }
    }
    for (int64_t d = 0; d < width; d += kLanes) store(out + d, load(out + d) / total);
}

}  // namespace zl
