// SPDX-License-Identifier: BSD-3-Clause
// standin_tests [part of a test's name]
#include "check.h"

int main(int argc, char** argv) {
  return puone::test::runAll({argc > 1 ? argv[1] : "", {}});
}
