# SPDX-License-Identifier: BSD-3-Clause
"""The kernel contract: what follows from it is up to date, and a contradiction fails the build."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from conformance.hal import contract
from conformance.hal.known_answers import known_answers

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "csrc" / "kernels"
PENDING = Path(__file__).with_name("kernels_without_known_answers.txt")


def _generator() -> ModuleType:
    path = ROOT / "csrc" / "hal" / "generate_kernels.py"
    spec = importlib.util.spec_from_file_location("generate_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


generator = _generator()


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
    assert len(built) == 245


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
    with pytest.raises(generator.ContractError, match=message):
        generator.load(path)


def test_a_key_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    text = generator.CONTRACT.read_text()
    line = next(line for line in text.splitlines() if line.startswith("      add: "))
    path = tmp_path / "kernels.yaml"
    path.write_text(text.replace(line, f"{line}\n{line}"))
    with pytest.raises(generator.ContractError, match="add is declared twice"):
        generator.load(path)


def test_every_kernel_has_a_known_answer_or_waits_for_one() -> None:
    """A new kernel comes with its answers. The list of those that wait only gets shorter."""
    waiting = set(PENDING.read_text().split())
    lacking = {name for name, cases in known_answers().items() if not cases}
    assert lacking - waiting == set(), "write known answers: conformance/hal/known_answers"
    assert waiting - lacking == set(), f"delete these from {PENDING.name}"
