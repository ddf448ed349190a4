// A whole decode step of a Llama-family model.
//
// Through a general tensor library a token of a small model costs about a thousand calls of some microseconds
// each, more than its arithmetic and its memory traffic together. Here it is one call, and threads meet at
// barriers inside it.
#pragma once

#include <vector>

#include "attention.h"
#include "context.h"
#include "matrix.h"
#include "model.h"

namespace zl {

// One new token per row: `positions` `[rows]` and the sequences' pages `[rows, table_width]`.
struct Rows {
    int32_t count, table_width;
    const int32_t* positions;
    const int32_t* tables;
};

constexpr int64_t kGrain = 48;  // outputs of a product that a thread takes at once

class Step {
   public:
    Step(Context& context, const Model& model, const Pages& pages, const Rows& rows, float* x)
        : context_(context), model_(model), pages_(pages), rows_(rows), x_(x) {
        const size_t count = rows.count;
        qkv_width_ = (int64_t)(model.heads + 2 * model.kv_heads) * model.head_dim;
        context.normed.resize(count * model.hidden);
        context.qkv.resize(count * qkv_width_);
        context.attended.resize(count * model.heads * model.head_dim);
        context.inner.resize(count * model.inner);
        const int64_t widest = std::max<int64_t>({model.hidden, model.inner, model.heads * model.head_dim});
        for (auto& each : context.scratch) each.resize(kBlock * widest + 2 * kGrain * count);
        for (int row = 0; row < rows.count; ++row) spans_ = std::max<int64_t>(spans_, rows.positions[row] / kSpan + 1);
        context.partials.resize(count * model.heads * spans_ * partial_size(model.head_dim));
        context.tasks.clear();
        for (int32_t row = 0; row < rows.count; ++row)
            for (int32_t span = 0; span * kSpan <= rows.positions[row]; ++span)
                for (int32_t head = 0; head < model.kv_heads; ++head) context.tasks.push_back({row, head, span});
    }

    void operator()(int thread) {
        for (int index = 0; index < model_.layers; ++index) {
            const Layer& layer = model_.layer[index];
            norm(thread, layer.attention_norm, context_.normed.data());
            product(thread, layer.qkv, context_.normed.data(), [&](int row, int64_t output, float value) {
                context_.qkv[row * qkv_width_ + output] = value;
            });
            attention(thread, index, layer);
            add(thread, layer.output, context_.attended.data());
            norm(thread, layer.mlp_norm, context_.normed.data());
            feed_forward(thread, layer.gate_up);
            add(thread, layer.down, context_.inner.data());
        }
        norm(thread, model_.norm, x_);
    }

