// The library's C functions.

#include <functional>

#include "chunk.h"
#include "context.h"
#include "sampling.h"
#include "step.h"

extern "C" {

void* zl_open(int32_t threads) { return new zl::Context(threads); }

// Whether fused multiply-adds are instructions, not function calls, of which prompts need billions.
int32_t zl_fused() {
#if defined(__FMA__) || defined(__aarch64__)
    return 1;
#else
    return 0;
#endif
}

void zl_close(void* context) { delete (zl::Context*)context; }

// `x` `[rows, hidden]`: in: the tokens' embeddings; out: their final hidden states. Writes keys and values.
void zl_decode(void* context, const zl::Model* model, const zl::Pages* pages, const zl::Rows* rows, float* x) {
    auto& opened = *(zl::Context*)context;
    zl::Step step(opened, *model, *pages, *rows, x);
    opened.pool.run(std::ref(step));
}

// A chunk of one prompt: `x` `[count, hidden]` are the tokens' embeddings, `out` `[hidden]` gets the last one's final
// hidden state. Writes keys and values.
void zl_prefill(void* context, const zl::Model* model, const zl::Pages* pages, const zl::Part* part, const float* x, float* out) {
    auto& opened = *(zl::Context*)context;
    zl::Chunk chunk(opened, *model, *pages, *part, x, out);
    opened.pool.run(std::ref(chunk));
}

// `x` `[rows, columns]` times the matrix's rows: `out` `[rows, matrix.rows]`.
void zl_multiply(void* context, const zl::Matrix* matrix, const float* x, int32_t rows, float* out) {
    auto& opened = *(zl::Context*)context;
    for (auto& each : opened.scratch) each.resize(std::max<size_t>(each.size(), zl::kBlock * matrix->columns));
    opened.pool.run([&](int thread) {
        opened.pool.share(thread, matrix->rows, zl::kGrain * 4, [&](int64_t begin, int64_t end) {
            float* scratch = opened.scratch[thread].data();
            zl::outputs(*matrix, begin, end, x, rows, out + begin, matrix->rows, scratch);
        });
    });
}

}  // extern "C"
