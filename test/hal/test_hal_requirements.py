# SPDX-License-Identifier: BSD-3-Clause
"""Requirements on drivers and the tests of them: the mapping is total both ways."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hal_conformance
from hal_conformance import abi
from hal_conformance.covers import catalogue, covered_by
from hal_conformance.driver import CONDITIONS


def suite_tests() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every test function of the HAL suite."""
    folder = Path(hal_conformance.__file__).parent
    for file in sorted(folder.glob("test_*.py")):
        module = importlib.import_module(f"hal_conformance.{file.stem}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("test_") and function.__module__ == module.__name__:
                yield f"{file.stem}.{name}", function


def test_every_test_names_requirements_of_the_catalogue() -> None:
    for name, function in suite_tests():
        assert covered_by(function).requirements, f"{name} names no requirement"
        unknown = set(covered_by(function).requirements) - set(catalogue())
        assert not unknown, f"{name} names {unknown}"


def test_every_requirement_has_a_test() -> None:
    named = {
        requirement
        for _, function in suite_tests()
        for requirement in covered_by(function).requirements
    }
    assert set(catalogue()) - named == set()


def test_requirements_need_only_what_the_suite_can_ask_for() -> None:
    known = {capability.name.lower() for capability in abi.Capability if capability.name}
    for requirement in catalogue().values():
        assert requirement.id.startswith("HAL-")
        assert set(requirement.needs) <= known | set(CONDITIONS), requirement.id


def test_every_test_takes_a_driver() -> None:
    """A test without the driver fixture would pass whatever the driver does."""
    for name, function in suite_tests():
        assert {"hal", "running", "library"} & set(inspect.signature(function).parameters), name
