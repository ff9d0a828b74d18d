// SPDX-License-Identifier: BSD-3-Clause
// Finding NVIDIA's libraries at run time.
#pragma once

#include <span>
#include <string>
#include <type_traits>

#include <dlfcn.h>

namespace puone::cuda {

/// A library by its file names: the one that is in the process already, on the loader's path, or,
/// by its path in the directory of wheels, installed beside torch. NULL if there is none. It stays
/// loaded until dlclose().
void* openUsual(std::span<const char* const> names, std::span<const char* const> wheel_paths);

/// Sets `function` to the symbol, NULL if the library lacks it.
template <class Function>
bool findSymbol(void* library, const char* name, Function& function) {
  function = reinterpret_cast<std::remove_reference_t<Function>>(dlsym(library, name));
  return function != nullptr;
}

} // namespace puone::cuda
