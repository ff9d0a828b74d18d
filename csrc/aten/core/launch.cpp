// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/launch.h"

#include "aten/core/operands.h"

namespace puone {
namespace {

[[noreturn]] void refuse(const KernelBase& kernel, const std::string& type) {
  throw UnsupportedElementType(
      {__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
      c10::str("the driver's kernel \"", kernel.name(), "\" does not take elements of ", type));
}

} // namespace

void requireType(const KernelBase& kernel, puone_dtype type) {
  if (C10_LIKELY(!kernel.available() || kernel.supports(type))) return;
  refuse(kernel, c10::str("puone_dtype ", static_cast<int>(type)));
}

void requireType(const KernelBase& kernel, c10::ScalarType type) {
  const std::optional<puone_dtype> dtype = kernelDtype(type);
  if (C10_LIKELY(!kernel.available() || (dtype && kernel.supports(*dtype)))) return;
  refuse(kernel, c10::toString(type));
}

} // namespace puone
