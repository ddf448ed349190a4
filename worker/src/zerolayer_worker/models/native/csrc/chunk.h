// A whole chunk of one prompt through a Llama-family model.
#pragma once

#include "causal.h"
#include "context.h"
#include "model.h"
#include "product.h"

namespace zl {

// `count` tokens at positions `start`, `start + 1`, … of a sequence with these pages.
struct Part {
    int32_t start, count;
    const int32_t* table;
};

// Blocks of outputs of a product that a thread takes at once.
constexpr int64_t kBlocksAtOnce = 4;

class Chunk {
   public:
    // `x` `[count, hidden]` are the tokens' embeddings; the last token's final hidden state goes to `out` `[hidden]`.
    Chunk(Context& context, const Model& model, const Pages& pages, const Part& part, const float* x, float* out)
        : pool_(context.pool),
          rooms_(context.rooms),
          model_(model),
          pages_(pages),
          part_(part),
          panels_(part.count),
          embedded_(x),
          out_(out) {
        const int64_t tokens = panels_.tokens();
        qkv_width_ = (int64_t)(model.heads + 2 * model.kv_heads) * model.head_dim;
        attended_width_ = (int64_t)model.heads * model.head_dim;
        x_ = context.chunk.x.of(tokens * model.hidden);
        normed_ = context.chunk.normed.of(tokens * model.hidden);
        qkv_ = context.chunk.qkv.of(tokens * qkv_width_);
        attended_ = context.chunk.attended.of(tokens * attended_width_);
        inner_ = context.chunk.inner.of(tokens * model.inner);
        cosines_ = context.chunk.cosines.of(tokens * model.head_dim);
        sines_ = context.chunk.sines.of(tokens * model.head_dim);
        positions_ = context.chunk.positions.of(tokens);
        for (auto& room : rooms_) {
            room.sums.of(2 * kBlocksAtOnce * kBlock * tokens);
            room.slab.of(kBlocksAtOnce * kBlock * kSlab);
            room.scores.of((kKeys + kTokens) * kPanel * kWide);
            room.expanded.of(kKeys * model.head_dim);
        }
    }

    void operator()(int thread) {
        enter(thread);
        for (int index = 0; index < model_.layers; ++index) {
            const Layer& layer = model_.layer[index];
            norm(thread, 0, layer.attention_norm);
            product(thread, layer.qkv, 0, normed_, [&](int64_t panel, int64_t output, int64_t at, Wide value) {
                store(qkv_ + panels_.at(panel, qkv_width_, output) + at, value);
            });
            const Cache keys = layer_cache(pages_.keys, pages_, model_, index);
            const Cache values = layer_cache(pages_.values, pages_, model_, index);
            turn_heads(thread, layer, keys, values);
            // All that is wanted of the last layer is the last token, beside the keys and values.
            const int64_t from = index + 1 < model_.layers ? 0 : panels_.count - 1;
            attend(thread, from, keys, values);
            add(thread, layer.output, from, attended_);
            norm(thread, from, layer.mlp_norm);
            feed_forward(thread, layer.gate_up, from);
            add(thread, layer.down, from, inner_);
        }
        if (thread == 0) leave();
    }

   private:
    template <typename Body>
    void each_panel(int thread, int64_t from, Body body) {
        pool_.share(thread, panels_.count - from, 1, [&](int64_t begin, int64_t end) {
            for (int64_t panel = from + begin; panel < from + end; ++panel) body(panel);
        });
    }

    // Lays embeddings and angles out. Tokens that only fill up are zero, at the last one's position.
    void enter(int thread) {
        each_panel(thread, 0, [&](int64_t panel) {
            const int64_t lanes = panels_.width(panel) * kWide, first = panels_.first(panel) * kWide;
            for (int64_t lane = 0; lane < lanes; ++lane) {
                const int64_t token = std::min<int64_t>(first + lane, part_.count - 1), position = part_.start + token;
                const float* from = first + lane == token ? embedded_ + token * model_.hidden : nullptr;
                positions_[first + lane] = (float)position;
                spread(from, model_.hidden, x_ + panels_.at(panel, model_.hidden, 0) + lane, lanes);
                const int64_t angles = panels_.at(panel, model_.head_dim, 0) + lane;
                spread(model_.cosines + position * model_.head_dim, model_.head_dim, cosines_ + angles, lanes);
                spread(model_.sines + position * model_.head_dim, model_.head_dim, sines_ + angles, lanes);
            }
        });
    }

