// SPDX-License-Identifier: BSD-3-Clause
// A helper left visible, in the library that is linked without the version script.
extern "C" __attribute__((visibility("default"))) int puone_trace_level() {
  return 0;
}
