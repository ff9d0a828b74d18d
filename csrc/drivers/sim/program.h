// SPDX-License-Identifier: BSD-3-Clause
// Runs another program to its end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace puone::sim {

struct Ended {
  bool started;       // false: there is no such program, and `output` says why
  int status;         // as waitpid() gives it
  std::string output; // of both its streams

  bool succeeded() const {
    return started && status == 0;
  }
};

/// `command` is the program, found on PATH, and its arguments; `input` is its standard input. Does
/// not fork this process, whose other threads may hold locks. Throws Error(INTERNAL) if the system
/// lacks what that takes.
Ended run(const std::vector<std::string>& command, std::string_view input);

} // namespace puone::sim
