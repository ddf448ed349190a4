// A pool whose threads run one function together and meet at barriers inside it.
//
// A decode step has some two hundred points where threads must meet. A barrier that spins costs well under a
// microsecond; between steps the threads sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include <sched.h>

namespace zl {

inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

class Pool {
   public:
    explicit Pool(int threads) : threads_(threads), turns_(threads) {
        for (int id = 1; id < threads; ++id) workers_.emplace_back([this, id] { serve(id); });
    }

    ~Pool() {
        closing_ = true;
        round_.fetch_add(1);
        round_.notify_all();
        for (auto& worker : workers_) worker.join();
    }

    int threads() const { return threads_; }

    // Runs `body(thread)` on all threads, the caller's among them, and returns when all are done.
    void run(const std::function<void(int)>& body) {
        body_ = &body;
        round_.fetch_add(1);
        round_.notify_all();
        body(0);
        meet();
    }

    // Returns when every thread is here.
    void meet() {
        if (threads_ == 1) return;
        const uint32_t phase = phase_.load();
        if (arrived_.fetch_add(1) + 1 == threads_) {
            arrived_.store(0);
            phase_.store(phase + 1);
            return;
        }
        for (int spins = 0; phase_.load(std::memory_order_acquire) == phase; ++spins) {
            // A thread that has no CPU must get one, or all the others wait for it in vain.
            spins < kSpins ? relax() : (void)sched_yield();
        }
    }

    // Splits 0 … count - 1 into parts of `grain` and calls `part(begin, end)`; a thread takes the next one that
    // is left. All threads must call it, as often as one another; it returns when everything is done.
    template <typename Part>
    void share(int thread, int64_t count, int64_t grain, Part part) {
        const uint32_t turn = turns_[thread].value++;
        // All have left the turn before this one, and nobody can be two turns ahead.
        next_[(turn + 2) % 3].store(0);
        auto& next = next_[turn % 3];
        for (int64_t begin; (begin = next.fetch_add(grain)) < count;) {
            part(begin, begin + grain < count ? begin + grain : count);
        }
        meet();
    }

   private:
    static constexpr int kSpins = 2000;

    void serve(int id) {
        for (uint32_t seen = 0;;) {
            for (int spins = 0; round_.load(std::memory_order_acquire) == seen && spins < kSpins; ++spins) relax();
            round_.wait(seen);
            seen = round_.load();
            if (closing_) return;
            (*body_)(id);
            meet();
        }
    }

    const int threads_;
    std::atomic<uint32_t> round_{0}, phase_{0};
    std::atomic<int> arrived_{0};
    struct alignas(64) Turn {
        uint32_t value = 0;
    };
    std::vector<Turn> turns_;
    std::atomic<int64_t> next_[3] = {0, 0, 0};
    std::atomic<bool> closing_{false};
    const std::function<void(int)>* body_ = nullptr;
    // Last, as they use all of the above.
    std::vector<std::thread> workers_;
};

}  // namespace zl
