// SPDX-License-Identifier: BSD-3-Clause
// Finding NVIDIA's libraries at run time.
#pragma once

#include <span>
#include <string>

#include <dlfcn.h>

namespace puone::cuda {

/// A library by its file names: the one that is in the process already, on the loader's path, or,
/// by its path in the directory of wheels, installed beside torch. NULL if there is none. It stays
/// loaded until dlclose().
void* openUsual(std::span<const char* const> names, std::span<const char* const> wheel_paths);

/// The library that the value of a variable names: its path, or "none", which is NULL. Error, which
/// names the variable, if it cannot be loaded.
void* openChosen(const char* variable, const char* value);

/// Looks up a library's functions.
class SymbolFinder {
 public:
  explicit SymbolFinder(void* library) : library_(library) {}

  /// Sets `function` to the symbol, NULL if the library lacks it.
  template <class Function>
  void operator()(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }

  /// The first function that the library lacks; NULL if it has all.
  const char* missing() const {
    return missing_;
  }

 private:
  void* const library_;
  const char* missing_ = nullptr;
};

} // namespace puone::cuda
