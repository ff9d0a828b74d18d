# SPDX-License-Identifier: BSD-3-Clause
"""A change of a declaration that the rules name changes a file that has the surface's label.

What is watched because it is used, and no rule names it, is labelled by its findings.
"""

from __future__ import annotations

import pytest
from installed import installed_snapshot

from torch_backend_ci.label import rules
from torch_backend_ci.label.globs import match
from torch_backend_ci.surface import catalogue, usage
from torch_backend_ci.surface.model import Declaration, Domain

NAMED = catalogue.load(known=usage.NOTHING)
PYTHON = [entry.replace(":", ".") for s in NAMED.surfaces for entry in s.python]

# Told from findings only. A symbol has no file, and the device module is read all over PyTorch.
NO_FILE = {Domain.SYMBOL, Domain.DEVICE_MODULE}
# Overloads for other types than the surface's, and a second place of an alias.
ELSEWHERE = {"c10::toString", "torch::jit::Stack"}
# Written out of a template that nearly every PR to the Python API changes.
TEMPLATED = {"torch/_C/__init__.pyi"}

# Where a file of a wheel, or a directory, lies in PyTorch's repository: first match.
WHEEL_TO_REPOSITORY = {
    "torch/include/ATen/core/TensorBody.h": "aten/src/ATen/templates/TensorBody.h",
    "torch/include/ATen/": "aten/src/ATen/",
    "torch/include/kineto/": "third_party/kineto",  # a submodule: a path without files
    "torch/include/": "",
    "torchgen/packaged/ATen/": "aten/src/ATen/",
}


def is_named(declaration: Declaration) -> bool:
    """Whether the rules name it, or its header or module."""
    name = declaration.name.partition("<")[0]
    if declaration.domain is Domain.CPP:
        of = NAMED.surface_of_macro if declaration.kind == "macro" else NAMED.surface_of_symbol
        return of(name) is not None
    if declaration.domain is Domain.HEADER:
        return name in NAMED.headers
    if declaration.domain is Domain.PYTHON:
        return any(f"{name}.".startswith(f"{entry}.") for entry in PYTHON)
    return True


def repository_path(file: str) -> str:
    for wheel, repository in WHEEL_TO_REPOSITORY.items():
        if file.startswith(wheel):
            submodule = repository.startswith("third_party/")
            return repository if submodule else repository + file.removeprefix(wheel)
    return file


@pytest.mark.nightly  # the whole installed torch is read
def test_every_file_that_declares_something_on_a_surface_is_labelled_with_it() -> None:
    paths = {label.surface: label.paths for label in rules.load().labels}
    places = {
        (declaration.surface, repository_path(declaration.file)): declaration.name
        for declaration in installed_snapshot().declarations
        if declaration.domain not in NO_FILE
        and is_named(declaration)
        and declaration.name not in ELSEWHERE
        and declaration.file not in TEMPLATED
    }
    assert len(places) > 150
    unlabelled = {
        f"surface: {surface} has {name}, but not its file {path}"
        for (surface, path), name in places.items()
        if not match(paths[surface], path)
    }
    assert unlabelled == set()
