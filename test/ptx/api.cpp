// SPDX-License-Identifier: BSD-3-Clause
// The executor for tests in Python: libpuone_ptx_executor.so.
#include <cstring>
#include <string>

#include "executor.h"

using namespace puone::ptx;

namespace {

thread_local std::string error;

/// 0, or 1 if `body` throws; the text is then that of ptx_error().
template <class Body>
int attempt(const Body& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& thrown) {
    error = thrown.what();
    return 1;
  }
}

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

struct ptx_range {
  void* begin;
  uint64_t bytes;
  int32_t written; // its bytes have values
  int32_t constant;
};

/// What the last failed function of this thread says.
EXPORTED const char* ptx_error() {
  return error.c_str();
}

EXPORTED int ptx_load(const char* text, void** module) {
  return attempt([&] { *module = new Loaded(text); });
}

EXPORTED void ptx_unload(void* module) {
  delete static_cast<Loaded*>(module);
}

/// Decodes the entry; the bytes of its parameters.
EXPORTED int ptx_parameters(void* module, const char* entry, uint32_t* bytes) {
  return attempt([&] {
    auto& loaded = *static_cast<Loaded*>(module);
    *bytes = Executor::instance().program(loaded, entry).parameter_bytes;
  });
}

/// Runs the entry on blocks[3] blocks of threads[3] threads, over these ranges of memory.
EXPORTED int ptx_run(
    void* module,
    const char* entry,
    const uint32_t* blocks,
    const uint32_t* threads,
    const void* parameters,
    const ptx_range* ranges,
    uint32_t range_count) {
  return attempt([&] {
    Executor& executor = Executor::instance();
    std::vector<GlobalMemory::Range> memory;
    for (uint32_t i = 0; i < range_count; ++i) {
      const ptx_range& range = ranges[i];
      const auto begin = reinterpret_cast<uint64_t>(range.begin);
      memory.push_back({begin, begin + range.bytes, range.constant != 0});
      if (range.written != 0) {
        executor.written(begin, range.bytes);
      } else {
        executor.forget(begin, range.bytes);
      }
    }
    executor.run(
        *static_cast<Loaded*>(module),
        entry,
        {blocks[0], blocks[1], blocks[2]},
        {threads[0], threads[1], threads[2]},
        static_cast<const std::byte*>(parameters),
        memory);
  });
}
