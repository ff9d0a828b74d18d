# SPDX-License-Identifier: BSD-3-Clause
"""The kernel contract: what follows from it is up to date, and a contradiction fails the build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import generate_kernels as generator
import pytest
import yaml
from definitions import GeneratorError, write

from hal_conformance import contract
from hal_conformance import known_answers as known_answers_package

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "csrc" / "kernels"


def test_what_the_repository_keeps_is_up_to_date() -> None:
    for name, text in generator.kept(generator.load()).items():
        said = (ROOT / name).read_text()
        assert said == text, f"{name}: run python csrc/hal/generate_kernels.py --update"


def test_the_suite_reads_the_contract_as_the_build_does() -> None:
    built = {
        k.name: (k.family, k.args, k.version, k.element_types) for k in generator.load().kernels
    }
    read = {
        k.name: (k.family, k.args, k.version, k.element_types) for k in contract.kernels().values()
    }
    assert read == built
    assert len(built) == 247


def test_every_family_is_a_source_and_every_kernel_source_a_family() -> None:
    defining = {path.stem for path in KERNELS.glob("*.cpp") if "PUONE_KERNEL(" in path.read_text()}
    assert defining == set(generator.load().sets["all"])


def _struct_fields(name: str) -> list[contract.Field]:
    """The fields of a struct, with those of its unnamed structs in their place."""
    return [inner for field in contract.fields()[name] for inner in (field.fields or (field,))]


def test_every_pointer_says_who_touches_what() -> None:
    for name in contract.fields():
        if not name.endswith("_args"):
            continue
        for field in _struct_fields(name):
            if field.is_pointer:
                assert field.access is not None, f"{name}.{field.name}"
                assert field.extent is not None, f"{name}.{field.name}"


def test_access_names_kernels_of_the_contract() -> None:
    for name in contract.fields():
        for field in _struct_fields(name):
            for said in (field.access, field.extent):
                if isinstance(said, dict) and "form" not in said:
                    for kernel in said:
                        assert contract.kernels()[kernel].args == name, f"{name}.{field.name}"


def _changed(tmp_path: Path, change: Any) -> Path:
    data = yaml.safe_load(generator.CONTRACT.read_text())
    change(data["families"])
    path = tmp_path / "kernels.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


CONTRADICTIONS = {
    "no argument struct": lambda f: f["gemm"]["kernels"]["gemm"].update(args="puone_gem_args"),
    "no element type": lambda f: f["gemm"]["kernels"]["gemm"].update(types=["float31"]),
    "declared twice": lambda f: f["dot"]["kernels"].update(gemm=f["gemm"]["kernels"]["gemm"]),
}


@pytest.mark.parametrize("message", CONTRADICTIONS)
def test_a_contradiction_is_refused(tmp_path: Path, message: str) -> None:
    path = _changed(tmp_path, CONTRADICTIONS[message])
    with pytest.raises(GeneratorError, match=message):
        generator.load(path)


def test_a_key_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    text = generator.CONTRACT.read_text()
    line = next(line for line in text.splitlines() if line.startswith("      add: "))
    path = tmp_path / "kernels.yaml"
    path.write_text(text.replace(line, f"{line}\n{line}"))
    with pytest.raises(GeneratorError, match=r"kernels\.yaml:\d+: add is declared twice"):
        generator.load(path)


RELU = "      relu: "
# What is found in the contract, what takes its place, and what is said of it.
MALFORMED = {
    "a list": (None, "[1]", "is not a mapping"),
    "not YAML": ("version: 3\n", "version: [\n", "kernels.yaml:"),
    "a date that is none": ("version: 3\n", "version: 2027-13-01\n", "month must be in"),
    "an unknown part": ("version: 3\n", "version: 3\nextra: 1\n", "unknown key extra"),
    "a part that is lacking": ("version: 3\n", "", "lacks version"),
    "a version that is text": ("version: 3\n", 'version: "1"\n', "version is '1'"),
    "a version that is 0": ("version: 3\n", "version: 0\n", "version is 0"),
    "types of nothing": ("relu: {types: ordered", "relu: {types: []", "relu: types is"),
    "types that are a number": ("relu: {types: ordered", "relu: {types: 3", "relu: types is 3"),
    "types in a circle": ("  reals: [", "  reals: [inexact, ", "contains itself"),
    "an unknown key": (RELU + "{", RELU + "{frm: 1, ", "activation: relu: unknown key frm"),
    "a name that is none": (RELU, '      "re lu": ', "re lu is not a name"),
    "a row that is none": (RELU, "      no_row: 3\n" + RELU, "no_row: is not a mapping"),
    "an operand twice": (
        "relu: {types: ordered, in: [x]",
        "relu: {types: ordered, in: [x, x]",
        "in",
    ),
    "a comment that goes on": ("NaN stays", "NaN stays\\\\", "ends with a backslash"),
    "an unknown family": ("basic: [copy", "basic: [nothing", "no family is named nothing"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_contract_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    found, replaced, said = MALFORMED[case]
    text = generator.CONTRACT.read_text()
    assert found is None or found in text
    path = tmp_path / "kernels.yaml"
    path.write_text(replaced if found is None else text.replace(found, replaced, 1))
    with pytest.raises(GeneratorError) as caught:
        generator.load(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, str(generator.__file__), str(tmp_path / "file")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"{tmp_path / 'file' / 'kernels'}: cannot be written: Not a directory\n"


# That every kernel has cases is a check of the HAL suite's own test of known answers.
def test_every_file_of_known_answers_is_of_a_family() -> None:
    files = {path.stem for path in Path(known_answers_package.__file__).parent.glob("[!_]*.py")}
    assert files == {kernel.family for kernel in contract.kernels().values()}


# A source of the family "dot" with these lines, and what the build says of it.
DEFINITIONS = {
    "PUONE_KERNEL(dot) = dot;": None,
    "PUONE_KERNEL(dott) = dot;": "kernel_dott",  # misspelt
    "PUONE_KERNEL(gemm) = gemm;": "kernel_gemm",  # of another family
    "PUONE_KERNEL(dot) = gemm;": "puone_gemm_args",  # takes another struct
    "PUONE_KERNEL(dot) = dot; PUONE_KERNEL(dot) = dot;": "redefinition",
    "": "kernel_dot",  # missing
}
SOURCE = """
#include "kernels/families/dot.h"
namespace puone::kernels::PUONE_ISA {{
namespace {{
[[maybe_unused]] void dot(Launch&, const puone_dot_args&) {{}}
[[maybe_unused]] void gemm(Launch&, const puone_gemm_args&) {{}}
}}
{lines}
extern const Kernel registered = entry<puone_dot_args, kernel_dot>("dot", 1, 0);
}}
"""


@pytest.mark.parametrize("lines", DEFINITIONS)
def test_a_wrong_definition_fails_the_build(tmp_path: Path, lines: str) -> None:
    write(tmp_path, generator.built(generator.load()))
    source = tmp_path / "dot.cpp"
    source.write_text(SOURCE.format(lines=lines))
    command = ["c++", "-std=c++20", "-DPUONE_ISA=baseline", "-fPIC", "-shared", "-Wl,-z,defs"]
    folders = [f"-I{ROOT / 'csrc'}", f"-I{tmp_path}"]
    done = subprocess.run(
        [*command, *folders, str(source), "-o", str(tmp_path / "dot.so")],
        capture_output=True,
        text=True,
        check=False,
    )
    said = DEFINITIONS[lines]
    assert (done.returncode == 0) == (said is None), done.stderr
    assert said is None or said in done.stderr, done.stderr
