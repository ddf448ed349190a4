// The sampling step of a batch: every row looks at the head's tiles as they are computed.
//
// A row is one thread's at a time and its state is its own, so that its choice depends on nothing beside it. No
// more than a tile's scores and some hundred tokens of each row is ever kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "choice.h"
#include "context.h"

namespace zl {

class Sampling {
   public:
    explicit Sampling(Pool& pool) : pool_(pool), scratch_(pool.threads()) {}

    void begin(const Wish* wishes, int32_t count, int64_t vocab, int64_t candidates, bool again) {
        count_ = count;
        if (rows_.size() < (size_t)count) rows_.resize(count);
        for (int32_t row = 0; row < count; ++row) rows_[row].open(wishes[row], vocab, candidates, again);
    }

    void take(const float* scores, int64_t stride, int64_t start, int64_t width) {
        each(count_ * width >= kWorthThreads, [&](int thread, int64_t row) {
            rows_[row].take(scores + row * stride, start, width, scratch_[thread]);
        });
    }

    void finish(Outcome* outcomes) {
        each(count_ >= kRowsWorthThreads, [&](int, int64_t row) { outcomes[row] = rows_[row].finish(); });
    }

    const Choosing& row(int32_t index) const { return rows_[index]; }

    size_t bytes() const {
        size_t total = 0;
        for (const auto& row : rows_) total += row.bytes();
        for (const auto& each : scratch_) total += sizeof each + 4 * (each.changed.capacity() + each.maxima.capacity());
        return total;
    }

   private:
    // Below this, waking threads takes longer than the work.
    static constexpr int64_t kWorthThreads = 16 * 8192;
    static constexpr int32_t kRowsWorthThreads = 16;

    template <typename Work>
    void each(bool shared, Work work) {
        if (!shared || count_ < 2 || pool_.threads() == 1) {
            for (int64_t row = 0; row < count_; ++row) work(0, row);
            return;
        }
        pool_.run([&](int thread) {
            pool_.share(thread, count_, 1, [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) work(thread, row);
            });
        });
    }

    Pool& pool_;
    int32_t count_ = 0;
    std::vector<Choosing> rows_;
    std::vector<Scratch> scratch_;
};

}  // namespace zl

extern "C" {

// Uses the context's threads, not at the same time as another call does.
void* zl_sampling_open(void* context) { return new zl::Sampling(((zl::Context*)context)->pool); }

void zl_sampling_close(void* sampling) { delete (zl::Sampling*)sampling; }

void zl_sampling_begin(void* sampling, const zl::Wish* wishes, int32_t count, int64_t vocab, int64_t candidates, int32_t again) {
    ((zl::Sampling*)sampling)->begin(wishes, count, vocab, candidates, again);
}

// The next tile: fp32 scores `[count, width]`, `stride` numbers from row to row.
void zl_sampling_take(void* sampling, const float* scores, int64_t stride, int64_t start, int64_t width) {
    ((zl::Sampling*)sampling)->take(scores, stride, start, width);
}

void zl_sampling_finish(void* sampling, zl::Outcome* outcomes) { ((zl::Sampling*)sampling)->finish(outcomes); }

// A decided row's finalists, eight at most.
void zl_sampling_finalists(void* sampling, int32_t row, zl::Finalist* out) {
    const auto& found = ((zl::Sampling*)sampling)->row(row).finalists();
    std::copy(found.all, found.all + found.count, out);
}

// The best tokens before penalties of a row with log-probabilities, best first; returns how many there are.
int64_t zl_sampling_report(void* sampling, int32_t row, int64_t* tokens, float* scores) {
    const auto& keys = ((zl::Sampling*)sampling)->row(row).reported();
    for (size_t i = 0; i < keys.size(); ++i) {
        tokens[i] = zl::key_token(keys[i]);
        scores[i] = zl::key_score(keys[i]);
    }
    return (int64_t)keys.size();
}

// What is kept between two calls.
int64_t zl_sampling_bytes(void* sampling) { return (int64_t)((zl::Sampling*)sampling)->bytes(); }

}  // extern "C"
