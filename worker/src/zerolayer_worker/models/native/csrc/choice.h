// The choice of one row's next token while the head is walked, tile by tile.
//
// Whatever could come out differently from the sampler through torch, whose logarithms and sums round differently,
// is left open here: two tokens whose values are too close become finalists, of which torch's own noise chooses,
// and a cut that is too close to a token's edge is torch's to make. So both samplers choose the same tokens.
#pragma once

#include "noise.h"
#include "ranking.h"

namespace zl {

enum Kind : int32_t { kGreedy = 0, kDrawn = 1, kFiltered = 2 };

// Open is what torch has to decide, beyond what a longer list may.
enum Decision : int32_t { kDecided = 0, kOpen = 1, kBroken = 2, kBeyond = 3 };

// What a row asks for; see `SamplingControls`. `top_k` is the vocabulary's size where there is none, `floor` the
// logarithm of min-p, `logprobs` -1 where none are asked for. `ids` and `counts` `[entries]` are the penalties' text.
struct Wish {
    uint64_t seed;
    int64_t position;
    double temperature, top_p, floor;
    int64_t top_k;
    const int64_t* ids;
    const int32_t* counts;
    int64_t entries;
    float repetition, presence, frequency;
    int32_t logprobs, kind, unused;
};
static_assert(sizeof(Wish) == 96);

struct Finalist {
    int64_t token;
    float score, raw;  // with penalties and before them
};

// `finalists` above 1: all else is decided.
struct Outcome {
    int32_t decision, finalists;
    double log_total;  // of the scores before penalties; only where log-probabilities are asked for
    Finalist first;
};
static_assert(sizeof(Outcome) == 32);

constexpr int kFinalists = 8;
// Twice what two noises may differ by from torch's, with room.
constexpr double kClose = 1e-5;
// What a sum of exponentials may differ by from torch's, with room.
constexpr double kCloseMass = 4e-6;
// The same where both add up the same numbers in fp64.
constexpr double kCloseSum = 1e-12;

// The tokens whose value may be the highest.
class Finalists {
   public:
    // `rounding`: of values, relative.
    void open(double rounding) {
        count = 0;
        crowded = false;
        least = best_ = kNone;
        rounding_ = rounding;
    }

    void offer(double value, int64_t token, float score) {
        if (!(value >= least)) return;
        if (value > best_) {
            const double before = best_;
            best_ = value;
            least = value - kClose - std::abs(value) * rounding_;
            int kept = 0;
            for (int i = 0; i < count; ++i) {
                if (values_[i] < least) continue;
                values_[kept] = values_[i];
                all[kept++] = all[i];
            }
            count = kept;
            crowded = crowded && before >= least;
        }
        if (count == kFinalists) {
            crowded = true;
            return;
        }
        values_[count] = value;
        all[count++] = {token, score, score};
    }

    int count = 0;
    bool crowded = false;
    double least = kNone;  // values below it are none's
    Finalist all[kFinalists];

   private:
    double best_ = kNone, rounding_ = 0, values_[kFinalists];
};

class Choosing {
   public:
    // `again`: in the walk with the longer list, where torch's exact cut weighs differently from this one.
    void open(const Wish& wish, int64_t vocab, int64_t candidates, bool again) {
        wish_ = wish;
        vocab_ = vocab;
        key_ = stream_key(wish.seed, wish.position);
        temperature_ = (float)wish.temperature;
        best_ = kNone;
        best_token_ = 0;
        broken_ = strange_ = false;
        // Unfiltered values are fp32 numbers.
        finalists_.open(wish.kind == kDrawn ? 0x1p-22 : 0);
        const int64_t listed = std::min({candidates, vocab, wish.top_k});
        list_.open(listed);
        // Top-p refers to what top-k keeps: where that is listed, no other token's mass matters.
        weighed_ = wish.top_p < 1 && wish.top_k > listed;
        close_ = again ? kCloseMass : kCloseSum;
        mass_.open(temperature_);
        raw_mass_.open(1);
        raw_list_.open(std::max(wish.logprobs, 1));
        raw_.resize(wish.entries);
    }

    // `scores` `[width]` of the tokens from `start` on.
    void take(const float* scores, int64_t start, int64_t width, Scratch& scratch) {
        const bool penalised = wish_.entries > 0;
        if (!penalised || wish_.logprobs >= 0) {
            const Tile tile(scores, start, width, scratch);
            if (wish_.logprobs >= 0) report(tile);
            if (!penalised) return choose(tile);
        }
        scratch.changed.resize(std::max<size_t>(scratch.changed.size(), width));
        std::copy(scores, scores + width, scratch.changed.begin());
        penalise(scratch.changed.data(), start, width);
        choose(Tile(scratch.changed.data(), start, width, scratch));
    }

