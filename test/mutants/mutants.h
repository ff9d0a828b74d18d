// SPDX-License-Identifier: BSD-3-Clause
// Included in front of every source that is compiled with mutants. Which of them is active comes
// from the environment: PUONE_MUTANT, a number. Each that is reached leaves a mark in the file
// PUONE_MUTANTS_REACHED, one byte each, which a process shares with those that it starts.
#pragma once
#ifdef __cplusplus
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

namespace puone_mutants {

constexpr int kCount = 65536;

struct State {
  int active = -1;
  unsigned char* reached = nullptr;

  State() noexcept {
    if (const char* number = std::getenv("PUONE_MUTANT")) {
      active = std::atoi(number);
    }
    if (const char* file = std::getenv("PUONE_MUTANTS_REACHED")) {
      const int handle = open(file, O_RDWR | O_CLOEXEC);
      void* mapped = mmap(nullptr, kCount, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
      reached = mapped == MAP_FAILED ? nullptr : static_cast<unsigned char*>(mapped);
      close(handle);
    }
  }
};

// One for all libraries of a process, whatever their visibility.
[[gnu::visibility("default")]] inline State& state() noexcept {
  static State it;
  return it;
}

[[gnu::visibility("default")]] inline bool ask(int number) noexcept {
  State& it = state();
  if (it.reached != nullptr) {
    it.reached[number] = 1;
  }
  return it.active == number;
}

// False where the compiler itself evaluates: what it computes has no switch.
constexpr bool on(int number) noexcept {
  return !__builtin_is_constant_evaluated() && ask(number);
}

} // namespace puone_mutants
#endif
