// SPDX-License-Identifier: BSD-3-Clause
// Blocks of threads on a host: a fiber per thread, switched where threads wait for each other.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "runtime.h"
#include "simt_dialect.h"

namespace puone::standin {

thread_local Place place;

namespace {

constexpr size_t kStack = 128 << 10;

/// A thread of a block. ucontext starts it; jumps, which need no system call, switch it.
struct Fiber {
  enum class State {
    kReady,
    kAtBarrier,
    kInExchange,
    kDone
  };

  std::unique_ptr<char[]> stack{new char[kStack]};
  ucontext_t context;
  jmp_buf resume;
  bool started = false;
  State state = State::kReady;
  uint64_t brought = 0;
  uint32_t wanted_lane = 0;
};

/// Runs the blocks of one grid on the calling thread.
class Blocks {
 public:
  void run(const std::function<void()>& body, uint32_t threads) {
    while (fibers_.size() < threads) fibers_.push_back(std::make_unique<Fiber>());
    body_ = &body;
    threads_ = threads;
    for (uint32_t t = 0; t < threads; ++t) {
      fibers_[t]->started = false;
      fibers_[t]->state = Fiber::State::kReady;
    }
    uint32_t done = 0;
    while (done < threads) {
      bool moved = false;
      for (uint32_t t = 0; t < threads; ++t) {
        if (fibers_[t]->state != Fiber::State::kReady) continue;
        moved = true;
        enter(t);
        if (fibers_[t]->state == Fiber::State::kDone) ++done;
      }
      for (uint32_t warp = 0; warp < threads; warp += kWarp) moved |= finishExchange(warp);
      moved |= finishBarrier();
      if (!moved && done < threads) {
        std::fputs(
            "standin: the threads of a block wait for each other in different places\n", stderr);
        std::abort();
      }
    }
  }

  /// On a fiber: back to the scheduler until it is ready again.
  void leave(Fiber::State state) {
    Fiber& fiber = *fibers_[current_];
    fiber.state = state;
    if (_setjmp(fiber.resume) == 0) _longjmp(scheduler_, 1);
  }

  void bring(uint64_t value, uint32_t lane) {
    fibers_[current_]->brought = value;
    fibers_[current_]->wanted_lane = lane;
  }
  /// What the wanted lane has brought; finishExchange has put it there.
  uint64_t taken() const {
    return fibers_[current_]->brought;
  }

 private:
  static void begin();

  void enter(uint32_t t) {
    current_ = t;
    place.thread.x = t;
    Fiber& fiber = *fibers_[t];
    if (_setjmp(scheduler_) != 0) return;
    if (fiber.started) _longjmp(fiber.resume, 1);
    fiber.started = true;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &Blocks::begin, 0);
    setcontext(&fiber.context);
  }

  /// Lets a warp go on whose threads have all brought something.
  bool finishExchange(uint32_t first) {
    const uint32_t end = first + kWarp < threads_ ? first + kWarp : threads_;
    uint64_t brought[kWarp] = {};
    uint32_t waiting = 0;
    for (uint32_t t = first; t < end; ++t) {
      const auto state = fibers_[t]->state;
      if (state == Fiber::State::kDone) continue;
      if (state != Fiber::State::kInExchange) return false;
      brought[t - first] = fibers_[t]->brought;
      ++waiting;
    }
    for (uint32_t t = first; t < end; ++t) {
      if (fibers_[t]->state != Fiber::State::kInExchange) continue;
      fibers_[t]->brought = brought[fibers_[t]->wanted_lane % kWarp];
      fibers_[t]->state = Fiber::State::kReady;
    }
    return waiting > 0;
  }

  bool finishBarrier() {
    bool any = false;
    for (uint32_t t = 0; t < threads_; ++t) {
      const auto state = fibers_[t]->state;
      if (state == Fiber::State::kDone) continue;
      if (state != Fiber::State::kAtBarrier) return false;
      any = true;
    }
    for (uint32_t t = 0; t < threads_; ++t) {
      if (fibers_[t]->state == Fiber::State::kAtBarrier) fibers_[t]->state = Fiber::State::kReady;
    }
    return any;
  }

  std::vector<std::unique_ptr<Fiber>> fibers_;
  const std::function<void()>* body_ = nullptr;
  uint32_t threads_ = 0, current_ = 0;
  jmp_buf scheduler_;
};

Blocks& blocks() {
  static thread_local Blocks own;
  return own;
}

void Blocks::begin() {
  Blocks& own = blocks();
  (*own.body_)();
  own.fibers_[own.current_]->state = Fiber::State::kDone;
  _longjmp(own.scheduler_, 1);
}

} // namespace

void runGrid(uint32_t grid, uint32_t threads, bool together, const std::function<void()>& body) {
  const Options& options = runtime().options;
  std::atomic<uint32_t> begun = 0;
  const auto run = [&] {
    place = {{}, {}, {threads, 1, 1}, {grid, 1, 1}};
    for (uint32_t block = begun++; block < grid; block = begun++) {
      // A device promises no order.
      place.block.x = options.adversarial ? grid - 1 - block : block;
      if (together) {
        blocks().run(body, threads);
        continue;
      }
      for (uint32_t t = 0; t < threads; ++t) {
        place.thread.x = t;
        body();
      }
    }
  };
  std::vector<std::jthread> others;
  for (uint32_t b = 1; b < std::min(options.blocks, grid) && together; ++b)
    others.emplace_back(run);
  run();
}

void barrier() {
  blocks().leave(Fiber::State::kAtBarrier);
}

uint64_t exchange(uint64_t mine, uint32_t lane) {
  blocks().bring(mine, lane);
  blocks().leave(Fiber::State::kInExchange);
  return blocks().taken();
}

} // namespace puone::standin