    Outcome finish() {
        Outcome outcome{kOpen, 1, 0, {best_token_, best_, best_}};
        if (wish_.logprobs >= 0) {
            outcome.log_total = raw_mass_.result();
            raw_list_.finish();
            // Tokens of minus infinity are asked for.
            if ((int64_t)raw_list_.keys.size() < std::min<int64_t>(wish_.logprobs, vocab_)) strange_ = true;
        }
        if (broken_) {
            outcome.decision = kBroken;
            return outcome;
        }
        // Infinite scores, or none above minus infinity.
        if (strange_ || std::isinf(best_ / temperature())) return outcome;
        if (wish_.kind == kFiltered) {
            const Decision drawn = draw_from_list();
            if (drawn != kDecided) {
                outcome.decision = drawn;
                return outcome;
            }
        }
        if (wish_.kind != kGreedy) {
            if (finalists_.crowded || finalists_.count == 0) return outcome;
            outcome.finalists = finalists_.count;
            outcome.first = finalists_.all[0];
        }
        for (int i = 0; i < finalists_.count; ++i) finalists_.all[i].raw = raw_score(finalists_.all[i]);
        outcome.first.raw = raw_score(outcome.first);
        outcome.decision = kDecided;
        return outcome;
    }

    // After `finish`.
    const Finalists& finalists() const { return finalists_; }

    // The best tokens before penalties, best first.
    const std::vector<int64_t>& reported() const { return raw_list_.keys; }

    size_t bytes() const {
        return sizeof *this + list_.bytes() + raw_list_.bytes() + 4 * raw_.capacity() +
               8 * (scaled_.capacity() + weights_.capacity());
    }

   private:
    float temperature() const { return wish_.kind == kGreedy ? 1.0f : temperature_; }

    void report(const Tile& tile) {
        raw_mass_.add(tile);
        if (wish_.logprobs > 0) raw_list_.add(tile);
        if (std::isinf(tile.best) && tile.best > 0) strange_ = true;
    }

    // As `sampling/penalties.py`, rounding by rounding.
    void penalise(float* scores, int64_t start, int64_t width) {
        for (int64_t entry = 0; entry < wish_.entries; ++entry) {
            const int64_t at = wish_.ids[entry] - start;
            if (at < 0 || at >= width) continue;
            const float found = raw_[entry] = scores[at];
            const float appeared = (float)wish_.counts[entry];
            // Volatile: each product is rounded, not fused into the difference.
            const volatile float scaled = found > 0 ? found / wish_.repetition : found * wish_.repetition;
            const volatile float often = wish_.frequency * appeared;
            const volatile float once = appeared > 0 ? wish_.presence : 0.0f;
            scores[at] = scaled - often - once;
        }
    }

    float raw_score(const Finalist& finalist) const {
        for (int64_t entry = 0; entry < wish_.entries; ++entry)
            if (wish_.ids[entry] == finalist.token) return raw_[entry];
        return finalist.score;
    }

    void choose(const Tile& tile) {
        broken_ |= tile.broken();
        if (wish_.kind != kGreedy && std::isinf(tile.best) && tile.best > 0) strange_ = true;
        const bool better = tile.best > best_;
        if (better) best_ = tile.best;
        if (broken_ || strange_) return;
        switch (wish_.kind) {
            case kGreedy:
                if (better) best_token_ = first_of(tile, best_);
                break;
            case kDrawn: draw(tile); break;
            default:
                if (weighed_) mass_.add(tile);
                if (wish_.top_p == 1 && wish_.floor > kNone) list_.ignore(never_kept());
                list_.add(tile);
        }
    }

    static int64_t first_of(const Tile& tile, float score) {
        for (int64_t index = 0; index < tile.groups; ++index) {
            if (!any(load(tile.lanes(index)) == score)) continue;
            const float* from = tile.group(index);
            for (int64_t i = 0; i < kTogether; ++i)
                if (from[i] == score) return tile.start + index * kTogether + i;
        }
        return tile.start;
    }

    // A score that min-p drops for certain, given the best so far.
    float never_kept() const {
        const double below = wish_.temperature * wish_.floor, at = best_ + below;
        return (float)(at - 1e-6 * (std::abs((double)best_) + std::abs(below)));
    }

