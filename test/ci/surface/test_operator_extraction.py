# SPDX-License-Identifier: BSD-3-Clause
"""native_functions.yaml becomes declarations: schemas, how kernels are found, tags."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from unittest.mock import ANY

import pytest
from trees import installed_tree, write_tree

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.extract import operators
from torch_backend_ci.surface.extract.schema_text import SchemaError, parse
from torch_backend_ci.surface.model import Declaration

FOLDER = operators.FOLDER
TAGS = "- tag: core\n  desc: text\n- tag: pointwise\n  desc: text\n"


def extracted(root: Path, entries: str, tags: str = TAGS) -> dict[str, Declaration]:
    files = {
        f"{FOLDER}/native_functions.yaml": textwrap.dedent(entries),
        f"{FOLDER}/tags.yaml": tags,
    }
    declarations = operators.extract(write_tree(root, files), catalogue.load())
    return {d.name: d for d in declarations}


def test_a_schema_is_taken_apart() -> None:
    schema = parse("add.out(Tensor self, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)")
    assert schema.name == "aten::add.out"
    assert schema.arguments == [
        {"type": "Tensor", "name": "self"},
        {"type": "Scalar", "name": "alpha", "default": "1", "kwarg_only": True},
        {"type": "Tensor", "name": "out", "kwarg_only": True, "alias": "a!"},
    ]
    assert schema.returns == [{"type": "Tensor", "alias": "a!"}]


@pytest.mark.parametrize(
    ("text", "arguments", "returns"),
    [
        ("f() -> ()", [], []),
        ("f(Tensor(a -> *) self) -> Tensor(a)[]", ["Tensor"], ["Tensor[]"]),
        (
            "f(int[2]? s=None, Tensor?[] i=[1, 2]) -> (Tensor, Tensor b)",
            ["int[2]?", "Tensor?[]"],
            ["Tensor", "Tensor"],
        ),
        (r"""f(str a="\"',(", str b='"\',(') -> int""", ["str", "str"], ["int"]),
    ],
)
def test_every_form_of_schema_is_read(text: str, arguments: list[str], returns: list[str]) -> None:
    schema = parse(text)
    assert [a["type"] for a in schema.arguments] == arguments
    assert [r["type"] for r in schema.returns] == returns


@pytest.mark.parametrize(
    "text", ["f(", "f(Tensor) -> int", "f(Tensor a, int[ b) -> int", "f(str a='x) -> int"]
)
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        parse(text)


@pytest.mark.parametrize(
    ("body", "kind", "keys"),
    [
        ("", "composite_implicit", []),
        ("  dispatch:\n    CompositeImplicitAutograd: f\n", "composite_implicit", ANY),
        ("  dispatch:\n    CompositeExplicitAutograd: f\n", "composite_explicit", ANY),
        ("  dispatch:\n    CPU, CUDA: f\n", "explicit", ["CPU", "CUDA"]),
        ("  structured: True\n  dispatch:\n    CPU: f\n", "structured", ["CPU"]),
        (
            "  structured: True\n  dispatch:\n    CompositeExplicitAutograd: f\n",
            "composite_explicit",
            ANY,
        ),
        ("  dispatch: {}\n", "explicit", []),
        ("  structured_delegate: f.out\n", "structured_delegate", []),
        (
            "  structured_delegate: f.out\n  dispatch:\n    SparseCPU: f\n",
            "structured_delegate",
            ["SparseCPU"],
        ),
    ],
)
def test_how_a_kernel_is_found_is_told(tmp_path: Path, body: str, kind: str, keys: object) -> None:
    facts = extracted(tmp_path, f"- func: f(Tensor self) -> Tensor\n{body}")["aten::f"].facts
    assert facts["dispatch"] == kind
    assert facts.get("keys", []) == keys


def test_an_entry_keeps_its_tags_its_derived_overloads_and_its_line(tmp_path: Path) -> None:
    entries = """\
    # a comment
    - func: g() -> Tensor

    - func: f(Tensor self) -> Tensor
      variants: method, function
      tags: [pointwise, core]
      autogen: f.out
      python_module: nn
    """
    operator = extracted(tmp_path, entries)["aten::f"]
    assert operator.line == 4
    assert operator.file == f"{FOLDER}/native_functions.yaml"
    assert operator.text == "f(Tensor self) -> Tensor"
    assert operator.facts["tags"] == ["core", "pointwise"]
    assert operator.facts["variants"] == ["function", "method"]
    assert operator.facts["generated"] == ["aten::f.out"]
    assert operator.facts["namespace"] == "nn"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("- func: f(Tensor self) -> Tensor\n  tags: unheard_of\n", "no such tag: unheard_of"),
        ("- func: f(Tensor self\n", "not an operator schema"),
        ("- func: [\n", "native_functions.yaml"),
        ("- fun: f() -> ()\n", "`func` is expected"),
        ("", "`func` is expected"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, entries: str, message: str) -> None:
    with pytest.raises(CiError, match=message):
        extracted(tmp_path, entries)


def test_a_tree_without_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CiError, match=r"tags\.yaml"):
        operators.extract(write_tree(tmp_path, {}), catalogue.load())


def test_the_installed_torch_has_the_counted_operators() -> None:
    declarations = operators.extract(installed_tree(), catalogue.load())
    found = {d.name: d for d in declarations if d.kind == "operator"}
    assert len(found) == 2584  # of 2.13.0, the version that the requirements pin
    assert found["aten::add.out"].facts["dispatch"] == "structured"
    assert found["aten::add.Tensor"].facts["dispatch"] == "structured_delegate"
    assert found["aten::linear"].facts["dispatch"] == "composite_implicit"
    assert all(d.line for d in declarations)


ORACLE = """\
import json, sys, torch

def told(name):
    operator, _, overload = name.partition(".")
    schema = torch._C._get_schema(operator, overload)
    return [
        torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, "PrivateUse1"),
        [[a.name, a.kwarg_only, a.has_default_value()] for a in schema.arguments],
        len(schema.returns),
    ]

json.dump({name: told(name) for name in json.load(sys.stdin)}, sys.stdout)
"""


def test_the_dispatcher_itself_says_the_same_of_every_operator() -> None:
    """Which arguments it takes, and whether it works for a backend that registers no kernel."""
    declarations = operators.extract(installed_tree(), catalogue.load())
    found = {d.name: d.facts for d in declarations if d.kind == "operator"}
    run = subprocess.run(
        [sys.executable, "-c", ORACLE],
        input=json.dumps(list(found)),
        env=os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(run.stdout) == {
        name: [
            facts["dispatch"] not in ("explicit", "structured"),
            [
                [a["name"], a.get("kwarg_only", False), "default" in a]
                for a in facts.get("arguments", ())
            ],
            len(facts.get("returns", ())),
        ]
        for name, facts in found.items()
    }
