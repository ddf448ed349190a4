// Products of a few rows with a weight matrix in one of four formats.
//
// Every (row, output) pair has one accumulator of eight lanes that walks the columns in order, whatever rows
// and outputs are computed beside it: a row's bits depend on nothing but the row and the weights.
#pragma once

#include <algorithm>

#include "threads.h"
#include "vectors.h"

namespace zl {

enum Format : int32_t { kFloat32 = 0, kBfloat16 = 1, kInt8 = 2, kInt4 = 3 };

// Columns that share a scale in the quantised formats.
constexpr int kGroup = 32;

// Outputs that lie side by side: their weights for a group of columns, then those for the next group. A product
// thus reads memory from front to back as one stream, without which small rows leave half of the bandwidth unused.
constexpr int kBlock = 4;

// `[rows, columns]` as `[rows / 4, columns / 32, 4, 32]`, rows filled up to a multiple of four. Quantised:
// weight = number * scale (+ offset), scale and offset fp16 `[rows / 4, columns / 32, 4]`. An int4 group of 32 is
// 16 bytes: the low halves are its first 16 columns, the high halves the other 16.
struct Matrix {
    const void* data;
    const uint16_t* scales;
    const uint16_t* offsets;
    const float* bias;
    int64_t rows;
    int64_t columns;
    int32_t format;
};

// A group's weights of one output.
struct Group {
    Floats part[4];
};

// How far ahead of the product its weights are asked for, in groups of a block.
constexpr int64_t kAhead = 16;

template <int format>
constexpr int64_t group_bytes() {
    return format == kFloat32 ? 128 : format == kBfloat16 ? 64 : format == kInt8 ? 32 : 16;
}

// `group` counts all of the matrix's groups in the order in which they lie in memory.
template <int format>
inline Group unpack(const Matrix& m, int64_t group) {
    Group g;
    const char* data = (const char*)m.data + group * group_bytes<format>();
    if constexpr (format == kFloat32) {
        for (int i = 0; i < 4; ++i) g.part[i] = load((const float*)data + i * kLanes);
    } else if constexpr (format == kBfloat16) {
        for (int i = 0; i < 4; ++i) g.part[i] = from_bfloat16((const uint16_t*)data + i * kLanes);
    } else if constexpr (format == kInt8) {
        const Floats scale = all(from_half(m.scales[group]));
        for (int i = 0; i < 4; ++i) g.part[i] = from_bytes((const int8_t*)data + i * kLanes) * scale;
    } else {
        const Floats scale = all(from_half(m.scales[group])), offset = all(from_half(m.offsets[group]));
        Floats numbers[4];
        from_halves((const uint8_t*)data, numbers);
        for (int i = 0; i < 4; ++i) g.part[i] = multiply_add(numbers[i], scale, offset);
    }
    return g;
}

// Asks for weights that come soon; beyond the matrix's end it asks for nothing that matters.
template <int format>
inline void prefetch(const Matrix& m, int64_t group, int64_t groups) {
    const char* from = (const char*)m.data + group * group_bytes<format>();
    for (int64_t byte = 0; byte < groups * group_bytes<format>(); byte += 64) __builtin_prefetch(from + byte);
}

// One input row against a block: decode's case, bound by memory. Writes the first `count` of the four.
template <int format>
inline void dot_one(const Matrix& m, int64_t block, const float* x, int count, float* out) {
    Floats total[kBlock];
    for (auto& each : total) each = Floats{};
    const int64_t groups = m.columns / kGroup;
    int64_t at = block * groups * kBlock;
    for (int64_t group = 0; group < groups; ++group) {
        prefetch<format>(m, at + kAhead * kBlock, kBlock);
        for (int j = 0; j < kBlock; ++j) {
            const Group g = unpack<format>(m, at++);
            for (int i = 0; i < 4; ++i) total[j] = multiply_add(load(x + group * kGroup + i * kLanes), g.part[i], total[j]);
        }
    }
    for (int j = 0; j < count; ++j) out[j] = sum(total[j]) + (m.bias ? m.bias[block * kBlock + j] : 0.0f);
}

// `inputs` rows of x against a block of plain fp32 weights `[columns / 8, 4, 8]` that lies in the cache.
template <int inputs>
inline void dot_block(const float* weights, int64_t columns, const float* x, float (*out)[kBlock]) {
    Floats total[inputs][kBlock];
    for (auto& row : total)
        for (auto& each : row) each = Floats{};
    for (int64_t column = 0; column < columns; column += kLanes) {
        Floats w[kBlock];
        for (int j = 0; j < kBlock; ++j) w[j] = load(weights + column * kBlock + j * kLanes);
        for (int i = 0; i < inputs; ++i) {
            const Floats input = load(x + i * columns + column);
            for (int j = 0; j < kBlock; ++j) total[i][j] = multiply_add(input, w[j], total[i][j]);
        }
    }
    for (int i = 0; i < inputs; ++i)
        for (int j = 0; j < kBlock; ++j) out[i][j] = sum(total[i][j]);
}

// Several input rows against a block, whose weights are unpacked into `scratch` `[columns * 4]` once.
template <int format>
inline void dot_many(const Matrix& m, int64_t block, const float* x, int rows, int count, float* out, int64_t stride, float* scratch) {
    const int64_t groups = m.columns / kGroup;
    int64_t at = block * groups * kBlock;
    prefetch<format>(m, at + groups * kBlock, groups * kBlock);
    for (int64_t group = 0; group < groups; ++group)
        for (int j = 0; j < kBlock; ++j) {
            const Group g = unpack<format>(m, at++);
            for (int i = 0; i < 4; ++i) store(scratch + ((group * 4 + i) * kBlock + j) * kLanes, g.part[i]);
        }
    float results[3][kBlock];
    for (int row = 0; row < rows;) {
        const int inputs = std::min(3, rows - row);
        const float* from = x + row * m.columns;
        switch (inputs) {
            case 3: dot_block<3>(scratch, m.columns, from, results); break;
            case 2: dot_block<2>(scratch, m.columns, from, results); break;
            default: dot_block<1>(scratch, m.columns, from, results);
        }
        for (int i = 0; i < inputs; ++i)
            for (int j = 0; j < count; ++j) {
                out[(row + i) * stride + j] = results[i][j] + (m.bias ? m.bias[block * kBlock + j] : 0.0f);
            }
        row += inputs;
    }
}

// Outputs `begin … end - 1` of `x` `[rows, columns]`, written to `out` `[rows, stride]` from column 0 on. `begin`
// is a multiple of four; `scratch` is room for `4 * columns` numbers.
template <int format>
void outputs_of(const Matrix& m, int64_t begin, int64_t end, const float* x, int rows, float* out, int64_t stride, float* scratch) {
    for (int64_t at = begin; at < end; at += kBlock) {
        const int count = (int)std::min<int64_t>(kBlock, end - at);
        if (rows == 1) {
            dot_one<format>(m, at / kBlock, x, count, out + at - begin);
        } else {
            dot_many<format>(m, at / kBlock, x, rows, count, out + at - begin, stride, scratch);
        }
    }
}

inline void outputs(const Matrix& m, int64_t begin, int64_t end, const float* x, int rows, float* out, int64_t stride, float* scratch) {
    switch (m.format) {
        case kFloat32: return outputs_of<kFloat32>(m, begin, end, x, rows, out, stride, scratch);
        case kBfloat16: return outputs_of<kBfloat16>(m, begin, end, x, rows, out, stride, scratch);
        case kInt8: return outputs_of<kInt8>(m, begin, end, x, rows, out, stride, scratch);
        default: return outputs_of<kInt4>(m, begin, end, x, rows, out, stride, scratch);
    }
}

}  // namespace zl
