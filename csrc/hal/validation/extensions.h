// SPDX-License-Identifier: BSD-3-Clause
// The extensions that the layer wraps. Each has a file of its own, which keeps the driver's table
// of the extension to itself.
#pragma once

#include <mutex>

namespace puone::validation {

/// The wrapped table of an extension, created by `wrapped` at the first request. Its entries call
/// the driver's through `inner`. `wrapped` has to be a function of one file alone: then the symbols
/// of this one, and of what the C++ library instantiates for it, are of that file alone, too.
template <auto wrapped, class Api>
const void* wrappedOnce(const void* found, const Api*& inner) {
  static std::once_flag once;
  static Api table;
  std::call_once(once, [&] {
    inner = static_cast<const Api*>(found);
    table = wrapped(*inner);
  });
  return &table;
}

// The wrapped table of an extension, of which `found` is the driver's table.
const void* wrappedFault(const void* found);
const void* wrappedDlpack(const void* found);
const void* wrappedGraph(const void* found);
const void* wrappedTrace(const void* found);
const void* wrappedIpc(const void* found);
const void* wrappedModule(const void* found);
const void* wrappedCollective(const void* found);

} // namespace puone::validation