    static void spread(const float* from, int64_t count, float* to, int64_t step) {
        for (int64_t i = 0; i < count; ++i) to[i * step] = from ? from[i] : 0.0f;
    }

    void leave() {
        for (int64_t i = 0; i < model_.hidden; ++i) out_[i] = x_[panels_.at_token(part_.count - 1, model_.hidden, i)];
        normalise(out_, model_.norm, model_.hidden, model_.eps, out_);
    }

    void norm(int thread, int64_t from, const float* gain) {
        each_panel(thread, from, [&](int64_t panel) {
            const int64_t at = panels_.at(panel, model_.hidden, 0);
            normalise_panel(panel, x_ + at, gain, model_.hidden, normed_ + at);
        });
    }

    // `x` and `out` are a panel's `[count, vectors, lanes]`.
    void normalise_panel(int64_t panel, const float* x, const float* gain, int64_t count, float* out) {
        const int64_t lanes = panels_.width(panel) * kWide;
        for (int64_t at = 0; at < lanes; at += kWide) {
            Wide squares = Wide{};
            for (int64_t i = 0; i < count; ++i) {
                const Wide each = load_wide(x + i * lanes + at);
                squares = multiply_add(each, each, squares);
            }
            const Wide factor = 1.0f / root(squares / (float)count + model_.eps);
            for (int64_t i = 0; i < count; ++i) {
                store(out + i * lanes + at, load_wide(x + i * lanes + at) * factor * gain[i]);
            }
        }
    }

    // Calls `take(panel, output, place of the vector among the feature's, value)` with every output.
    template <typename Take>
    void product(int thread, const Matrix& matrix, int64_t from, const float* x, Take take) {
        float* sums = rooms_[thread].sums.data();
        pool_.share(thread, (matrix.rows + kBlock - 1) / kBlock, kBlocksAtOnce, [&](int64_t begin, int64_t end) {
            const int64_t first = begin * kBlock, features = (end - begin) * kBlock;
            products(matrix, begin, end - begin, panels_, from, x, rooms_[thread].slab.data(), sums);
            for (int64_t panel = from; panel < panels_.count; ++panel)
                for (int64_t output = first; output < std::min(first + features, matrix.rows); ++output) {
                    const float* sum = sums + panels_.at(panel, features, output - first);
                    const float bias = matrix.bias ? matrix.bias[output] : 0.0f;
                    for (int64_t at = 0; at < panels_.width(panel) * kWide; at += kWide) {
                        take(panel, output, at, load_wide(sum + at) + bias);
                    }
                }
        });
    }

    void add(int thread, const Matrix& matrix, int64_t from, const float* input) {
        product(thread, matrix, from, input, [&](int64_t panel, int64_t output, int64_t at, Wide value) {
            float* to = x_ + panels_.at(panel, model_.hidden, output) + at;
            store(to, load_wide(to) + value);
        });
    }

    // Rotates queries and keys, and stores keys and values.
    void turn_heads(int thread, const Layer& layer, const Cache& keys, const Cache& values) {
        const int64_t heads = model_.heads + 2 * model_.kv_heads, queries = model_.heads, width = model_.head_dim;
        pool_.share(thread, panels_.count * heads, 1, [&](int64_t begin, int64_t) {
            const int64_t panel = begin / heads, head = begin % heads;
            float* numbers = qkv_ + panels_.at(panel, qkv_width_, head * width);
            const int64_t key_head = (head - queries) % model_.kv_heads;
            if (head < queries) {
                turn_panel(layer, layer.query_norm, panel, model_.scale, numbers);
            } else if (head < queries + model_.kv_heads) {
                turn_panel(layer, layer.key_norm, panel, 1.0f, numbers);
                keep(keys, panel, key_head, numbers);
            } else {
                keep(values, panel, key_head, numbers);
            }
        });
    }

