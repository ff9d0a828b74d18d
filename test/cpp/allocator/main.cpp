// SPDX-License-Identifier: BSD-3-Clause
// allocator_tests [part of a test's name]
#include <cstdlib>

#include "check.h"
#include "runtime/driver.h"

int main(int argc, char** argv) {
  setenv("PUONE_DRIVER", "sim", 1);
  setenv("PUONE_SIM_DEVICES", "3", 1);
  setenv("PUONE_SIM_MEMORY", "256M", 1);
  puone::test::Selection selection;
  if (argc > 1) selection.name_part = argv[1];
  const int status = puone::test::runAll(selection);
  puone::shutdownDriver(); // joins its threads
  return status;
}
