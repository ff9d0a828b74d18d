// SPDX-License-Identifier: BSD-3-Clause
#include "executor.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "changes.h"

namespace puone::ptx {
namespace {

constexpr uint64_t kUsualLimit = 4'000'000'000;

std::string text(const Dim3& index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
         std::to_string(index.z) + ")";
}

std::string lineText(const Module& module, uint32_t line) {
  return "line " + std::to_string(line) + " of module " + module.id() + ": " +
         std::string(module.line(line));
}

Report reportOf(
    const Violation& violation,
    const std::string& kernel,
    const Warp* warp,
    const std::string& at) {
  std::string all = std::string(kindName(violation.kind)) + ": " + violation.what();
  if (!kernel.empty()) all += "; kernel " + kernel;
  if (warp != nullptr) {
    const uint32_t lane = violation.lane >= 0 ? static_cast<uint32_t>(violation.lane) : 0;
    all += ", block " + text(warp->block.index) + ", thread " + text(warp->thread(lane));
  }
  if (!at.empty()) all += ", " + at;
  return {violation.kind, all};
}

} // namespace

Loaded::Loaded(std::string text) try : module(changed(std::move(text))), coverage_(module) {
  for (const Variable& variable : module.variables()) {
    if (variable.space != "global" && variable.space != "const") continue;
    const uint64_t align = std::max(variable.align, 16u);
    auto memory = std::make_unique<std::byte[]>(variable.bytes + align);
    const uint64_t begin = (reinterpret_cast<uint64_t>(memory.get()) + align - 1) / align * align;
    std::memcpy(reinterpret_cast<void*>(begin), variable.initial.data(), variable.initial.size());
    globals_[variable.name] = begin;
    const bool constant = variable.space == "const";
    buffers_.push_back({std::move(memory), begin, variable.bytes, constant});
    Executor::instance().written(begin, variable.bytes); // zeros, where nothing is said
  }
} catch (const Violation& violation) {
  throw reportOf(violation, "", nullptr, "");
}

Executor::Executor() {
  const char* const limit = std::getenv("PUONE_PTX_LIMIT");
  limit_ = limit == nullptr ? kUsualLimit : std::strtoull(limit, nullptr, 10);
}

Executor& Executor::instance() {
  static auto* const one = new Executor;
  return *one;
}

void Executor::forget(uint64_t begin, uint64_t bytes) {
  const std::lock_guard guard(mutex_);
  memory_.forget(begin, bytes);
}
void Executor::written(uint64_t begin, uint64_t bytes) {
  const std::lock_guard guard(mutex_);
  memory_.written(begin, bytes);
}
void Executor::copied(uint64_t to, uint64_t from, uint64_t bytes) {
  const std::lock_guard guard(mutex_);
  memory_.copied(to, from, bytes);
}

const Program& Executor::program(Loaded& loaded, const std::string& entry) {
  const std::lock_guard guard(mutex_);
  auto& found = loaded.programs_[entry];
  if (found == nullptr) {
    try {
      found = std::make_unique<Program>(
          loaded.module, entry, loaded.globals_, loaded.coverage_.counts());
      loaded.coverage_.noteEntry(entry);
    } catch (const Violation& violation) {
      throw reportOf(violation, entry, nullptr, "");
    }
  }
  return *found;
}

/// Runs the warps in turns, from barrier to barrier.
void Executor::runBlock(Block& block, std::vector<Warp>& warps, const Instruction*& at, Warp*& of) {
  for (;;) {
    const Warp* first = nullptr; // of those that wait
    const Warp* ended = nullptr;
    for (Warp& warp : warps) {
      of = &warp;
      if (!warp.groups.empty() && advance(warp, at)) {
        if (first == nullptr) first = &warp;
        if (&barrierOf(warp) != &barrierOf(*first)) {
          throw Violation(
              Kind::kBarrier,
              "thread " + text(first->thread(0)) + " waits at another one, line " +
                  std::to_string(barrierOf(*first).line));
        }
      } else {
        ended = &warp;
      }
    }
    if (first == nullptr) return;
    if (ended != nullptr) {
      at = &barrierOf(*first);
      of = const_cast<Warp*>(first);
      throw Violation(
          Kind::kBarrier, "waits for thread " + text(ended->thread(0)) + ", which has ended");
    }
    ++block.epoch;
    for (Warp& warp : warps) passBarrier(warp);
  }
}

void Executor::run(
    Loaded& loaded,
    const std::string& entry,
    Dim3 blocks,
    Dim3 threads,
    const std::byte* parameters,
    std::vector<GlobalMemory::Range> memory) {
  const Program& program = this->program(loaded, entry);
  std::unique_lock lock(mutex_);
  for (const auto& buffer : loaded.buffers_) {
    memory.push_back({buffer.begin, buffer.begin + buffer.bytes, buffer.constant});
  }
  const std::vector<GlobalMemory::Range> ranges = std::move(memory);
  memory_.setRanges(ranges);
  const auto sleep = [&](uint64_t ns) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    lock.lock();
    memory_.setRanges(ranges);
  };
  Grid grid{program, blocks, threads, parameters, memory_, ++grids_, sleep, limit_};
  Traffic traffic;
  if (Traffic::isWanted()) grid.traffic = &traffic;
  SharedMemory shared(program.shared);
  Block block{grid, shared, 0, {}};

  const auto count = static_cast<uint32_t>(threads.count());
  std::vector<Warp> warps((count + 31) / 32, Warp(block));
  std::vector<std::vector<std::byte>> registers(warps.size());
  std::vector<std::vector<uint32_t>> defined(warps.size());
  for (size_t w = 0; w < warps.size(); ++w) {
    Warp& warp = warps[w];
    registers[w].resize(program.register_bytes);
    defined[w].resize(program.registers);
    warp.bases[0] = registers[w].data();
    warp.bases[1] = const_cast<std::byte*>(program.constants.data());
    warp.defined = defined[w].data();
    warp.first_thread = static_cast<uint32_t>(32 * w);
    const uint32_t lanes = std::min(count - warp.first_thread, 32u);
    warp.present = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.local.resize(size_t{32} * program.local_bytes);
    warp.local_written.resize(warp.local.size());
  }

  const Instruction* at = nullptr;
  Warp* of = nullptr;
  try {
    for (block.index.z = 0; block.index.z < blocks.z; ++block.index.z) {
      for (block.index.y = 0; block.index.y < blocks.y; ++block.index.y) {
        for (block.index.x = 0; block.index.x < blocks.x; ++block.index.x) {
          shared.begin(++grids_);
          block.epoch = 0;
          for (size_t w = 0; w < warps.size(); ++w) {
            Warp& warp = warps[w];
            warp.exited = warp.carry = 0;
            warp.epoch = 0;
            warp.copies = {};
            warp.groups = {{0, warp.present}};
            std::ranges::fill(defined[w], 0);
            defined[w][0] = ~0u; // constants
            std::ranges::fill(warp.local_written, uint8_t{0});
          }
          runBlock(block, warps, at, of);
          ++block.number;
        }
      }
    }
    if (grid.traffic != nullptr) traffic.write(entry, grid.steps);
  } catch (const Violation& violation) {
    throw reportOf(violation, entry, of, at == nullptr ? "" : lineText(loaded.module, at->line));
  }
}

} // namespace puone::ptx
