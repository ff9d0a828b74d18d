// SPDX-License-Identifier: BSD-3-Clause
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>

#include "bindings/bindings.h"

namespace {

// [quote: errors]
// c10's exceptions become torch's Python exceptions, as in torch's own bindings; all others are
// left to pybind11.
void translateTorchErrors(std::exception_ptr error) {
  try {
    if (error) {
      std::rethrow_exception(error);
    }
  } catch (const c10::Error&) {
    torch::translate_exception_to_python(std::current_exception());
  }
}
// [end: errors]

} // namespace

PYBIND11_MODULE(_C, m) {
  pybind11::register_local_exception_translator(&translateTorchErrors);
  puone::bindDriver(m);
  puone::bindDevice(m);
  puone::bindStream(m);
  puone::bindMemory(m);
  puone::bindMemoryHistory(m);
  puone::bindGenerator(m);
  puone::bindAutograd(m);
  puone::bindFallback(m);
  puone::bindGraph(m);
  puone::bindFault(m);
  puone::bindDlpack(m);
  puone::bindSharedStorage(m);
  puone::bindTensorTags(m);
  puone::bindModuleKernel(m);
  puone::bindSanitizer(m);
}
