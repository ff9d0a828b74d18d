// SPDX-License-Identifier: BSD-3-Clause
#include "liar.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace puone::liar {
namespace {

const puone_hal_api* true_table = nullptr;
// As long as the wrapped table, which may have entries this file does not know.
std::vector<std::max_align_t> false_table;

puone_hal_api* lyingTable() {
  return reinterpret_cast<puone_hal_api*>(false_table.data());
}

// The table for this call: one, unless that is what the lie is about.
const puone_hal_api* tableForCaller() {
  if (!symbol().copies_for_each_thread) return lyingTable();
  thread_local std::vector<std::max_align_t> mine = false_table;
  return reinterpret_cast<const puone_hal_api*>(mine.data());
}

puone_status complain(const char* what, const char* value) {
  std::fprintf(stderr, "puone_liar: %s: %s\n", what, value);
  return PUONE_INTERNAL;
}

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

const Lie* findLie(std::string_view id) {
  for (const Lie& lie : lies()) {
    if (id == lie.id) return &lie;
  }
  return nullptr;
}

puone_status loadTruth(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return complain("cannot open PUONE_LIAR_TARGET", dlerror());
  auto get = reinterpret_cast<puone_hal_get_fn>(dlsym(library, PUONE_HAL_GET_SYMBOL));
  if (get == nullptr) return complain("PUONE_LIAR_TARGET is not a puone driver", path);
  return get(PUONE_HAL_ABI_MAJOR, &true_table);
}

puone_status setUp() {
  const char* path = environment("PUONE_LIAR_TARGET");
  if (path == nullptr) return complain("PUONE_LIAR_TARGET is not set", "the driver to wrap");
  const char* id = environment("PUONE_LIAR");
  const Lie* lie = findLie(id != nullptr ? id : "none");
  if (lie == nullptr) return complain("PUONE_LIAR names no lie", id);
  if (puone_status status = loadTruth(path); status != PUONE_OK) return status;

  false_table.resize(true_table->struct_size / sizeof(std::max_align_t) + 1);
  std::memcpy(false_table.data(), true_table, true_table->struct_size);
  lie->tell(*lyingTable());
  return PUONE_OK;
}

} // namespace

Symbol& symbol() {
  static Symbol only;
  return only;
}

const puone_hal_api& truth() {
  return *true_table;
}

} // namespace puone::liar

extern "C" __attribute__((visibility("default"))) puone_status
puone_hal_get(uint32_t abi_major, const puone_hal_api** out) {
  using namespace puone::liar;
  if (out == nullptr) return PUONE_INVALID_ARGUMENT;
  static const puone_status status = setUp();
  const bool known = abi_major == PUONE_HAL_ABI_MAJOR || symbol().accepts_any_abi;
  if (status == PUONE_OK && !known) return PUONE_UNSUPPORTED;
  if (status == PUONE_OK) *out = tableForCaller();
  return status;
}
