// What the choice needs to know of a whole row: its best tokens, and the sum of its exponentials.
#pragma once

#include <cstdint>
#include <functional>

#include "tile.h"

namespace zl {

// One number per (score, token) in the order of the ranking, as in `sampling/order.py`.
inline int64_t rank_key(float score, int64_t token) {
    int32_t bits;
    score += 0.0f;
    std::memcpy(&bits, &score, sizeof bits);
    bits ^= (bits >> 31) & 0x7fffffff;
    return (int64_t)((uint64_t)(int64_t)bits << 32) - token;
}

inline float key_score(int64_t key) {
    int32_t bits = (int32_t)((key + 0xffffffff) >> 32);
    bits ^= (bits >> 31) & 0x7fffffff;
    float score;
    std::memcpy(&score, &bits, sizeof score);
    return score;
}

inline int64_t key_token(int64_t key) { return -key & 0xffffffff; }

// The `size` best tokens, by score and then by the lower id; tokens of minus infinity are in no list.
class BestList {
   public:
    void open(int64_t size) {
        size_ = size;
        room_ = size + std::clamp<int64_t>(3 * size, 128, 2048);
        keys.clear();
        dropped = false;
        gate_ = kNone;
    }

    // Tokens of this score and below can't matter.
    void ignore(float score) { gate_ = std::max(gate_, score); }

    // Tiles come in the order of ids, so what is equal to the worst listed ranks below it.
    void add(const Tile& tile) {
        if (!(tile.best > gate_)) return;
        if (keys.empty()) {
            keys.reserve(room_);
            ignore_most(tile);
        }
        for (int64_t index = 0; index < tile.groups; ++index) {
            if (!any(load(tile.lanes(index)) > gate_)) continue;
            const float* from = tile.group(index);
            for (int64_t at = 0; at < kTogether; at += kLanes) {
                if (!any(load(from + at) > gate_)) continue;
                for (int64_t i = at; i < at + kLanes; ++i) {
                    if (from[i] > gate_) enter(rank_key(from[i], tile.start + index * kTogether + i));
                }
            }
        }
    }

    // Brings the list into order, best first.
    void finish() {
        if ((int64_t)keys.size() > size_) shrink();
        std::sort(keys.begin(), keys.end(), std::greater<>());
    }

    size_t bytes() const { return 8 * keys.capacity() + 4 * bests_.capacity(); }

    std::vector<int64_t> keys;
    bool dropped = false;  // whether tokens were left out that are not ignored

   private:
    // Of any `size` lanes each holds a token that is at least as good as the worst of the lanes' best ones.
    void ignore_most(const Tile& tile) {
        const int64_t lanes = tile.groups * kLanes;
        if (lanes < size_) return;
        bests_.assign(tile.lanes(0), tile.lanes(0) + lanes);
        std::nth_element(bests_.begin(), bests_.begin() + size_ - 1, bests_.end(), std::greater<>());
        const float bound = bests_[size_ - 1];
        if (!(bound > gate_)) return;
        dropped = true;
        gate_ = std::nextafter(bound, kNone);
    }

    void enter(int64_t key) {
        keys.push_back(key);
        if ((int64_t)keys.size() >= room_) shrink();
    }

    void shrink() {
        std::nth_element(keys.begin(), keys.begin() + size_ - 1, keys.end(), std::greater<>());
        keys.resize(size_);
        dropped = true;
        gate_ = std::max(gate_, key_score(keys.back()));
    }

    std::vector<float> bests_;
    int64_t size_ = 0, room_ = 0;
    float gate_ = kNone;
};

// The log-sum-exp of scores over a temperature.
class Mass {
   public:
    void open(float temperature) {
        temperature_ = temperature;
        best_ = kNone;
        sum_ = 0;
    }

    void add(const Tile& tile) {
        for (int64_t index = 0; index < tile.groups; ++index) {
            const float best = largest(load(tile.lanes(index)));
            if (best == kNone) continue;
            const float* from = tile.group(index);
            Floats sums[4] = {};
            for (int i = 0; i < kTogether; i += 4 * kLanes) {
                for (int j = 0; j < 4; ++j) {
                    sums[j] += exponential((load(from + i + j * kLanes) - best) / temperature_);
                }
            }
            fold((double)best / temperature_, sum((sums[0] + sums[1]) + (sums[2] + sums[3])));
        }
    }

    double result() const { return best_ + std::log(sum_); }

   private:
    void fold(double best, double total) {
        if (best > best_) {
            sum_ = sum_ * std::exp(best_ - best) + total;
            best_ = best;
        } else {
            sum_ += total * std::exp(best - best_);
        }
    }

    float temperature_ = 1;
    double best_ = kNone, sum_ = 0;
};

}  // namespace zl