    void turn_panel(const Layer& layer, const float* gain, int64_t panel, float scale, float* head) {
        const int64_t width = model_.head_dim, half = width / 2 * panels_.width(panel) * kWide;
        const int64_t angles = panels_.at(panel, width, 0);
        if (gain) normalise_panel(panel, head, gain, width, head);
        for (int64_t i = 0; i < half; i += kWide) {
            Wide a = load_wide(head + i), b = load_wide(head + half + i);
            if (layer.rotated) {
                const float *cosines = cosines_ + angles + i, *sines = sines_ + angles + i;
                const Wide turned = a * load_wide(cosines) + b * load_wide(sines);
                b = b * load_wide(cosines + half) + a * load_wide(sines + half);
                a = turned;
            }
            store(head + i, a * scale);
            store(head + half + i, b * scale);
        }
    }

    // Stores a panel's keys or values of one head in the sequence's pages.
    void keep(const Cache& cache, int64_t panel, int64_t head, const float* numbers) {
        const int64_t lanes = panels_.width(panel) * kWide, first = panels_.first(panel) * kWide;
        float one[kWidest];
        for (int64_t lane = 0; lane < std::min(lanes, part_.count - first); ++lane) {
            const int64_t position = part_.start + first + lane;
            for (int64_t i = 0; i < model_.head_dim; ++i) one[i] = numbers[i * lanes + lane];
            put(cache, cache.at(part_.table[position / cache.page_size], head, position % cache.page_size), one);
        }
    }

    void attend(int thread, int64_t from, const Cache& keys, const Cache& values) {
        const int64_t heads = model_.heads, group = heads / model_.kv_heads, width = model_.head_dim;
        const CausalScratch scratch{rooms_[thread].scores.data(), rooms_[thread].expanded.data()};
        const Past past{keys, values, part_.table};
        pool_.share(thread, (panels_.count - from) * heads, 1, [&](int64_t begin, int64_t) {
            // The last panels see the most keys, and what takes longest begins first.
            const int64_t panel = panels_.count - 1 - begin / heads, head = begin % heads;
            const float* q = qkv_ + panels_.at(panel, qkv_width_, head * width);
            float* out = attended_ + panels_.at(panel, attended_width_, head * width);
            with_width(panels_.width(panel), [&](auto vectors) {
                Causal<vectors>(past, head / group, scratch)(q, positions_ + panels_.first(panel) * kWide, out);
            });
        });
    }

    // silu(gate) * up, where the matrix holds the rows of gate and then those of up.
    void feed_forward(int thread, const Matrix& matrix, int64_t from) {
        Room& room = rooms_[thread];
        pool_.share(thread, model_.inner / kBlock, kBlocksAtOnce, [&](int64_t begin, int64_t end) {
            const int64_t blocks = end - begin, features = blocks * kBlock;
            float *gate = room.sums.data(), *up = gate + features * panels_.tokens();
            products(matrix, begin, blocks, panels_, from, normed_, room.slab.data(), gate);
            products(matrix, model_.inner / kBlock + begin, blocks, panels_, from, normed_, room.slab.data(), up);
            for (int64_t panel = from; panel < panels_.count; ++panel) {
                const int64_t at = panels_.at(panel, features, 0);
                float* to = inner_ + panels_.at(panel, model_.inner, begin * kBlock);
                for (int64_t i = 0; i < features * panels_.width(panel) * kWide; i += kWide) {
                    const Wide g = load_wide(gate + at + i), u = load_wide(up + at + i);
                    store(to + i, g / (exponential(-g) + 1.0f) * u);
                }
            }
        });
    }

    Pool& pool_;
    std::vector<Room>& rooms_;
    const Model& model_;
    const Pages& pages_;
    const Part& part_;
    const Panels panels_;
    const float* embedded_;
    float* out_;
    int64_t qkv_width_, attended_width_;
    float *x_, *normed_, *qkv_, *attended_, *inner_, *cosines_, *sines_, *positions_;
};

}  // namespace zl
