// Causal attention of a chunk's tokens over their sequence's pages.
//
// The keys are walked in their order and in spans of fixed cuts; scores of keys that a token may not see become
// weights of exactly zero. A token's result is thus a function of the keys and values before it alone.
#pragma once

#include "attention.h"
#include "panels.h"

namespace zl {

// Keys of a span, which begins at a multiple of it.
constexpr int64_t kKeys = 128;

// One layer's keys and values of one sequence.
struct Past {
    const Cache& keys;
    const Cache& values;
    const int32_t* pages;
};

// Room for a task's work.
struct CausalScratch {
    float* scores;    // `[kKeys, vectors, lanes]`
    float* expanded;  // `[kKeys, head_dim]`: keys or values in fp32, where they are stored otherwise
};

// Calls `part(token, count, numbers)` for pieces of tokens `begin … end - 1` that lie in one page, `numbers` fp32
// `[count, head_dim]`, or more where a page goes on.
template <typename Part>
inline void each_page(
    const Cache& cache, const int32_t* pages, int64_t head, int64_t begin, int64_t end, float* expanded, Part part) {
    for (int64_t token = begin; token < end;) {
        const int64_t within = token % cache.page_size, count = std::min(end - token, cache.page_size - within);
        const int64_t place = cache.at(pages[token / cache.page_size], head, within);
        if (cache.format == kCacheFloat32) {
            part(token, count, (const float*)cache.data + place);
        } else {
            // Whole fours of tokens, as many as are read together; a page holds a multiple.
            const int64_t numbers = (count + kTokens - 1) / kTokens * kTokens * cache.head_dim;
            const uint16_t* stored = (const uint16_t*)cache.data + place;
            for (int64_t i = 0; i < numbers; i += kLanes) store(expanded + i, from_bfloat16(stored + i));
            part(token, count, expanded);
        }
        token += count;
    }
}

// Attention of one query head for one panel.
template <int vectors>
class Causal {
   public:
    Causal(const Past& past, int64_t head, const CausalScratch& scratch)
        : past_(past), head_(head), scratch_(scratch) {}

    // `q` and `out` are `[head_dim, vectors, lanes]`, `positions` each token's, in ascending order.
    void operator()(const float* q, const float* positions, float* out) {
        const int64_t width = past_.keys.head_dim, last = (int64_t)positions[vectors * kWide - 1];
        for (int v = 0; v < vectors; ++v) {
            positions_[v] = load_wide(positions + v * kWide);
            top_[v] = all<Wide>(-INFINITY);
            total_[v] = Wide{};
        }
        for (int64_t i = 0; i < width * vectors; ++i) store(out + i * kWide, Wide{});
        for (int64_t begin = 0; begin <= last; begin += kKeys) {
            const int64_t end = std::min(begin + kKeys, last + 1);
            score(q, begin, end);
            if (end - 1 > (int64_t)positions[0]) hide(begin, end);
            weigh(end - begin);
            mix(begin, end, out);
        }
        for (int64_t i = 0; i < width; ++i)
            for (int v = 0; v < vectors; ++v) {
                float* at = out + (i * vectors + v) * kWide;
                store(at, load_wide(at) / total_[v]);
            }
    }

   private:
    void score(const float* q, int64_t begin, int64_t end) {
        const int64_t width = past_.keys.head_dim;
        const auto score_some = [&](int64_t token, int64_t count, const float* keys) {
            // What follows a page's last token is scored too, and never looked at.
            for (int64_t i = 0; i < count; i += kTokens) {
                Wide total[kTokens][vectors] = {};
                tile(keys + i * width, width, 1, q, width, total);
                put_down(scratch_.scores + (token - begin + i) * vectors * kWide, total);
            }
        };
        each_page(past_.keys, past_.pages, head_, begin, end, scratch_.expanded, score_some);
    }

    // Takes away what lies behind a token.
    void hide(int64_t begin, int64_t end) {
        for (int64_t key = begin; key < end; ++key)
            for (int v = 0; v < vectors; ++v) {
                float* at = scratch_.scores + ((key - begin) * vectors + v) * kWide;
                store(at, positions_[v] < (float)key ? all<Wide>(-INFINITY) : load_wide(at));
            }
    }

    // Turns scores into weights e^(score - top), where `top` is the largest so far.
    void weigh(int64_t keys) {
        for (int v = 0; v < vectors; ++v) {
            Wide top = top_[v];
            for (int64_t key = 0; key < keys; ++key) {
                const Wide each = load_wide(scratch_.scores + (key * vectors + v) * kWide);
                top = each > top ? each : top;
            }
            Wide total = Wide{};
            for (int64_t key = 0; key < keys; ++key) {
                float* at = scratch_.scores + (key * vectors + v) * kWide;
                const Wide weight = exponential(load_wide(at) - top);
                store(at, weight);
                total += weight;
            }
            kept_[v] = exponential(top_[v] - top);
            total_[v] = multiply_add(total_[v], kept_[v], total);
            top_[v] = top;
        }
    }

    void mix(int64_t begin, int64_t end, float* out) {
        constexpr int kTogether = 4;
        const int64_t width = past_.values.head_dim;
        for (int64_t i = 0; i < width; ++i)
            for (int v = 0; v < vectors; ++v) {
                float* at = out + (i * vectors + v) * kWide;
                store(at, load_wide(at) * kept_[v]);
            }
        const auto mix_some = [&](int64_t token, int64_t count, const float* values) {
            for (int64_t i = 0; i < width; i += kTogether) {
                float* at = out + i * vectors * kWide;
                Wide total[kTogether][vectors];
                take_up(at, total);
                tile(values + i, 1, width, scratch_.scores + (token - begin) * vectors * kWide, count, total);
                put_down(at, total);
            }
        };
        each_page(past_.values, past_.pages, head_, begin, end, scratch_.expanded, mix_some);
    }

    const Past& past_;
    int64_t head_;
    CausalScratch scratch_;
    Wide positions_[vectors], top_[vectors], total_[vectors], kept_[vectors];
};

}  // namespace zl