   private:
    void norm(int thread, const float* gain, float* out) {
        context_.pool.share(thread, rows_.count, 1, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
                normalise(x_ + row * model_.hidden, gain, model_.hidden, model_.eps, out + row * model_.hidden);
            }
        });
    }

    template <typename Take>
    void product(int thread, const Matrix& matrix, const float* input, Take take) {
        float* scratch = context_.scratch[thread].data();
        float* results = scratch + kBlock * matrix.columns;
        context_.pool.share(thread, matrix.rows, kGrain, [&](int64_t begin, int64_t end) {
            const int64_t width = end - begin;
            outputs(matrix, begin, end, input, rows_.count, results, width, scratch);
            for (int row = 0; row < rows_.count; ++row)
                for (int64_t i = 0; i < width; ++i) take(row, begin + i, results[row * width + i]);
        });
    }

    void add(int thread, const Matrix& matrix, const float* input) {
        product(thread, matrix, input, [&](int row, int64_t output, float value) {
            x_[(int64_t)row * model_.hidden + output] += value;
        });
    }

    void attention(int thread, int index, const Layer& layer) {
        const Cache keys = layer_cache(pages_.keys, pages_, model_, index);
        const Cache values = layer_cache(pages_.values, pages_, model_, index);
        context_.pool.share(thread, (int64_t)rows_.count * model_.kv_heads, 1, [&](int64_t begin, int64_t end) {
            for (int64_t task = begin; task < end; ++task) {
                enter(keys, values, layer, task / model_.kv_heads, task % model_.kv_heads);
            }
        });
        context_.pool.share(thread, (int64_t)context_.tasks.size(), 1, [&](int64_t begin, int64_t end) {
            for (int64_t task = begin; task < end; ++task) attend_task(thread, keys, values, context_.tasks[task]);
        });
        context_.pool.share(thread, (int64_t)rows_.count * model_.heads, 1, [&](int64_t begin, int64_t end) {
            for (int64_t head = begin; head < end; ++head) {
                const float* partials = context_.partials.data() + head * spans_ * partial_size(model_.head_dim);
                const int64_t spans = rows_.positions[head / model_.heads] / kSpan + 1;
                combine(partials, spans, model_.head_dim, context_.attended.data() + head * model_.head_dim);
            }
        });
    }

    // Rotates a key head's queries and its new key, and stores the key and its value.
    void enter(const Cache& keys, const Cache& values, const Layer& layer, int64_t row, int64_t head) {
        const int64_t width = model_.head_dim, group = model_.heads / model_.kv_heads;
        float* qkv = context_.qkv.data() + row * qkv_width_;
        float* q = qkv + head * group * width;
        float* k = qkv + (model_.heads + head) * width;
        const float* v = qkv + (model_.heads + model_.kv_heads + head) * width;
        const int64_t position = rows_.positions[row];
        const float* cosines = model_.cosines + position * width;
        const float* sines = model_.sines + position * width;
        for (int64_t i = 0; i < group; ++i) {
            if (layer.query_norm) normalise(q + i * width, layer.query_norm, width, model_.eps, q + i * width);
            turn(layer, q + i * width, cosines, sines, width, model_.scale);
        }
        if (layer.key_norm) normalise(k, layer.key_norm, width, model_.eps, k);
        turn(layer, k, cosines, sines, width, 1.0f);
        const int32_t page = rows_.tables[row * rows_.table_width + position / pages_.page_size];
        const int64_t place = keys.at(page, head, position % pages_.page_size);
        put(keys, place, k);
        put(values, place, v);
    }

    void attend_task(int thread, const Cache& keys, const Cache& values, const Task& task) {
        const int64_t width = model_.head_dim, group = model_.heads / model_.kv_heads;
        const int64_t begin = task.span * kSpan, end = std::min<int64_t>(begin + kSpan, rows_.positions[task.row] + 1);
        const Span span{keys, values, rows_.tables + task.row * rows_.table_width, task.head, begin, end};
        const int64_t first = task.row * model_.heads + task.head * group;
        const float* q = context_.qkv.data() + task.row * qkv_width_ + task.head * group * width;
        float* partials = context_.partials.data() + (first * spans_ + task.span) * partial_size(width);
        float* scores = context_.scores[thread].data();
        const int64_t stride = spans_ * partial_size(width);
        if (pages_.format == kCacheFloat32) {
            attend<kCacheFloat32>(span, (int)group, q, scores, partials, stride);
        } else {
            attend<kCacheBfloat16>(span, (int)group, q, scores, partials, stride);
        }
    }

    // silu(gate) * up, where the matrix holds the rows of gate and then those of up.
    void feed_forward(int thread, const Matrix& matrix) {
        float* scratch = context_.scratch[thread].data();
        float* gate = scratch + kBlock * matrix.columns;
        float* up = gate + kGrain * rows_.count;
        context_.pool.share(thread, model_.inner, kGrain, [&](int64_t begin, int64_t end) {
            const int64_t width = end - begin;
            outputs(matrix, begin, end, context_.normed.data(), rows_.count, gate, width, scratch);
            outputs(matrix, model_.inner + begin, model_.inner + end, context_.normed.data(), rows_.count, up, width, scratch);
            for (int row = 0; row < rows_.count; ++row) {
                for (int64_t i = 0; i < width; i += kLanes) {
                    const Floats g = load(gate + row * width + i), u = load(up + row * width + i);
                    store(context_.inner.data() + row * model_.inner + begin + i, g / (exponential(-g) + 1.0f) * u);
                }
            }
        });
    }

    Context& context_;
    const Model& model_;
    const Pages& pages_;
    const Rows& rows_;
    float* x_;
    int64_t qkv_width_, spans_ = 1;
};

}  // namespace zl
