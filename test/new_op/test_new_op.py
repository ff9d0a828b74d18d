# SPDX-License-Identifier: BSD-3-Clause
"""Skeletons of operators: what is written, what is refused, and that they compute."""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import synthetic
import torch
from torchgen.model import NativeFunctionsGroup

from torch_puone.new_op import __main__ as new_op
from torch_puone.new_op import checkout, operators, todo
from torch_puone.new_op.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = ("binary", "special", "ternary", "unary_simple")

UNARY = ("special_spherical_bessel_j0", "x == 0 ? T(1) : sin(x) / x")
BINARY = ("special_chebyshev_polynomial_t", "cos(trunc(b) * acos(a))")
TERNARY = ("addcdiv", "plus(x, over(times(value, tensor1), tensor2))")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """What a new operator changes of a checkout, and what its generators read."""
    for name in (*checkout._DEFINITIONS, *checkout._DERIVED):
        place(tmp_path, name)
    for family in FAMILIES:
        place(tmp_path, f"csrc/kernels/{family}.cpp")
    for source in (ROOT / "csrc/aten").glob("*/*.cpp"):
        place(tmp_path, source.relative_to(ROOT).as_posix())
    (tmp_path / "test/aten").mkdir(parents=True)
    return tmp_path


def place(folder: Path, name: str) -> None:
    """Copy a file of this checkout."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / name, folder / name)


def without(folder: Path, operator: str) -> None:
    """Take an operator and its kernel out of a checkout."""
    for name in (checkout.TABLE, checkout.CONTRACT):
        lines = (folder / name).read_text().splitlines(keepends=True)
        marks = (f"{{func: {operator}.out,", f"      {operator}: {{")
        kept = [line for line in lines if not any(mark in line for mark in marks)]
        assert len(kept) == len(lines) - 1
        (folder / name).write_text("".join(kept))
    file = folder / "csrc/kernels/ternary.cpp"
    functor = operator.title()
    text = file.read_text()
    begin = text.index(f"template <class T>\nstruct {functor} {{")
    end = text.index("};\n", begin) + len("};\n\n")
    definition = f"PUONE_KERNEL({operator}) = elementwiseKernel<{functor}, Inexact>;\n"
    assert definition in text
    file.write_text((text[:begin] + text[end:]).replace(definition, ""))


def contents(folder: Path) -> dict[str, bytes]:
    """All files."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says when it refuses."""
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("error: ")
    return said.err


def new(folder: Path, operator: str, *options: str) -> None:
    assert main([operator, "--root", str(folder), *options]) == 0


# ---- what is written ----


def test_a_new_operator_is_in_the_table_the_contract_the_kernels_and_the_tests(copy: Path) -> None:
    before = contents(copy)
    name, formula = UNARY
    new(copy, f"aten::{name}", "--formula", formula, "--computes", "sin(x) / x, 1 at 0")
    changed = {path for path, content in contents(copy).items() if before.get(path) != content}
    assert changed == {
        *(checkout.TABLE, checkout.CONTRACT, "csrc/kernels/special.cpp"),
        *(f"test/aten/test_{name}.py", *checkout._DERIVED),
    }
    assert (
        f"  - {{func: {name}.out, kernel: {name}, types: reals}}\n  pointwise/ternary.cpp:"
        in (copy / checkout.TABLE).read_text()
    )
    row = f'      {name}: {{types: reals, in: [x], computes: "sin(x) / x, 1 at 0"}}\n  ternary:'
    assert row in (copy / checkout.CONTRACT).read_text()
    kernels = (copy / "csrc/kernels/special.cpp").read_text()
    assert f"PUONE_UNARY(SpecialSphericalBesselJ0, {formula});\n" in kernels
    assert f"PUONE_KERNEL({name}) = elementwiseKernel<SpecialSphericalBesselJ0, Reals>;" in kernels
    assert f"| `{name}` |" in (copy / "docs/kernels.md").read_text()


def test_a_model_gives_the_place(copy: Path) -> None:
    name, formula = BINARY
    new(copy, name, "--like", "atan2", "--formula", formula)
    table = (copy / checkout.TABLE).read_text()
    block = table.partition("  pointwise/binary.cpp:\n")[2].partition("\n  pointwise/")[0]
    assert f"{{func: {name}.out, kernel: {name}, types: reals}}" in block
    assert (
        f"PUONE_BINARY(SpecialChebyshevPolynomialT, {formula});"
        in (copy / "csrc/kernels/binary.cpp").read_text()
    )


