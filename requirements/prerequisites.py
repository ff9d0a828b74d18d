# SPDX-License-Identifier: BSD-3-Clause
"""Says in one line what this project needs of a machine and pip cannot install.

    prerequisites.py python      this Python: its version, and whether it makes virtual environments
    prerequisites.py compiler    a C++20 compiler, and the headers of this Python

It runs on every Python 3, because an old one gets a message too. Status 1 if something is missing.
"""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig

OLDEST = (3, 10)
# Standard headers and language features that the sources use and older compilers lack.
PROBE = """
#include <bit>
#include <concepts>
#include <span>
struct Pair { int first, second; };
constinit int zero = 0;
template <std::integral T> T twice(T value) { return 2 * value; }
int size(std::span<const int> values) { return static_cast<int>(values.size()) + zero; }
Pair pair() { return {.first = twice(1), .second = std::popcount(3u)}; }
"""


def python() -> str:
    """What is wrong with this Python; empty if nothing."""
    if sys.version_info < OLDEST:
        return (
            f"{sys.executable} is Python {sys.version_info[0]}.{sys.version_info[1]}: "
            f"install Python {OLDEST[0]}.{OLDEST[1]} or newer, and name it if it is not python3 "
            "(make BASE_PYTHON=python3.12 ...)"
        )
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            return (
                f"{sys.executable} cannot make virtual environments, it lacks the module {module}: "
                f"install it (Debian, Ubuntu: apt-get install python3-venv)"
            )
    return ""


def compiler() -> str:
    """What is missing to compile an extension of this Python; empty if nothing."""
    try:
        named = shlex.split(os.environ.get("CXX", ""))
    except ValueError as error:
        return f"CXX={os.environ['CXX']} is not a command ({error}): set CXX to a C++ compiler"
    found = [shutil.which(name) for name in (named[:1] or ["c++", "g++", "clang++"])]
    paths = [path for path in found if path]
    if not paths:
        what = f"CXX={named[0]} is not there" if named else "there is no C++ compiler"
        return f"{what}: install GCC 11 or newer (Debian, Ubuntu: apt-get install g++), or set CXX"
    command = [paths[0], *named[1:], "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    try:
        done = subprocess.run(
            command, input=PROBE.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        return f"{paths[0]} does not run ({error.strerror}): set CXX to a C++ compiler"
    if done.returncode:
        lines = done.stdout.decode(errors="replace").splitlines()
        said = next((line for line in lines if "error" in line), " ".join(lines))
        return (
            f"{paths[0]} does not compile C++20 ({said.strip()}): install GCC 11 or newer, or name "
            "another compiler by CXX"
        )
    headers = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(headers, "Python.h")):
        return (
            f"there is no Python.h in {headers}: install the headers of this Python "
            "(Debian, Ubuntu: apt-get install python3-dev; Fedora: dnf install python3-devel)"
        )
    return ""


def main() -> None:
    """Check what is named."""
    checks = {"python": python, "compiler": compiler}
    for name in sys.argv[1:]:
        if name not in checks:
            sys.exit(f"error: there is no check {name}; there are {', '.join(checks)}")
        problem = checks[name]()
        if problem:
            sys.exit(f"error: {problem}")


if __name__ == "__main__":
    main()
