# SPDX-License-Identifier: BSD-3-Clause
"""A name that the device module lacks fails the check that requires it, and no other."""

from __future__ import annotations

import ast
import pathlib
import types
from collections.abc import Callable
from typing import Any

import pytest

import torch_conformance.checks
from torch_conformance.authoring.api import in_thread, raised
from torch_conformance.authoring.device import run_forked
from torch_conformance.authoring.device_module import DeviceModule
from torch_conformance.authoring.discovery import chapter_of
from torch_conformance.spec.reason import Unsupported

CHECKS = pathlib.Path(torch_conformance.checks.__file__).parent
#: The chapters that require names of the module; all others only use them.
REQUIRING = {"graph", "memory", "registration", "smoke"}


def module() -> Any:
    """A device module with one function."""
    return DeviceModule(types.SimpleNamespace(device_count=lambda: 3), "mychip")


def test_a_name_of_the_module_is_there() -> None:
    assert module().device_count() == 3


USES: dict[str, Callable[[], object]] = {
    "at_once": lambda: module().default_generators,
    "where_an_exception_is_expected": lambda: raised(lambda: module().set_device(7)),
    "in_a_thread": lambda: in_thread(lambda: module().current_stream()),
    "in_a_child": lambda: run_forked(lambda: module().current_stream()),
    "without_a_module": lambda: DeviceModule(None, "mychip").device_count(),
}


@pytest.mark.parametrize("use", USES)
def test_a_missing_name_ends_a_check_as_unsupported(use: str) -> None:
    with pytest.raises(Unsupported, match=r"torch\.mychip has no \w+; the chapter registration"):
        USES[use]()


def test_only_the_chapters_that_require_names_look_at_the_bare_module() -> None:
    looking = {
        chapter_of(path)
        for path in CHECKS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "bare_module"
    }
    assert looking == REQUIRING
