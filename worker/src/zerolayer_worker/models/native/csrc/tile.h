// A tile's scores of one row, with the best of each few tokens: most of a tile is passed over by these alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "vectors.h"

namespace zl {

using Ints = decltype(Floats{} < Floats{});

constexpr float kNone = -std::numeric_limits<float>::infinity();

// Tokens that are looked at together, as 32 vectors. Whatever is summed is summed group by group, so that sums
// have the same bits for all tiles of whole groups.
constexpr int64_t kTogether = 256;

inline bool any(Ints mask) {
#ifdef ZL_AVX2
    return _mm256_movemask_ps((__m256)mask) != 0;
#else
    int32_t found = 0;
    for (int i = 0; i < kLanes; ++i) found |= mask[i];
    return found != 0;
#endif
}

// What a thread needs while it looks at a tile.
struct Scratch {
    std::vector<float> changed;
    std::vector<float> maxima;
    float tail[kTogether];
};

class Tile {
   public:
    // `scores` `[width]` are those of the tokens from `start` on.
    Tile(const float* scores, int64_t start, int64_t width, Scratch& scratch)
        : start(start), groups((width + kTogether - 1) / kTogether), scores_(scores), whole_(width / kTogether), scratch_(scratch) {
        if (whole_ < groups) {
            std::fill(scratch.tail, scratch.tail + kTogether, kNone);
            std::copy(scores + whole_ * kTogether, scores + width, scratch.tail);
        }
        scratch.maxima.resize(groups * kLanes);
        Floats highest = all(kNone);
        Ints broken = Ints{};
        for (int64_t index = 0; index < groups; ++index) {
            const float* from = group(index);
            Floats most = load(from);
            broken |= most != most;
            for (int i = 1; i < kTogether / kLanes; ++i) {
                const Floats next = load(from + i * kLanes);
                broken |= next != next;
                most = next > most ? next : most;
            }
            store(scratch.maxima.data() + index * kLanes, most);
            highest = most > highest ? most : highest;
        }
        best = largest(highest);
        broken_ = any(broken);
    }

    // The scores of the group's 256 tokens; minus infinity beyond the tile.
    const float* group(int64_t index) const { return index < whole_ ? scores_ + index * kTogether : scratch_.tail; }

    // The best of each of the group's lanes: of its tokens 0, 8, 16, …, of 1, 9, 17, … and so on.
    const float* lanes(int64_t index) const { return scratch_.maxima.data() + index * kLanes; }

    // Whether any score is no number.
    bool broken() const { return broken_; }

    const int64_t start, groups;
    float best;

   private:
    const float* scores_;
    const int64_t whole_;
    Scratch& scratch_;
    bool broken_;
};

}  // namespace zl
