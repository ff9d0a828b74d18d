// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/driver.h"

#include <array>
#include <utility>

#include "bindings/bindings.h"
#include "runtime/launch_debugging.h"
#include "runtime/python_stack.h"

namespace puone {
namespace {

constexpr std::array<std::pair<puone_capability, const char*>, 11> kCapabilityNames{{
    {PUONE_CAP_STREAMS, "streams"},
    {PUONE_CAP_STREAM_PRIORITIES, "stream_priorities"},
    {PUONE_CAP_HOST_FUNC, "host_func"},
    {PUONE_CAP_EVENTS, "events"},
    {PUONE_CAP_EVENT_TIMING, "event_timing"},
    {PUONE_CAP_MEMORY, "memory"},
    {PUONE_CAP_PINNED_MEMORY, "pinned_memory"},
    {PUONE_CAP_PEER_ACCESS, "peer_access"},
    {PUONE_CAP_KERNELS, "kernels"},
    {PUONE_CAP_EXTERNAL_STREAMS, "external_streams"},
    {PUONE_CAP_VALIDATION, "validation"},
}};

pybind11::dict driverInfo() {
  const DriverState& state = driverState();
  pybind11::list capabilities;
  for (const auto& [bit, name] : kCapabilityNames) {
    if (state.capabilities & bit) {
      capabilities.append(name);
    }
  }
  pybind11::dict info;
  info["available"] = state.available();
  info["name"] = state.name;
  info["path"] = state.path;
  info["error"] = state.error;
  info["passed_over"] = state.passed_over;
  info["capabilities"] = capabilities;
  return info;
}

} // namespace

void bindDriver(pybind11::module_& m) {
  setLaunchStacks(&gatherPythonStack, &formatPythonStack);
  m.def("driver_info", &driverInfo);
  m.def("choose_driver_again", &chooseDriverAgain);
  m.def("shutdown", &shutdownDriver, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("in_bad_fork", &inBadFork);
}

} // namespace puone