    // Gumbel-max over all of a tile. A token of value `least` needs -log(u) >= least - score / temperature: one
    // exponential per lane says how small its uniforms must be, and only those that are need logarithms.
    void draw(const Tile& tile) {
        for (int64_t index = 0; index < tile.groups; ++index) {
            const Floats scaled = load(tile.lanes(index)) / temperature_;
            Floats limits = needed(scaled);
            for (int lane = 0; lane < kLanes; ++lane) {
                const float most = tile.lanes(index)[lane];
                if (most == kNone || limits[lane] < 0x1p-40f) continue;
                const double before = finalists_.least;
                const auto limit = (uint64_t)(std::min(limits[lane], 1.0f) * 0x1p40f);
                draw_lane(tile.group(index) + lane, tile.start + index * kTogether + lane, limit);
                if (finalists_.least != before) limits = needed(scaled);
            }
        }
    }

    // e^(scaled - least), with room for its rounding.
    Floats needed(Floats scaled) const {
        const double least = std::max(finalists_.least, -1e38);
        return exponential(scaled - (float)(least - std::abs(least) * 0x1p-22)) * 1.00002f;
    }

    void draw_lane(const float* scores, int64_t token, uint64_t limit) {
        for (int64_t i = 0; i < kTogether; i += kLanes) {
            const uint64_t bits = random_bits(key_, token + i);
            if (bits >= limit || scores[i] == kNone) continue;
            finalists_.offer(scores[i] / temperature_ + gumbel(bits), token + i, scores[i]);
        }
    }

    Decision draw_from_list() {
        list_.finish();
        const auto& keys = list_.keys;
        scaled_.resize(keys.size());
        for (size_t i = 0; i < keys.size(); ++i) scaled_[i] = key_score(keys[i]) / wish_.temperature;
        const int64_t kept = kept_count();
        if (kept == 0) return kOpen;
        if (kept > (int64_t)keys.size()) return kBeyond;
        for (int64_t i = 0; i < kept; ++i) {
            if (scaled_[i] + kMostNoise < finalists_.least) break;
            const int64_t token = key_token(keys[i]);
            const uint64_t bits = random_bits(key_, token);
            if (kept > 1 && scaled_[i] + gumbel_bound(bits) < finalists_.least) continue;
            finalists_.offer(scaled_[i] + gumbel(bits), token, key_score(keys[i]));
        }
        return kDecided;
    }

    // As `sampling/filters.py`: how many of the list are kept, one more than there are where the cut lies beyond it; 0
    // where it is torch's to make.
    int64_t kept_count() {
        const int64_t size = scaled_.size();
        const bool complete = !list_.dropped;
        const int64_t beyond = size + 1;
        int64_t kept = std::min(wish_.top_k, beyond);
        if (wish_.floor > kNone) {
            int64_t above = 0;
            while (above < size && scaled_[above] >= scaled_[0] + wish_.floor) ++above;
            if (above < size || complete) kept = std::min(kept, std::max<int64_t>(above, 1));
        }
        if (wish_.top_p < 1) {
            // The mass that top-p refers to is unknown.
            if (!complete && wish_.top_k > size && wish_.top_k < vocab_) return beyond;
            const int64_t nucleus = nucleus_size(complete);
            if (nucleus == 0) return 0;
            kept = std::min(kept, nucleus);
        }
        return complete ? std::min(kept, size) : kept;
    }

    // The smallest prefix with top-p's share, one more than the list where it lies beyond; 0 where it is open.
    int64_t nucleus_size(bool complete) {
        const int64_t size = scaled_.size();
        weights_.resize(size);
        for (int64_t i = 0; i < size; ++i) weights_[i] = std::exp(scaled_[i] - scaled_[0]);
        const bool listed = wish_.top_k <= size || complete;
        double within = 0;
        if (listed) {
            for (int64_t i = 0; i < std::min(wish_.top_k, size); ++i) within += weights_[i];
        } else {
            within = std::exp(mass_.result() - scaled_[0]);
        }
        const double wanted = wish_.top_p * within, close = (listed ? close_ : kCloseMass) * within;
        double before = 0, mass = 0;
        int64_t count = 0;
        while (count < size && mass < wanted) {
            before = mass;
            mass += weights_[count++];
        }
        if (mass < wanted - close) return size + 1;
        return std::abs(mass - wanted) < close || (count > 1 && wanted - before < close) ? 0 : count;
    }

    Wish wish_{};
    int64_t vocab_ = 0;
    uint64_t key_ = 0;
    float temperature_ = 1, best_ = kNone;
    double close_ = kCloseSum;
    int64_t best_token_ = 0;
    bool broken_ = false, strange_ = false, weighed_ = false;
    Finalists finalists_;
    BestList list_, raw_list_;
    Mass mass_, raw_mass_;
    std::vector<float> raw_;       // of the penalties' tokens, before them
    std::vector<double> scaled_;   // the list's scores over the temperature
    std::vector<double> weights_;  // their exponentials
};

}  // namespace zl
