// SPDX-License-Identifier: BSD-3-Clause
// Gives PrivateUse1 its name as soon as this library is loaded. PyTorch looks for an accelerator
// only where that name is set: without it autograd finds none, and "puone" is not a device string.
// A C++ program needs nothing else; Python adds its own half of the name (torch_puone).
#include <c10/core/DeviceType.h>

namespace puone {
namespace {

// [quote: name]
// PyTorch accepts the same name again and refuses another one: a process has one PrivateUse1
// device. If another backend has it, the exception ends the process with PyTorch's message, because
// the kernels of both are registered for the same dispatch key and neither would work.
const bool device_registered = [] {
  c10::register_privateuse1_backend("puone");
  return true;
}();
// [end: name]

} // namespace
} // namespace puone
