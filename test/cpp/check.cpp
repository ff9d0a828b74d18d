// SPDX-License-Identifier: BSD-3-Clause
#include "check.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <vector>

namespace puone::test {
namespace {

struct Test {
  std::string file; // without its directory
  const char* name;
  void (*body)();
};

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

std::atomic<int> failures{0};

void run(const Test& test) {
  try {
    test.body();
  } catch (const Failed&) {
    // already reported
  } catch (const std::exception& error) {
    report(test.name, 0, std::string("exception: ") + error.what());
  }
}

} // namespace

Registration::Registration(const char* file, const char* name, void (*body)()) {
  const std::string path = file;
  tests().push_back({path.substr(path.rfind('/') + 1), name, body});
}

void report(const char* file, int line, const std::string& text) {
  failures.fetch_add(1);
  std::fprintf(stderr, "  %s:%d: %s\n", file, line, text.c_str());
}

int failureCount() {
  return failures.load();
}

int runAll(const Selection& selection) {
  int run_count = 0;
  int failed_count = 0;
  for (const Test& test : tests()) {
    if (std::string(test.name).find(selection.name_part) == std::string::npos) continue;
    if (std::ranges::count(selection.without_files, test.file) > 0) continue;
    ++run_count;
    const int before = failures.load();
    const auto start = std::chrono::steady_clock::now();
    run(test);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    const bool failed = failures.load() != before;
    failed_count += failed ? 1 : 0;
    std::printf("%s %s (%.0f ms)\n", failed ? "FAIL" : "ok  ", test.name, took.count());
    std::fflush(stdout);
  }
  std::printf("%d tests, %d failed\n", run_count, failed_count);
  return run_count == 0 || failed_count > 0 ? 1 : 0;
}

} // namespace puone::test