def test_scalars_become_parameters_and_the_types_are_those_of_the_cpu_not_of_the_model(
    copy: Path,
) -> None:
    without(copy, "addcdiv")
    new(copy, "addcdiv", "--like", "addcmul", "--formula", TERNARY[1])
    table = (copy / checkout.TABLE).read_text()
    assert "{func: addcdiv.out, class: WithScalars, kernel: addcdiv, types: inexact}" in table
    contract = (copy / checkout.CONTRACT).read_text()
    assert "addcdiv: {types: inexact, in: [x, tensor1, tensor2], parameters: [value]," in contract
    kernels = (copy / "csrc/kernels/ternary.cpp").read_text()
    assert "explicit Addcdiv(const Parameters& p) : value(p.get<T>(0)) {}" in kernels


def test_scalars_of_other_types_get_a_class_with_the_signature_of_the_operator(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new(copy, "polygamma")
    said = capsys.readouterr().out
    assert "write the formula in Polygamma of csrc/kernels/unary_simple.cpp" in said
    assert "class: Polygamma, kernel: polygamma}" in (copy / checkout.TABLE).read_text()
    source = (copy / "csrc/aten/pointwise/unary_simple.cpp").read_text()
    assert "struct Polygamma : at::meta::structured_polygamma {" in source
    assert "void impl(int64_t n, const at::Tensor& /*self*/, const at::Tensor& /*out*/)" in source
    assert source.index("struct Polygamma") < source.index("} // namespace\n} // namespace puone")


def test_a_kernel_without_a_formula_does_not_compile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["special_i1", "--out", str(tmp_path)]) == 0
    refusal = 'static_assert(sizeof(T) == 0, "special_i1: write the formula");'
    assert refusal in (tmp_path / "kernels_special.cpp").read_text()


@pytest.mark.nightly
def test_two_operators_can_be_added_after_each_other(copy: Path) -> None:
    new(copy, "special_i1")
    new(copy, "special_i0e")
    assert (copy / checkout.TABLE).read_text().count("func: special_i") == 2


@pytest.mark.nightly
def test_the_written_test_is_formatted_and_passes_for_an_operator_that_is_there(
    copy: Path,
) -> None:
    without(copy, "addcdiv")
    new(copy, "addcdiv", "--formula", TERNARY[1])
    file = copy / "test/aten/test_addcdiv.py"
    settings = ["--config", str(ROOT / "pyproject.toml")]
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--no-cache"], ["format", "--no-cache", "--check"]):
        subprocess.run([*ruff, *command, *settings, str(file)], check=True, capture_output=True)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-c",
            os.devnull,
            "-p",
            "no:cacheprovider",
            str(file),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "reference_backend"), "PUONE_DRIVER": "sim"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout


def test_a_dry_run_shows_the_changes_and_makes_none(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(copy)
    new(copy, UNARY[0], "--dry-run")
    diff = capsys.readouterr().out
    assert "+++ b/csrc/kernels/special.cpp\n" in diff and "--- /dev/null\n" in diff
    assert contents(copy) == before


def test_the_pieces_can_be_written_into_a_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "pieces"
    assert main(["special_i1", "--out", str(folder)]) == 0
    names = ("operators.yaml", "kernels.yaml", "kernels_special.cpp", "test_special_i1.py")
    assert {path.name for path in folder.iterdir()} == set(names)
    capsys.readouterr()
    assert "exists already" in refused(capsys, "special_i1", "--out", str(folder))


def test_outside_of_a_checkout_they_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["special_i1"]) == 0
    printed = capsys.readouterr().out
    assert "# kernels.yaml\nfamilies:" in printed and "# test_special_i1.py\n" in printed


