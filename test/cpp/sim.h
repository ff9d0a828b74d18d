// SPDX-License-Identifier: BSD-3-Clause
// The sim driver between init() and shutdown(), and short words for what the tests do with it.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <string>
#include <vector>

#include "check.h"
#include "driver.h"
#include "hal/hal.h"
#include "kernels/args.h"

namespace puone::test {

struct Variable {
  std::string name;
  std::string value;
};
using Environment = std::initializer_list<Variable>;

/// Sets variables while it lives.
class ScopedEnvironment {
 public:
  explicit ScopedEnvironment(Environment variables);
  ~ScopedEnvironment();
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  const std::vector<Variable> variables_;
};

const puone_fault_api& fault();

class Sim {
 public:
  explicit Sim(Environment variables = {});
  ~Sim();
  Sim(const Sim&) = delete;
  Sim& operator=(const Sim&) = delete;

  puone_stream stream(int32_t device = 0, int32_t priority = 0);
  puone_event event(uint32_t flags = PUONE_EVENT_DEFAULT, int32_t device = 0);
  template <class T>
  T* memory(size_t count, int32_t device = 0) {
    return static_cast<T*>(allocate(count * sizeof(T), device));
  }

  void write(void* device, const void* host, size_t bytes, puone_stream stream);
  void read(void* host, const void* device, size_t bytes, puone_stream stream);
  void move(void* to, const void* from, size_t bytes, puone_stream stream);
  void launch(const char* kernel, const void* args, size_t bytes, puone_stream stream);
  void delay(puone_stream stream, uint64_t ns);

  /// Synchronises and reads one value.
  template <class T>
  T value(const T* device, puone_stream stream) {
    T result{};
    read(&result, device, sizeof result, stream);
    OK(hal().stream_synchronize(stream));
    return result;
  }

 private:
  void* allocate(size_t bytes, int32_t device);
  const ScopedEnvironment environment_;
};

/// Holds a stream until opened: a host function that blocks.
class Gate {
 public:
  explicit Gate(puone_stream stream);
  ~Gate() {
    open();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open();

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
  };
  State* state_; // released by the host function, which runs last
};

/// A child process: this program run again with `arguments`.
struct Outcome {
  int status; // as of waitpid()
  std::string standard_error;
};
Outcome runAgain(const std::vector<std::string>& arguments);

/// Runs `body` in a forked child and returns waitpid()'s status; the child ends with what it
/// returns. A child that hangs is killed after 20 s.
int runForked(int (*body)());

} // namespace puone::test
