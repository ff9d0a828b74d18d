// SPDX-License-Identifier: BSD-3-Clause
// Tests in a process of their own: the driver looks for libraries once, and never forgets a lost
// device.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "check.h"

namespace puone::test {

/// Runs `body` in a forked child, whose failed checks are failures here. A child that takes more
/// than `seconds` is killed.
template <class Body>
void inChild(const Body& body, unsigned seconds = 20) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    const int before = failureCount();
    body();
    std::_Exit(failureCount() == before ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

} // namespace puone::test
