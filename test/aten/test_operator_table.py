# SPDX-License-Identifier: BSD-3-Clause
"""The generator of registrations refuses a wrong table, and names the row."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

GENERATOR = Path(__file__).parents[2] / "csrc/aten/generate_operators.py"

# What the table of a test says besides its rows.
TABLE = """\
torch: "{torch}"
core: []
operators:
  {source}:
{rows}
fallback:
- reason: nobody needs it
  operators: ["hardswish_*"]
"""


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """csrc/aten/generate_operators.py, which is a program and in no package."""
    specification = importlib.util.spec_from_file_location(GENERATOR.stem, GENERATOR)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[GENERATOR.stem] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def natives(generator: ModuleType) -> Any:
    torchgen = Path(torch.__file__).parents[1] / "torchgen"
    return generator.native_functions(torchgen / generator.NATIVE_FUNCTIONS)


@pytest.fixture
def make(generator: ModuleType, natives: Any, tmp_path: Path) -> Any:
    """make(row, ...): the generator for a table of these rows."""

    def build(*rows: str, torch: tuple[int, int] = (2, 13)) -> Any:
        path = tmp_path / "operators.yaml"
        text = "\n".join(f"  - {{{row}}}" for row in rows)
        path.write_text(TABLE.format(torch="2.13", source="pointwise/a.cpp", rows=text))
        return generator.Generator(generator.load(path), natives, torch)

    return build


def test_a_structured_operator_is_registered_in_all_forms(make: Any) -> None:
    text = make("func: exp.out, kernel: exp, types: inexact").registrations("pointwise/a.cpp")
    for form in ("exp,", "exp_,", "exp_out>"):
        assert f"at::_ops::{form}" in text
    assert "at::meta::structured_exp," in text
    assert "kInexact" in text


def test_a_form_of_another_name_belongs_to_its_structured_operator(make: Any) -> None:
    text = make("func: sort.values_stable, class: Sort").registrations("pointwise/a.cpp")
    assert "at::_ops::sort_stable, at::_ops::sort_values_stable>" in text


def test_the_headers_are_those_of_the_operators(make: Any) -> None:
    header = make("func: add.out, kernel: add, types: numbers").header("pointwise/a.cpp")
    assert "<ATen/ops/add_meta.h>" in header
    assert "<ATen/ops/add_ops.h>" in header
    assert "lshift_ops.h" in make(
        "func: __ilshift__.Tensor, function: a",
        "func: __lshift__.Tensor, function: a",
        "func: __ilshift__.Scalar, function: a",
        "func: __lshift__.Scalar, function: a",
    ).header("pointwise/a.cpp")


def test_autograd_gets_a_key_of_its_own(make: Any) -> None:
    text = make(
        "func: conj_physical_, function: f, autograd: g", "func: conj_physical.out, function: f"
    ).registrations("pointwise/a.cpp")
    assert "TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)" in text
    before, _, after = text.partition("TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m)")
    assert "(g)" in after or "(g)" in before


def test_a_custom_operator_is_defined_and_implemented(make: Any) -> None:
    text = make(
        'func: "puone::twice", custom: "(Tensor x) -> Tensor", function: f, meta: g, autograd: h'
    ).registrations("pointwise/a.cpp")
    assert 'm.def("twice(Tensor x) -> Tensor");' in text
    for key, function in [("PrivateUse1", "f"), ("Meta", "g"), ("AutogradPrivateUse1", "h")]:
        block = text.partition(f"TORCH_LIBRARY_IMPL(puone, {key}, m)")[2]
        assert f'm.impl("twice", TORCH_FN({function}));' in block.partition("}")[0]


REFUSED = [
    (["func: expp.out, kernel: exp, types: inexact"], "expp.out: torch 2.13 has no such operator"),
    (["func: exp, kernel: exp, types: inexact"], "exp: is not the out form of a structured"),
    (["func: exp, kernel: exp, types: inexact"], "that is exp.out"),
    (
        ["func: exp.out, kernel: exp, types: inexact", "func: exp.out, class: Exp"],
        "operators.yaml:6: exp.out: is in line 5 already",
    ),
    (["func: exp.out, kernel: exp, types: anything"], "exp.out: no types anything"),
    (["func: exp.out, kernel: exp"], "exp.out: has a kernel, but neither types nor a class"),
    (["func: exp.out"], "exp.out: says nothing of how it is implemented"),
    (["func: exp.out, class: Exp, function: exp"], "exp.out: has class and function"),
    (["func: exp.out, class: Exp, kernel: exp, kernels: [exp]"], "exp.out: has kernel and kernels"),
    (["func: exp.out, kernel: expo, types: inexact"], "kernels.yaml declares no kernel expo"),
    (["func: exp.out, klass: Exp"], "exp.out: unknown key klass"),
    (["kernel: exp, types: inexact"], "operators.yaml:5: a row without func"),
    (["func: where.self, function: where"], "where.self: has no row for where.self_out"),
    (["func: where.self, foreach: where"], "where.self: has no tensor-by-tensor form"),
    (['func: twice, custom: "(Tensor x) -> Tensor", function: f'], "not the name of a custom"),
]


@pytest.mark.parametrize(("rows", "message"), REFUSED)
def test_a_wrong_row_is_refused_and_named(
    generator: ModuleType, make: Any, rows: list[str], message: str
) -> None:
    with pytest.raises(generator.TableError) as caught:
        make(*rows).registrations("pointwise/a.cpp")
    assert message in str(caught.value)
    assert "operators.yaml:" in str(caught.value)


def test_a_form_that_falls_back_has_a_reason_in_place_of_a_row(make: Any) -> None:
    make("func: hardswish, function: f", "func: hardswish.out, function: f")


def test_a_newer_torch_with_another_form_is_warned_of(make: Any) -> None:
    made = make("func: where.self, function: where", torch=(2, 14))
    assert any("where.self_out" in warning for warning in made.warnings)


def test_an_operator_of_other_versions_is_left_out_aloud(make: Any) -> None:
    made = make('func: later.out, kernel: abs, types: reals, since: "2.14"')
    assert made.sources() == []
    assert made.warnings == ["later.out: not in torch 2.13, since 2.14"]
    made = make('func: earlier.out, kernel: abs, types: reals, until: "2.12"')
    assert made.warnings == ["earlier.out: not in torch 2.13, until 2.12"]


def test_a_wrong_table_fails_the_program(
    generator: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "operators.yaml"
    rows = "  - {func: expp.out, kernel: exp, types: inexact}"
    table.write_text(TABLE.format(torch="2.13", source="pointwise/a.cpp", rows=rows))
    torch_directory = str(Path(torch.__file__).parent)
    arguments = [str(tmp_path / "out"), "--torch", torch_directory, "--table", str(table)]
    assert generator.main(arguments) == 1
    assert "expp.out" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
