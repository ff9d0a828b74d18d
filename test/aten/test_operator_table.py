# SPDX-License-Identifier: BSD-3-Clause
"""The generator of registrations refuses a wrong table, and names the row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import generate_operators as generator
import pytest
import torch
from definitions import GeneratorError

#: Makes the generator for a table of the given rows.
Make = Callable[..., generator.Generator]

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
def natives() -> dict[str, generator.Native]:
    torchgen = Path(torch.__file__).parents[1] / "torchgen"
    return generator.native_functions(torchgen / generator.NATIVE_FUNCTIONS)


@pytest.fixture
def make(natives: dict[str, generator.Native], tmp_path: Path) -> Make:
    def build(*rows: str, torch: tuple[int, int] = (2, 13)) -> generator.Generator:
        path = tmp_path / "operators.yaml"
        text = "\n".join(f"  - {{{row}}}" for row in rows)
        path.write_text(TABLE.format(torch="2.13", source="pointwise/a.cpp", rows=text))
        return generator.Generator(generator.load(path), natives, torch)

    return build


def test_a_structured_operator_is_registered_in_all_forms(make: Make) -> None:
    text = make("func: exp.out, kernel: exp, types: inexact").registrations("pointwise/a.cpp")
    for form in ("exp,", "exp_,", "exp_out>"):
        assert f"at::_ops::{form}" in text
    assert "at::meta::structured_exp," in text
    assert "kInexact" in text


def test_a_form_of_another_name_belongs_to_its_structured_operator(make: Make) -> None:
    text = make("func: sort.values_stable, class: Sort").registrations("pointwise/a.cpp")
    assert "at::_ops::sort_stable, at::_ops::sort_values_stable>" in text


def test_the_headers_are_those_of_the_operators(make: Make) -> None:
    header = make("func: add.out, kernel: add, types: numbers").header("pointwise/a.cpp")
    assert "<ATen/ops/add_meta.h>" in header
    assert "<ATen/ops/add_ops.h>" in header
    assert "lshift_ops.h" in make(
        "func: __ilshift__.Tensor, function: a",
        "func: __lshift__.Tensor, function: a",
        "func: __ilshift__.Scalar, function: a",
        "func: __lshift__.Scalar, function: a",
    ).header("pointwise/a.cpp")


def test_autograd_gets_a_key_of_its_own(make: Make) -> None:
    text = make(
        "func: conj_physical_, function: f, autograd: g", "func: conj_physical.out, function: f"
    ).registrations("pointwise/a.cpp")
    for key, function in [("PrivateUse1", "f"), ("AutogradPrivateUse1", "g")]:
        block = text.partition(f"TORCH_LIBRARY_IMPL(aten, {key}, m)")[2].partition("\n}")[0]
        assert f"implement<at::_ops::conj_physical_, Kernels<>, &{function}>(m);" in block


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
    (["func: exp.out, class: Exp, class: Sin"], "operators.yaml:5: class is declared twice"),
    (["func: 3, function: f"], "3: func is not a line of ASCII"),
    (["func: where.self, function: "], "where.self: function is not a line of ASCII"),
    (["func: exp.out, class: Exp, kernels: exp"], "exp.out: kernels is not a list of names"),
    (["func: exp.out, class: Exp, kernels: [exp, exp]"], "exp.out: kernels is not a list of names"),
    (["func: exp.out, kernel: exp, types: {reals: 1}"], "exp.out: types is not a list of names"),
    (["func: where.self, function: f, types: reals"], "where.self: has types, which are for a"),
    (["func: where.self, function: f, cpu: g"], "where.self: has cpu, but no kernel"),
    (["func: exp.out, class: Exp, since: 2.10"], "exp.out: since is not a version in quotes"),
    (["func: exp.out, class: Exp, 3: 1"], "exp.out: unknown key 3"),
]
# What is found in TABLE, what takes its place, and what is said of it.
MALFORMED = {
    "a list": (TABLE, "- 1\n", "is not a mapping"),
    "empty": (TABLE, "", "is not a mapping"),
    "not YAML": ("core: []", "core: [", "operators.yaml:4: "),
    "a date that is none": ("core: []", "core: [2027-13-01]", "month must be in"),
    "an unknown part": ("core: []", "core: []\nextra: 1", "has not exactly the keys"),
    "a part that is lacking": ("core: []\n", "", "has not exactly the keys"),
    "a part that is there twice": ("core: []", "core: []\ncore: []", ":3: core is declared twice"),
    "a version that is a number": ('"{torch}"', "2.10", "is not a version in quotes"),
    "a core that is text": ("core: []", "core: abc", "core: is not a list"),
    "a source elsewhere": ("{source}", "../../a/b.cpp", "../../a/b.cpp is not DIRECTORY/NAME.cpp"),
    "a source without rows": ("{rows}", "", "pointwise/a.cpp: is not a list"),
    "a group without a reason": ("reason: nobody needs it\n  ", "", "is not a reason and a list"),
    "a pattern for a list": ('["hardswish_*"]', '"*"', "is not a reason and a list"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_table_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    found, replaced, said = MALFORMED[case]
    text = TABLE.replace(found, replaced)
    text = text.replace("{torch}", "2.13").replace("{source}", "pointwise/a.cpp")
    path = tmp_path / "operators.yaml"
    path.write_text(text.replace("{rows}", "  - {func: exp.out, kernel: exp, types: inexact}"))
    with pytest.raises(GeneratorError) as caught:
        generator.load(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(GeneratorError, match=r"nothing\.yaml: No such file"):
        generator.load(tmp_path / "nothing.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"torch: \xff")
    with pytest.raises(GeneratorError, match=r"latin\.yaml: not UTF-8"):
        generator.load(tmp_path / "latin.yaml")


def test_a_source_that_is_not_there_is_refused(make: Make) -> None:
    made = make("func: exp.out, kernel: exp, types: inexact")
    with pytest.raises(GeneratorError, match=r"its source pointwise/a\.cpp is not there"):
        generator.source_lists(made.table)


def test_a_folder_that_is_not_torch_or_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generator.main([str(tmp_path), "--torch", str(tmp_path / "torch")]) == 1
    assert f"{tmp_path}/torchgen/" in capsys.readouterr().err
    (tmp_path / "file").touch()
    torch_directory = str(Path(torch.__file__).parent)
    assert generator.main([str(tmp_path / "file"), "--torch", torch_directory]) == 1
    assert "cannot be written: Not a directory" in capsys.readouterr().err


@pytest.mark.parametrize(("rows", "message"), REFUSED)
def test_a_wrong_row_is_refused_and_named(make: Make, rows: list[str], message: str) -> None:
    with pytest.raises(GeneratorError) as caught:
        make(*rows).registrations("pointwise/a.cpp")
    assert message in str(caught.value)
    assert "operators.yaml:" in str(caught.value)


def test_a_form_that_falls_back_has_a_reason_in_place_of_a_row(make: Make) -> None:
    make("func: hardswish, function: f", "func: hardswish.out, function: f")


def test_a_newer_torch_with_another_form_is_warned_of(make: Make) -> None:
    made = make("func: where.self, function: where", torch=(2, 14))
    assert any("where.self_out" in warning for warning in made.warnings)


def test_an_operator_of_other_versions_is_left_out_aloud(make: Make) -> None:
    made = make('func: later.out, kernel: abs, types: reals, since: "2.14"')
    assert made.sources() == []
    assert made.warnings == ["later.out: not in torch 2.13, since 2.14"]
    made = make('func: earlier.out, kernel: abs, types: reals, until: "2.12"')
    assert made.warnings == ["earlier.out: not in torch 2.13, until 2.12"]


def test_a_wrong_table_fails_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "operators.yaml"
    rows = "  - {func: expp.out, kernel: exp, types: inexact}"
    table.write_text(TABLE.format(torch="2.13", source="pointwise/a.cpp", rows=rows))
    torch_directory = str(Path(torch.__file__).parent)
    arguments = [str(tmp_path / "out"), "--torch", torch_directory, "--table", str(table)]
    assert generator.main(arguments) == 1
    assert "expp.out" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