# ---- what is refused ----


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("aten::addcmull", "aten has no operator addcmull; did you mean addcmul"),
        ("addcmul", "csrc/aten/operators.yaml:"),
        ("linear", "needs nothing: PyTorch composes it of other operators"),
        ("_cudnn_rnn", "of other devices or layouts"),
        ("lerp", "stands for several operators: lerp.Scalar, lerp.Tensor"),
        ("mm", "Write by hand: a class that derives from at::meta::structured_mm"),
        ("abs", "Write by hand: a function in a source of csrc/aten"),
        ("clamp.Tensor", "takes Tensor? min, which is not a parameter of a kernel"),
    ],
)
def test_what_has_no_skeleton_is_refused_with_the_reason(
    capsys: pytest.CaptureFixture[str], operator: str, said: str
) -> None:
    assert said in refused(capsys, operator, "--root", str(ROOT), "--dry-run")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("",), "error: give the name of an operator"),
        (("aten::",), "error: give the name of an operator"),
        (("aten::nosuch",), "error: aten has no operator nosuch\n"),
        (("special_i1", "--like", "mm"), "error: --like mm: mm is not a structured function"),
        (("special_i1", "--root", "/nonexist"), "error: --root /nonexist is not a directory\n"),
        (("--missing", "nosuch.json"), "error: --missing nosuch.json is not a file\n"),
    ],
)
def test_the_reason_names_what_is_wrong(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    options = () if "--root" in arguments else ("--root", str(ROOT))
    assert refused(capsys, *arguments, *options).startswith(said)


def test_a_declared_kernel_without_a_row_is_refused_with_what_to_write(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a repository that torch_puone.new made: it has the contract, and other kernels."""
    table = copy / checkout.TABLE
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join(line for line in lines if "{func: addcmul.out," not in line))
    (copy / "csrc/kernels/ternary.cpp").unlink()
    said = refused(capsys, "addcmul", "--root", str(copy))
    assert "declares the kernel addcmul already" in said
    assert "write the kernel in csrc/drivers/host/kernels.cpp" in said
    assert "- {func: addcmul.out, class: WithScalars, kernel: addcmul," in said
    assert "under `pointwise/ternary.cpp:` in csrc/aten/operators.yaml" in said
    special = copy / "csrc/kernels/special.cpp"
    special.unlink()
    assert "--out DIR writes the pieces" in refused(capsys, "special_i1", "--root", str(copy))


EXAMPLE = re.compile(r"python -m torch_puone\.new_op (aten::[a-z]\w+[^`\n]*)")


def examples() -> list[str]:
    """The commands that --help and the documents show, without those that stand for others."""
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    texts = [str(new_op.__doc__), *(file.read_text(encoding="utf-8") for file in files)]
    return sorted({found for text in texts for found in EXAMPLE.findall(text)})


@pytest.mark.parametrize("example", examples())
def test_an_example_works_in_this_checkout(
    example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [each for each in shlex.split(example) if each != "--dry-run"]
    assert main([*arguments, "--root", str(ROOT), "--dry-run"]) == 0, capsys.readouterr().err
    assert "+++ b/csrc/aten/operators.yaml" in capsys.readouterr().out


def test_there_are_examples_in_the_help_and_in_the_documents() -> None:
    assert len(examples()) >= 2


def test_a_model_must_be_a_row_with_one_kernel_and_types(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--root", str(ROOT), "--dry-run")
    said = refused(capsys, "special_i1", "--like", "signbit", *options)
    assert "the row of signbit.out is no model: it has not one kernel and types" in said
    assert "no row special_i0e.out" in refused(
        capsys, "special_i1", "--like", "special_i0e", *options
    )


def test_words_that_are_no_element_types_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "special_i1", "--types", "quaternions", "--root", str(ROOT))
    assert "there are no element types quaternions" in said


def test_what_the_generators_refuse_is_not_written(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = copy / checkout.TABLE
    table.write_text(table.read_text().replace("kernel: digamma,", "kernel: digama,"))
    before = contents(copy)
    said = refused(capsys, "special_i1", "--root", str(copy))
    assert "generate_operators.py refuses the rows" in said and "digama" in said
    assert contents(copy) == before


def test_a_file_that_cannot_be_written_leaves_all_as_they_were(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(copy)
    replace, calls = os.replace, []

    def full(source: Path, target: Path) -> None:
        calls.append(target)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    assert "nothing was changed: " in refused(capsys, "special_i1", "--root", str(copy))
    assert contents(copy) == before


def test_wrong_usage_has_its_own_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "give either an operator or --missing" in capsys.readouterr().err


def test_every_structured_function_of_elements_without_a_row_has_a_skeleton() -> None:
    here = checkout.Checkout(ROOT)
    names = [
        str(group.out.func.name)
        for group in operators._table().groups
        if isinstance(group, NativeFunctionsGroup)
        and group.structured
        and group.out.structured_inherits == "TensorIteratorBase"
    ]
    missing = [name for name in names if name not in here.rows]
    assert len(missing) > 20
    for name in missing:
        assert operators.find(name).name == name


# ---- the to-do ----


def test_what_a_report_misses_is_listed_in_its_order_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = [
        "special_i1.out",
        "special_i1.out",
        "addcmul.out",
        "mm",
        "add_.Tensor",
        "linalg_lu.out",
    ]
    records = [
        synthetic.record(
            "COPY-001", "error", message=f"NotImplementedError: Could not run 'aten::{name}' with"
        )
        | {"id": f"copy/case_{i}"}
        for i, name in enumerate(messages)
    ]
    report = tmp_path / "report.json"
    report.write_text(json.dumps(synthetic.content(records)))
    assert main(["--missing", str(report), "--root", str(ROOT)]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert first == "aten::special_i1.out: python -m torch_puone.new_op aten::special_i1"
    for name, kernel in (("addcmul.out", "addcmul"), ("mm", "gemm"), ("add_.Tensor", "add")):
        there = f"has a row already; write {kernel} in the driver, or see why it is not used"
        assert f"aten::{name}: {there}" in others
    assert any("aten::linalg_lu.out: " in line and "Write by hand" in line for line in others)


def test_a_file_that_is_no_report_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(operators.SkeletonError, match="cannot read the report"):
        todo.missing(tmp_path / "report.json")


# ---- the right answer ----

HARNESS = """
#include "{source}"
namespace here = puone::kernels::baseline;
extern "C" {{
double unary(double x) {{
  return here::SpecialSphericalBesselJ0<double>{{}}(x);
}}
double binary(double a, double b) {{
  return here::SpecialChebyshevPolynomialT<double>{{}}(a, b);
}}
double ternary(double value, double x, double a, double b) {{
  unsigned char parameters[1][16] = {{}};
  __builtin_memcpy(parameters[0], &value, sizeof value);
  return here::Addcdiv<double>{{here::Parameters(parameters)}}(x, a, b);
}}
}}
"""


@pytest.fixture
def compiled(copy: Path) -> ctypes.CDLL:
    """The kernels of three new operators in one family, as a driver for CPUs compiles them."""
    without(copy, "addcdiv")
    for name, formula in (UNARY, BINARY, TERNARY):
        new(copy, name, "--like", "addcmul", "--types", "reals", "--formula", formula)
    generated = str(copy / "generated")
    command = [sys.executable, "csrc/hal/generate_kernels.py", generated]
    subprocess.run(command, cwd=copy, check=True)
    harness = copy / "harness.cpp"
    harness.write_text(HARNESS.format(source=copy / "csrc/kernels/ternary.cpp"))
    options = ["-std=c++20", "-O0", "-fPIC", "-shared", "-DPUONE_ISA=baseline", f"-I{generated}"]
    library = copy / "harness.so"
    command = ["c++", *options, f"-I{ROOT / 'csrc'}", str(harness), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library), mode=os.RTLD_LAZY)


@pytest.mark.nightly
def test_the_kernels_compile_and_compute_what_torch_computes(compiled: ctypes.CDLL) -> None:
    for function in (compiled.unary, compiled.binary, compiled.ternary):
        function.restype = ctypes.c_double
    numbers = [ctypes.c_double(value) for value in (0.5, 0.25, 3.0, 0.75)]
    half, quarter, three, _ = (torch.tensor(each.value, dtype=torch.float64) for each in numbers)
    assert math.isclose(compiled.unary(numbers[0]), torch.special.spherical_bessel_j0(half))
    assert compiled.unary(ctypes.c_double(0)) == 1
    assert math.isclose(
        compiled.binary(numbers[1], numbers[2]),
        torch.special.chebyshev_polynomial_t(quarter, three),
    )
    expected = torch.addcdiv(quarter, three, torch.tensor(0.75, dtype=torch.float64), value=0.5)
    assert math.isclose(compiled.ternary(*numbers), expected)
