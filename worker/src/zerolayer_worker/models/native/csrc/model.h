// What the library is told about a model, and what all of its passes do alike.
#pragma once

#include <cmath>

#include "attention.h"
#include "matrix.h"
#include "vectors.h"

namespace zl {

struct Layer {
    const float* attention_norm;
    const float* query_norm;  // null where the model has none
    const float* key_norm;
    const float* mlp_norm;
    Matrix qkv, output, gate_up, down;
    int32_t rotated;  // 0 where the layer has no rotary embedding
};

struct Model {
    int32_t layers, hidden, heads, kv_heads, head_dim, inner;
    float eps, scale;
    const float* norm;
    const float* cosines;  // [positions, head_dim]
    const float* sines;    // [positions, head_dim], the first half negated
    const Layer* layer;
};

// The cache of all layers, keys and values each `[layers, pages, kv_heads, page_size, head_dim]`.
struct Pages {
    void* keys;
    void* values;
    int64_t pages, page_size;
    int32_t format;
};

inline Cache layer_cache(void* data, const Pages& pages, const Model& model, int64_t layer) {
    const int64_t numbers = layer * pages.pages * model.kv_heads * pages.page_size * model.head_dim;
    char* begin = (char*)data + numbers * (pages.format == kCacheFloat32 ? 4 : 2);
    return {begin, model.kv_heads, pages.page_size, model.head_dim, pages.format};
}

inline void normalise(const float* x, const float* gain, int64_t width, float eps, float* out) {
    Floats squares = Floats{};
    for (int64_t i = 0; i < width; i += kLanes) squares = multiply_add(load(x + i), load(x + i), squares);
    const float factor = 1.0f / std::sqrt(sum(squares) / (float)width + eps);
    for (int64_t i = 0; i < width; i += kLanes) store(out + i, load(x + i) * factor * load(gain + i));
}

// Rotates a head by its position's angles; half a head apart are the two numbers of a pair.
inline void turn(const Layer& layer, float* head, const float* cosines, const float* sines, int64_t width, float scale) {
    const int64_t half = width / 2;
    if (!layer.rotated) {
        for (int64_t i = 0; i < width; ++i) head[i] *= scale;
        return;
    }
    for (int64_t i = 0; i < half; ++i) {
        const float a = head[i], b = head[i + half];
        head[i] = (a * cosines[i] + b * sines[i]) * scale;
        head[i + half] = (b * cosines[i + half] + a * sines[i + half]) * scale;
    }
}

}  // namespace zl
