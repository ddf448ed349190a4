// A chunk's tokens side by side: a vector holds one feature of as many tokens as it has lanes.
//
// A lane never meets another one. What becomes of a token thus depends neither on how many there are beside it nor
// on the vectors' width, which here is the machine's.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include "vectors.h"

namespace zl {

// Numbers that begin where a vector does, so that loads do not straddle two cache lines. It only grows.
class Buffer {
   public:
    float* of(size_t count) {
        if (count > size_) {
            const size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
            data_.reset((float*)std::aligned_alloc(64, bytes));
            if (!data_) throw std::bad_alloc();
            size_ = count;
        }
        return data_.get();
    }

    float* data() const { return data_.get(); }

   private:
    struct Free {
        void operator()(float* data) const { std::free(data); }
    };
    std::unique_ptr<float, Free> data_;
    size_t size_ = 0;
};

// Widest panel in vectors: with the four outputs that are computed together, as many sums as there are registers for.
constexpr int kPanel = 3;

// A number of tokens, filled up to whole vectors, in panels of up to three of them: `[panels, features, vectors,
// lanes]`. All panels but the last ones are the same size or one vector larger.
struct Panels {
    explicit Panels(int64_t tokens) : vectors((tokens + kWide - 1) / kWide), count((vectors + kPanel - 1) / kPanel) {}

    int64_t first(int64_t panel) const { return panel * (vectors / count) + std::min(panel, vectors % count); }
    int width(int64_t panel) const { return (int)(first(panel + 1) - first(panel)); }
    int64_t tokens() const { return vectors * kWide; }

    // Where a panel's feature begins in an array of so many `features`.
    int64_t at(int64_t panel, int64_t features, int64_t feature) const {
        return (first(panel) * features + width(panel) * feature) * kWide;
    }

    // Where one token's number is.
    int64_t at_token(int64_t token, int64_t features, int64_t feature) const {
        const int64_t vector = token / kWide, large = vectors / count + 1, rest = vectors % count;
        const int64_t panel = vector < rest * large ? vector / large : rest + (vector - rest * large) / (large - 1);
        return at(panel, features, feature) + token - first(panel) * kWide;
    }

    int64_t vectors, count;
};

// Calls `body` with a panel's width as a constant.
template <typename Body>
inline void with_width(int width, Body body) {
    switch (width) {
        case 3: return body(std::integral_constant<int, 3>());
        case 2: return body(std::integral_constant<int, 2>());
        default: return body(std::integral_constant<int, 1>());
    }
}

// total[j][v] += sum over i of weight(j, i) * x[i][v], where weight(j, i) = w[j * across + i * along]; i runs in order.
template <int vectors, int outputs>
[[gnu::always_inline]] inline void tile(
    const float* w, int64_t across, int64_t along, const float* x, int64_t count, Wide (&total)[outputs][vectors]) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < count; ++i) {
        Wide input[vectors];
        for (int v = 0; v < vectors; ++v) input[v] = load_wide(x + (i * vectors + v) * kWide);
        for (int j = 0; j < outputs; ++j) {
            const Wide weight = all<Wide>(w[j * across + i * along]);
            for (int v = 0; v < vectors; ++v) total[j][v] = multiply_add(weight, input[v], total[j][v]);
        }
    }
}

template <int outputs, int vectors>
[[gnu::always_inline]] inline void take_up(const float* from, Wide (&total)[outputs][vectors]) {
    for (int j = 0; j < outputs; ++j)
        for (int v = 0; v < vectors; ++v) total[j][v] = load_wide(from + (j * vectors + v) * kWide);
}

template <int outputs, int vectors>
[[gnu::always_inline]] inline void put_down(float* to, const Wide (&total)[outputs][vectors]) {
    for (int j = 0; j < outputs; ++j)
        for (int v = 0; v < vectors; ++v) store(to + (j * vectors + v) * kWide, total[j][v]);
}

}  // namespace zl
