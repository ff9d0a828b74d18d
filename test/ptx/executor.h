// SPDX-License-Identifier: BSD-3-Clause
// Loads PTX and runs grids of it. Thread-safe: one grid runs at a time, except while its threads
// sleep.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "coverage.h"
#include "memory.h"
#include "program.h"
#include "source.h"
#include "violation.h"
#include "warp.h"

namespace puone::ptx {

/// What is thrown for an error in device code: says the kind, kernel, block, thread and line.
struct Report : std::runtime_error {
  Report(Kind of, const std::string& text) : std::runtime_error(text), kind(of) {}
  Kind kind;
};

/// A module and its variables.
class Loaded {
 public:
  /// Throws Report.
  explicit Loaded(std::string text);
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  const Module module;

 private:
  friend class Executor;
  struct Buffer {
    std::unique_ptr<std::byte[]> memory;
    uint64_t begin, bytes;
    bool constant;
  };
  std::vector<Buffer> buffers_;
  std::map<std::string, uint64_t> globals_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
  Coverage coverage_;
};

class Executor {
 public:
  /// The one there is; never destroyed.
  static Executor& instance();

  /// The entry, decoded. Throws Report.
  const Program& program(Loaded& loaded, const std::string& entry);

  /// Runs a grid. `parameters`: of parameter_bytes. `memory`: what it may touch besides the
  /// module's variables. Throws Report.
  void run(
      Loaded& loaded,
      const std::string& entry,
      Dim3 blocks,
      Dim3 threads,
      const std::byte* parameters,
      std::vector<GlobalMemory::Range> memory);

  /// Of global memory, by others than device code.
  void forget(uint64_t begin, uint64_t bytes);
  void written(uint64_t begin, uint64_t bytes);
  void copied(uint64_t to, uint64_t from, uint64_t bytes);

 private:
  Executor();
  void runBlock(Block& block, std::vector<Warp>& warps, const Instruction*& at, Warp*& of);

  std::mutex mutex_;
  GlobalMemory memory_;
  uint32_t grids_ = 0;
  uint64_t limit_;
};

} // namespace puone::ptx
