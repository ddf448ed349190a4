// The threads, and room for what a pass computes, which stays for the next one.
#pragma once

#include <vector>

#include "attention.h"
#include "panels.h"
#include "threads.h"

namespace zl {

// A part of attention: one row's key head over one span of its tokens.
struct Task {
    int32_t row, head, span;
};

// A thread's own, for chunks of prompts.
struct Room {
    Buffer sums, slab, scores, expanded;
};

struct ChunkBuffers {
    Buffer x, normed, qkv, attended, inner, cosines, sines, positions;
};

struct Context {
    explicit Context(int threads) : pool(threads), scratch(threads), scores(threads), rooms(threads) {
        for (auto& each : scores) each.resize(4 * kSpan);
    }

    Pool pool;
    std::vector<std::vector<float>> scratch;  // per thread: unpacked weights
    std::vector<std::vector<float>> scores;   // per thread: attention's
    std::vector<float> normed, qkv, partials, attended, inner;
    std::vector<Task> tasks;
    std::vector<Room> rooms;
    ChunkBuffers chunk;
};

}  // namespace zl
