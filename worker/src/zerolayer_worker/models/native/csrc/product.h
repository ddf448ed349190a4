// Products of a chunk's tokens with a weight matrix.
//
// Every (token, output) pair is one chain of fused multiply-adds over the columns in their order.
#pragma once

#include "matrix.h"
#include "panels.h"

namespace zl {

// Columns that are worked on at once: a panel's inputs for them stay in the first-level cache for all outputs.
constexpr int64_t kSlab = 128;
constexpr int64_t kSlabGroups = kSlab / kGroup;

// Weights in fp32: a group of a block is `[4, 32]`, the block's next group follows, and `stride` numbers on is the
// next block.
struct Slab {
    const float* data;
    int64_t stride, groups;
};

template <int format>
inline void unpack_slab(const Matrix& m, int64_t block, int64_t blocks, int64_t group, int64_t groups, float* to) {
    const int64_t all_groups = m.columns / kGroup;
    for (int64_t b = block; b < block + blocks; ++b) {
        const int64_t first = (b * all_groups + group) * kBlock;
        for (int64_t i = first; i < first + groups * kBlock; ++i) {
            const Group g = unpack<format>(m, i);
            for (int part = 0; part < 4; ++part, to += kLanes) store(to, g.part[part]);
        }
    }
}

// Groups `group … group + groups - 1` of some blocks; `scratch` is room for `blocks * 4 * kSlab` numbers.
inline Slab slab_of(const Matrix& m, int64_t block, int64_t blocks, int64_t group, int64_t groups, float* scratch) {
    const int64_t size = kBlock * kGroup, all_groups = m.columns / kGroup;
    switch (m.format) {
        case kFloat32: return {(const float*)m.data + (block * all_groups + group) * size, all_groups * size, groups};
        case kBfloat16: unpack_slab<kBfloat16>(m, block, blocks, group, groups, scratch); break;
        case kInt8: unpack_slab<kInt8>(m, block, blocks, group, groups, scratch); break;
        default: unpack_slab<kInt4>(m, block, blocks, group, groups, scratch);
    }
    return {scratch, groups * size, groups};
}

// Where a block's weights lie that are wanted next, and which of their bytes are to be asked for.
struct Ahead {
    const char* data;
    int64_t stride, begin, end;

    void ask(int64_t block) const {
        for (int64_t byte = begin; byte < end; byte += 64) __builtin_prefetch(data + block * stride + byte, 0, 2);
    }
};

// A panel's share of the weights that follow those of `group`, so that memory is read all the time, not at each
// slab's begin. Beyond the matrix's end it asks for nothing that matters.
inline Ahead ahead_of(const Matrix& m, int64_t block, int64_t blocks, int64_t group, int64_t panel, int64_t panels) {
    static constexpr int64_t kBytes[] = {
        group_bytes<kFloat32>(), group_bytes<kBfloat16>(), group_bytes<kInt8>(), group_bytes<kInt4>()};
    const int64_t bytes = kBytes[m.format] * kBlock, all_groups = m.columns / kGroup, stride = all_groups * bytes;
    const bool goes_on = group + kSlabGroups < all_groups;
    const int64_t next = goes_on ? block * stride + (group + kSlabGroups) * bytes : (block + blocks) * stride;
    const int64_t lines = kSlabGroups * bytes / 64;
    return {(const char*)m.data + next, stride, lines * panel / panels * 64, lines * (panel + 1) / panels * 64};
}

// Adds a slab's part to `sums` `[blocks, 4, vectors, lanes]`, or begins with it.
template <int vectors>
inline void add_slab(const Slab& slab, const Ahead& ahead, int64_t blocks, const float* x, bool begins, float* sums) {
    for (int64_t block = 0; block < blocks; ++block, sums += kBlock * vectors * kWide) {
        ahead.ask(block);
        Wide total[kBlock][vectors];
        if (begins) {
            for (auto& row : total)
                for (auto& each : row) each = Wide{};
        } else {
            take_up(sums, total);
        }
        const float* w = slab.data + block * slab.stride;
        for (int64_t group = 0; group < slab.groups; ++group) {
            tile(w + group * kBlock * kGroup, kGroup, 1, x + group * kGroup * vectors * kWide, kGroup, total);
        }
        put_down(sums, total);
    }
}

// The blocks' outputs for all tokens of the panels from `from` on: `sums` are panels of `blocks * 4` features, without
// the bias. `x` are panels of the matrix's columns.
inline void products(
    const Matrix& m, int64_t block, int64_t blocks, const Panels& panels, int64_t from, const float* x, float* scratch, float* sums) {
    const int64_t all_groups = m.columns / kGroup;
    for (int64_t group = 0; group < all_groups; group += kSlabGroups) {
        const Slab slab = slab_of(m, block, blocks, group, std::min(kSlabGroups, all_groups - group), scratch);
        for (int64_t panel = from; panel < panels.count; ++panel) {
            const float* inputs = x + panels.at(panel, m.columns, group * kGroup);
            float* to = sums + panels.at(panel, blocks * kBlock, 0);
            const Ahead ahead = ahead_of(m, block, blocks, group, panel - from, panels.count - from);
            const auto add = [&](auto width) { add_slab<width>(slab, ahead, blocks, inputs, group == 0, to); };
            with_width(panels.width(panel), add);
        }
    }
}

}  // namespace zl
