// SPDX-License-Identifier: BSD-3-Clause
// One function per concept; module.cpp calls them all. reference_backend/torch_puone/_C.pyi is the
// documentation.
#pragma once

#include <pybind11/pybind11.h>

namespace puone {

// Calls `f` without the GIL. The allocators' functions take locks and may wait for the device,
// while threads that hold those locks may want the GIL (an observer in Python): none is called with
// it.
template <typename F>
auto withoutGil(const F& f) {
  const pybind11::gil_scoped_release released;
  return f();
}

void bindDriver(pybind11::module_& m);
void bindDevice(pybind11::module_& m);
void bindStream(pybind11::module_& m);
void bindMemory(pybind11::module_& m);
void bindMemoryHistory(pybind11::module_& m);
void bindGenerator(pybind11::module_& m);
void bindFallback(pybind11::module_& m);
void bindAutograd(pybind11::module_& m);
void bindGraph(pybind11::module_& m);
void bindFault(pybind11::module_& m);
void bindDlpack(pybind11::module_& m);
void bindSharedStorage(pybind11::module_& m);
void bindTensorTags(pybind11::module_& m);
void bindModuleKernel(pybind11::module_& m);
void bindSanitizer(pybind11::module_& m);

} // namespace puone
