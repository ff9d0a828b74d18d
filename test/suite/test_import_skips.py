# SPDX-License-Identifier: BSD-3-Clause
"""A flat list of disabled upstream tests becomes few rules, and each test is counted once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from torch_conformance.authoring import discovery
from torch_conformance.authoring.check import Check
from torch_conformance.cli import main
from torch_conformance.expectations import Expectations
from torch_conformance.expectations.skips import UpstreamTest, read, rules

OPERATORS = ("add", "addmm", "nn_functional_conv2d", "fft_fft", "fft_ifft", "fft_rfft")
DTYPES = ("float32", "float64", "int64")


def checks() -> list[Check]:
    """Checks with the ids of an OpInfo tier of a few operators."""
    topics = ("forward", "gradient")
    ids = [f"opinfo/{t}:{o}:{d}" for t in topics for o in OPERATORS for d in DTYPES]
    return [Check(id, ("OPINFO-UNARY-001",), lambda dev: None) for id in ids]


def disabled(names: Iterable[str], owner: str = "TestCommonPRIVATEUSE1") -> list[UpstreamTest]:
    """Tests of one class."""
    return [UpstreamTest(owner, name) for name in names]


def test_every_form_of_a_name_is_understood() -> None:
    text = """
    # a comment
    test_out_add_npu_float32 (__main__.TestCommon)
    test/test_ops.py::TestCommon::test_out_add_npu_int64
    TestCommon.test_out_addmm_npu_int64  # why
    test_alone
    test_out_add_npu_float32 (__main__.TestCommon)
    """
    assert read(text) == [
        UpstreamTest("TestCommon", "test_out_add_npu_float32"),
        UpstreamTest("TestCommon", "test_out_add_npu_int64"),
        UpstreamTest("TestCommon", "test_out_addmm_npu_int64"),
        UpstreamTest("", "test_alone"),
    ]
    assert read(json.dumps({"test_a (__main__.T)": ["", [""]]})) == [UpstreamTest("T", "test_a")]


def test_a_dtype_that_nearly_no_operator_has_is_one_rule() -> None:
    names = [f"test_compare_cpu_{op}_npu_float64" for op in OPERATORS[1:]]
    found = rules(disabled(names), checks())
    assert found.dtypes == {"float64": 5}
    assert not found.patterns


def test_operators_become_patterns_that_name_no_other_check() -> None:
    names = [f"test_compare_cpu_fft_{op}_npu_{d}" for op in ("fft", "ifft", "rfft") for d in DTYPES]
    names += ["test_fn_grad_add_npu_float32"]
    found = rules(disabled(names), checks())
    assert found.patterns == {"opinfo/forward:fft_*": 9, "opinfo/gradient:add:float32": 1}


def test_words_of_a_name_propose_a_capability() -> None:
    names = [f"test_sparse_{i}" for i in range(5)] + ["test_pin_memory_once"]
    found = rules(disabled(names, "TestTorch"), checks())
    assert found.capabilities == {"sparse": 5}
    assert found.unknown == {"TestTorch": 1}


def test_no_test_is_lost() -> None:
    names = [f"test_compare_cpu_{op}_npu_{d}" for op in OPERATORS for d in DTYPES]
    names += ["test_out_add_npu_float32", "test_nothing_like_it", "test_stream_a"]
    found = rules(disabled(names), checks())
    assert found.tests == len(names)


def test_the_verb_writes_a_file_the_suite_can_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skips, output = tmp_path / "skips.txt", tmp_path / "known.yaml"
    skips.write_text("test_compare_cpu_add_npu_float32\ntest_fn_grad_mul_npu_float32\ntest_x\n")
    command = ["import-skips", str(skips), "--link=https://example.org/1", "-o", str(output)]
    assert main(command) == 0
    ids = [entry.id for entry in Expectations.load(output).entries]
    assert ids == ["opinfo/forward:add:float32", "opinfo/gradient:mul:float32"]
    assert "3 disabled upstream tests" in capsys.readouterr().err
    assert main(command) == 4
    assert "exists" in capsys.readouterr().err


def test_the_verb_looks_up_the_checks_when_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    skips = tmp_path / "skips.txt"
    skips.write_text("test_compare_cpu_add_npu_float32\n")
    command = ["import-skips", str(skips), "--link=https://example.org/1"]
    # A verb that was imported while another list was lent must not keep that one.
    with monkeypatch.context() as lent:
        lent.setattr(discovery, "all_checks", list)
        assert main(command) == 0
        assert "of no check here" in capsys.readouterr().err
    monkeypatch.setattr(discovery, "all_checks", checks)
    assert main(command) == 0
    assert "opinfo/forward:add:float32" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "[1, 2]", "{", "[" * 100_000])
def test_a_list_that_is_none_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skips = tmp_path / "skips.json"
    skips.write_text(text)
    assert main(["import-skips", str(skips), "--link=https://example.org/1"]) == 4
    assert str(skips) in capsys.readouterr().err
