// SPDX-License-Identifier: BSD-3-Clause
// driver_tests [--without FILE]... [part of a test's name]
// driver_tests --child NAME runs one of the processes that test_process.cpp starts.
#include <cstring>
#include <string>

#include "check.h"

namespace puone::test {
int runChild(const std::string& name);
}

int main(int argc, char** argv) {
  puone::test::Selection selection;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (more && std::strcmp(argv[i], "--child") == 0) return puone::test::runChild(argv[i + 1]);
    if (more && std::strcmp(argv[i], "--without") == 0) {
      selection.without_files.emplace_back(argv[++i]);
    } else {
      selection.name_part = argv[i];
    }
  }
  return puone::test::runAll(selection);
}
