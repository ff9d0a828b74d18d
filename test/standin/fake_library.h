// SPDX-License-Identifier: BSD-3-Clause
// Tests of the driver beside a library that stands in for one of NVIDIA's.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "child.h"
#include "driver.h"
#include "standin.h"

namespace puone::test {

/// The library, loaded; the driver finds the same one.
class FakeLibrary {
 public:
  explicit FakeLibrary(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) std::abort();
  }

 protected:
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }

 private:
  void* library_;
};

/// Runs `body` between init() and shutdown() in a child that has these variables, by which the
/// driver chooses its libraries.
template <class Body>
void withVariables(
    const std::vector<std::pair<const char*, const char*>>& variables, const Body& body) {
  constexpr unsigned kSeconds = 60;
  inChild(
      [&] {
        for (const auto& [name, value] : variables) setenv(name, value, 1);
        standinReset();
        OK(hal().init());
        body();
        OK(hal().shutdown());
      },
      kSeconds);
}

inline void copy(void* to, const void* from, size_t bytes, puone_memcpy_kind kind) {
  puone_stream stream = nullptr;
  OK(hal().stream_create(0, 0, &stream));
  OK(hal().memcpy_async(to, from, bytes, kind, stream));
  OK(hal().stream_synchronize(stream));
  OK(hal().stream_destroy(stream));
}

} // namespace puone::test
