# SPDX-License-Identifier: BSD-3-Clause
"""Snapshots of trees that a test writes, of one domain each, and what differs between two."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from trees import write_tree

from torch_backend_ci.surface.catalogue import Catalogue, Surface
from torch_backend_ci.surface.diff import diff
from torch_backend_ci.surface.extract import device_module, operators, python_api
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Snapshot, Torch

TAGS = "- tag: core\n- tag: pointwise\n- tag: inplace_view\n- tag: dynamic_output_shape\n"


def python_snapshot(root: Path, files: Mapping[str, str], *entries: str) -> Snapshot:
    """The Python API of these files; `entries` are those of a `python:` list."""
    tree = write_tree(root, {"torch/__init__.py": ""} | _dedented(files))
    catalogue = Catalogue((Surface("accelerator", "title", python=entries),))
    return _snapshot(Domain.PYTHON, python_api.extract(tree, catalogue))


def operator_snapshot(root: Path, entries: str, tags: str = TAGS) -> Snapshot:
    """The operators of this native_functions.yaml."""
    files = {
        f"{operators.FOLDER}/native_functions.yaml": textwrap.dedent(entries),
        f"{operators.FOLDER}/tags.yaml": tags,
    }
    return _snapshot(Domain.OPERATOR, operators.extract(write_tree(root, files), Catalogue(())))


def device_module_snapshot(root: Path, files: Mapping[str, str]) -> Snapshot:
    """The device-module contract of these files."""
    tree = write_tree(root, {"torch/__init__.py": ""} | _dedented(files))
    return _snapshot(Domain.DEVICE_MODULE, device_module.extract(tree, Catalogue(())))


def rules(found: list[Finding]) -> list[str]:
    """The names of the rules, sorted."""
    return sorted(finding.rule for finding in found)


def differences(before: Snapshot, after: Snapshot) -> list[Finding]:
    """The findings; messages are complete, and identities differ."""
    found = diff(before, after)
    assert all("{" not in finding.message for finding in found)
    return found


def _snapshot(domain: Domain, declarations: list[Declaration]) -> Snapshot:
    return Snapshot(Torch("2.13.0", None), frozenset({domain}), tuple(declarations))


def _dedented(files: Mapping[str, str]) -> dict[str, str]:
    return {name: textwrap.dedent(text) for name, text in files.items()}
