# SPDX-License-Identifier: BSD-3-Clause
"""What the coupling audit tells people to write instead exists, since the torch that it says."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest
from coupling_trees import found
from packaging.version import Version
from trees import installed_tree

from torch_backend_ci.surface.coupling.rules import Replacement, load

RULES = load()
REPLACEMENTS = (*RULES.replacements, *RULES.rule_replacements.values())
OLDEST = Version("2.5")  # a `since` of this may mean before


@functools.cache
def exists(root: Path, name: str) -> bool:
    """Whether a torch has this name, by its sources alone."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        folder = root.joinpath(*parts[:cut])
        for file in (folder.with_suffix(".py"), folder / "__init__.py"):
            if file.is_file():
                stub = root / "torch/_C/__init__.pyi"  # torch/__init__.py has all of torch._C
                files = (file, stub) if parts[:cut] == ["torch"] else (file,)
                return any(_defines(f, _tree(f).body, parts[cut:]) for f in files)
    return False


@functools.cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())


def _defines(file: Path, body: list[ast.stmt], parts: list[str]) -> bool:
    name, *rest = parts
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return not rest or _defines(file, node.body, rest)
        names = [getattr(node, "name", None)]
        if isinstance(node, ast.ImportFrom):
            names = [alias.asname or alias.name for alias in node.names]
            if names == ["*"] and node.level == 1:
                other = file.parent / f"{node.module}.py"
                names = [name] if _defines(other, _tree(other).body, parts) else []
        if name in names and not rest:
            return True
    return False


@pytest.mark.parametrize("entry", REPLACEMENTS, ids=lambda entry: entry.pattern)
def test_a_replacement_exists_in_the_torch_that_it_names(entry: Replacement) -> None:
    tree = installed_tree()
    if Version(entry.since) <= Version(tree.version):
        assert all(exists(tree.root, name) for name in entry.names)
    else:
        assert not all(exists(tree.root, name) for name in entry.names)


def test_what_no_torch_has_does_not_exist() -> None:
    root = installed_tree().root
    assert not exists(root, "torch.accelerator.make_coffee")
    assert not exists(root, "torch.Stream.make_coffee")
    assert not exists(root, "torch.coffee.make")


def test_what_is_replaced_exists() -> None:
    root = installed_tree().root
    coupled = [entry.pattern for entry in RULES.replacements if entry.pattern.startswith("torch.")]
    assert coupled
    assert [name for name in coupled if not exists(root, name)] == []


def test_a_replacement_names_no_vendor() -> None:
    assert [e.use for e in REPLACEMENTS if RULES.vendor.names(e.use)] == []


@pytest.mark.parametrize(
    ("source", "use"),
    [
        ("torch.cuda.synchronize()", "torch.accelerator.synchronize()"),
        ("torch.cuda.current_device()", "torch.accelerator.current_device_index()"),
        ("torch.cuda.amp.autocast()", "torch.amp.autocast(device_type)"),
        ("from torch.cuda import Stream", "torch.Stream"),
        ("x.is_cuda", "x.device.type == torch.accelerator.current_accelerator().type"),
        ("x.cuda()", "x.to(torch.accelerator.current_accelerator())"),
        ("f(device='cuda')", "torch.accelerator.current_accelerator()"),
        (
            "f(device='cuda:1')",
            "torch.device(torch.accelerator.current_accelerator().type, index)",
        ),
        ("torch.cuda.nccl.version()", None),
    ],
)
def test_a_hit_knows_its_replacement(tmp_path: Path, source: str, use: str | None) -> None:
    (hit,) = found(tmp_path, {"torch/a.py": f"import torch\n{source}\n"})
    replacement = RULES.replacement(hit)
    assert (replacement and replacement.use) == use


def test_generic_cpp_has_no_replacement(tmp_path: Path) -> None:
    (hit,) = found(tmp_path, {"torch/include/c10/x.h": 'f("cuda:0");'})
    assert RULES.replacement(hit) is None
