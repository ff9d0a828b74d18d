// SPDX-License-Identifier: BSD-3-Clause
// The few lines of test harness that the driver tests need: TEST registers, CHECK reports and goes
// on, REQUIRE reports and leaves the test.
#pragma once

#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace puone::test {

struct Failed {}; // thrown by REQUIRE

struct Registration {
  Registration(const char* file, const char* name, void (*body)());
};

/// Books a failure of the running test.
void report(const char* file, int line, const std::string& text);
/// Failures so far, of all tests.
int failureCount();

struct Selection {
  std::string name_part;                  // run tests whose name contains it
  std::vector<std::string> without_files; // and whose source file is none of these
};

/// Runs the selected tests; returns the process's exit status. Running nothing is a failure.
int runAll(const Selection& selection);

template <class A, class B>
bool checkEqual(const A& actual, const B& expected, const char* text, const char* file, int line) {
  if (actual == expected) return true;
  std::ostringstream message;
  message << text << ": got " << +actual << ", expected " << +expected;
  report(file, line, message.str());
  return false;
}

} // namespace puone::test

#define TEST(name)                                                                     \
  static void name();                                                                  \
  static const ::puone::test::Registration name##_registration(__FILE__, #name, name); \
  static void name()

#define CHECK(condition) \
  ((condition) ? void() : ::puone::test::report(__FILE__, __LINE__, #condition))

#define REQUIRE(condition)                                   \
  do {                                                       \
    if (!(condition)) {                                      \
      ::puone::test::report(__FILE__, __LINE__, #condition); \
      throw ::puone::test::Failed{};                         \
    }                                                        \
  } while (false)

#define CHECK_EQ(actual, expected) \
  ::puone::test::checkEqual((actual), (expected), #actual " == " #expected, __FILE__, __LINE__)
