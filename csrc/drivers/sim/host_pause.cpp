// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/host_pause.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace puone::sim {
namespace {

uint64_t read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

/// Whether a thread of the process, other than the calling one, runs or waits for a processor.
bool othersRun() {
  const std::string self = std::to_string(syscall(SYS_gettid));
  std::error_code failed;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", failed)) {
    if (thread.path().filename() == self) continue;
    std::ifstream file(thread.path() / "stat");
    std::string line;
    std::getline(file, line);
    const size_t name_ends = line.rfind(") "); // the name itself may have parentheses
    if (name_ends != std::string::npos && line.compare(name_ends + 2, 1, "R") == 0) return true;
  }
  return false;
}

} // namespace

void HostPause::restart() {
  length_ns_ = 0;
  looked_ns_ = read(CLOCK_MONOTONIC);
  looked_cpu_ns_ = read(CLOCK_PROCESS_CPUTIME_ID);
}

void HostPause::look(uint64_t slice_ns) {
  const uint64_t now = read(CLOCK_MONOTONIC);
  const uint64_t cpu = read(CLOCK_PROCESS_CPUTIME_ID);
  const uint64_t passed = othersRun() ? cpu - looked_cpu_ns_ : now - looked_ns_;
  length_ns_ += std::min(passed, slice_ns);
  looked_ns_ = now;
  looked_cpu_ns_ = cpu;
}

} // namespace puone::sim
