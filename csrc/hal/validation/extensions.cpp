// SPDX-License-Identifier: BSD-3-Clause
// The entry that gives out the tables of extensions.
#include "hal/validation/extensions.h"

#include <cstdint>
#include <string_view>

#include "hal/collective.h"
#include "hal/hal.h"
#include "hal/ipc.h"
#include "hal/module.h"
#include "hal/validation/checked_entries.h"
#include "hal/validation/checks.h"
#include "hal/validation/refusals.h"
#include "hal/validation/state.h"

namespace puone::validation {

puone_status getExtension(const char* name, uint32_t min_version, const void** out) {
  constexpr const char* entry = "get_extension";
  CHECKED(checkOut(entry, out));
  if (name == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "name is NULL");
  const void* found = nullptr;
  CHECKED(answered(driver->get_extension(name, min_version, &found)));
  const std::string_view asked = name;
  if (asked == PUONE_FAULT_EXTENSION) {
    found = wrappedFault(found);
  } else if (asked == PUONE_DLPACK_EXTENSION) {
    found = wrappedDlpack(found);
  } else if (asked == PUONE_GRAPH_EXTENSION) {
    found = wrappedGraph(found);
  } else if (asked == PUONE_TRACE_EXTENSION) {
    found = wrappedTrace(found);
  } else if (asked == PUONE_IPC_EXTENSION) {
    found = wrappedIpc(found);
  } else if (asked == PUONE_MODULE_EXTENSION) {
    found = wrappedModule(found);
  } else if (asked == PUONE_COLLECTIVE_EXTENSION) {
    found = wrappedCollective(found);
  }
  *out = found;
  return PUONE_OK;
}

} // namespace puone::validation
