# SPDX-License-Identifier: BSD-3-Clause
"""The extension and its type stub say the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import torch

import torch_puone
from torch_puone import _C

STUB = ast.parse((Path(torch_puone.__file__).parent / "_C.pyi").read_text())
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
# Exists for type checkers only: a description of a dict.
ONLY_IN_STUB = {"DriverInfo"}


def classes() -> dict[str, ast.ClassDef]:
    """The classes of the stub that exist at run time."""
    found = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
    return {name: node for name, node in found.items() if name not in ONLY_IN_STUB}


def public(obj: object) -> set[str]:
    """Names of an object that do not start with an underscore."""
    return {name for name in dir(obj) if not name.startswith("_")}


def test_both_have_the_same_names() -> None:
    assert public(_C) == set(FUNCTIONS) | set(classes())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_the_arguments_its_stub_says(name: str) -> None:
    arguments = [argument.arg for argument in FUNCTIONS[name].args.args]
    # pybind11 writes the signature into the docstring's first line.
    signature = str(getattr(_C, name).__doc__).splitlines()[0]
    assert re.findall(r"(\w+): ", signature) == arguments, signature


def test_a_class_has_the_attributes_its_stub_says() -> None:
    for name, node in classes().items():
        declared = {
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        }
        methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        special = {name for name in methods if name.startswith("__")}
        assert special <= set(dir(getattr(_C, name)))
        assert public(getattr(_C, name)) == declared | (methods - special)


def test_driver_info_has_the_keys_and_types_its_stub_says() -> None:
    info = _C.driver_info()
    assert {key: type(value) for key, value in info.items()} == {
        "available": bool,
        "name": str,
        "path": str,
        "error": str,
        "passed_over": str,
        "capabilities": list,
    }


def test_values_have_the_types_their_stub_says() -> None:
    torch_puone.init()
    properties = _C.device_properties(0)
    assert isinstance(properties.name, str)
    assert all(
        type(getattr(properties, name)) is int for name in public(_C.DeviceProperties) - {"name"}
    )
    stream = _C.current_stream(-1)
    assert type(stream) is tuple
    assert [type(part) for part in stream] == [int, int, int]
    assert isinstance(_C.default_generator(-1), torch.Generator)
