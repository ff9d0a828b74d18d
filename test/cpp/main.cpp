// SPDX-License-Identifier: BSD-3-Clause
// driver_tests [--list] [part of a test's name]
// driver_tests --child NAME runs one of the processes that test_process.cpp starts.
#include <cstring>
#include <string>

#include "check.h"

namespace puone::test {
int runChild(const std::string& name);
}

int main(int argc, char** argv) {
  bool list = false;
  std::string filter;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--child") == 0 && i + 1 < argc) {
      return puone::test::runChild(argv[i + 1]);
    }
    if (std::strcmp(argv[i], "--list") == 0) {
      list = true;
    } else {
      filter = argv[i];
    }
  }
  return puone::test::runAll(filter, list);
}
