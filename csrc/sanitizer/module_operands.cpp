// SPDX-License-Identifier: BSD-3-Clause
#include "sanitizer/module_operands.h"

#include <cstring>
#include <mutex>
#include <string>
#include <unordered_set>

namespace puone::sanitizer {
namespace {

template <class T>
T at(const void* args, uint64_t place) {
  T value;
  std::memcpy(&value, static_cast<const unsigned char*>(args) + place, sizeof value);
  return value;
}

int64_t valueOf(const puone_module_number& number, const void* args) {
  return number.argument == 0 ? number.value : at<int64_t>(args, number.argument);
}

// The name for good: what is known of memory outlives the module.
const char* kept(const char* name) {
  static std::mutex mutex;
  static auto* const all = new std::unordered_set<std::string>();
  const std::lock_guard guard(mutex);
  return all->insert(name).first->c_str();
}

} // namespace

void addDeclared(const puone_module_kernel& kernel, const void* args, Operands& to) {
  if (at<puone_module_arguments>(args, 0).count == 0) return;
  for (uint64_t i = 0; i < kernel.access_count; ++i) {
    const puone_module_access& access = kernel.accesses[i];
    const auto* data = at<const void*>(args, access.pointer);
    if (data == nullptr) continue;
    const Flags flags{
        .reads = (access.flags & PUONE_MODULE_READ) != 0,
        .writes = (access.flags & PUONE_MODULE_WRITE) != 0,
        .partial = (access.flags & PUONE_MODULE_PARTIAL) != 0};
    Operand& operand = to.add(kept(access.name), data, int64_t{access.element}, flags);
    for (uint64_t s = 0; s < access.step_count; ++s) {
      const puone_module_step& step = access.steps[s];
      operand.step(valueOf(step.size, args), valueOf(step.stride, args));
    }
  }
}

} // namespace puone::sanitizer
