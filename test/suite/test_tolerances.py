# SPDX-License-Identifier: BSD-3-Clause
"""The file of tolerances: what it grants, and which mistakes in it are found."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from torch_conformance.authoring import compare, tolerances
from torch_conformance.authoring.tolerances import TolerancesError
from torch_conformance.opinfo import database

HEAD = "dtypes: {float32: [1.0e-6, 1.0e-5]}\nexceptions:\n"
ENTRY = HEAD + "- {operator: sinh, dtypes: {float32: [1.0e-3, 0]}, reason: r"


def load(tmp_path: Path, text: str) -> tolerances.Tolerances:
    """Read a file with this text."""
    file = tmp_path / "t.yaml"
    file.write_text(text)
    tolerances.load.cache_clear()
    return tolerances.load(file)


def test_the_default_is_that_of_torch_testing_but_for_double_precision() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.complex64):
        value = torch.ones(1, dtype=dtype)
        rtol, atol = compare.tolerance(dtype)
        torch.testing.assert_close(value * (1 + rtol), value)
        assert (rtol, atol) == torch.testing._comparison.default_tolerances(dtype)
    assert compare.tolerance(torch.float64) == compare.tolerance(torch.complex128) == (1e-11, 1e-11)
    assert compare.tolerance(torch.int64) == (0.0, 0.0)


def test_every_exception_is_about_an_operator_and_says_why() -> None:
    found = tolerances.load()
    found.verify({op.name for op in (*database.operators(), *database.foreach())})
    assert all(len(entry.reason) > 20 for entry in found.exceptions)


def test_an_exception_applies_to_its_operator_topics_and_dtypes_only(tmp_path: Path) -> None:
    found = load(tmp_path, ENTRY + ", topics: [out]}\n")
    assert found.granted("sinh", "out", "float32") == (1e-3, 0.0)
    assert found.granted("sinh", "forward", "float32") == (0.0, 0.0)
    assert found.granted("sinh", "out", "float16") == (0.0, 0.0)
    assert found.granted("sin", "out", "float32") == (0.0, 0.0)


def test_of_several_exceptions_the_widest_applies(tmp_path: Path) -> None:
    wide = "- {operator: s*, dtypes: {float32: [1.0e-4, 1.0e-2]}, reason: r}\n"
    found = load(tmp_path, ENTRY + "}\n" + wide)
    assert found.granted("sinh", "forward", "float32") == (1e-3, 1e-2)
    assert found.granted("sin", "forward", "float32") == (1e-4, 1e-2)


def test_an_exception_that_matches_no_operator_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TolerancesError, match=r"t\.yaml: 'sinh' matches no operator"):
        load(tmp_path, ENTRY + "}\n").verify({"sin"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dtypes: {}\n", "needs a map `dtypes` and a list `exceptions`"),
        ("dtypes: {float23: [0, 0]}\nexceptions: []\n", "'float23' is not a dtype"),
        ("dtypes: {float32: [0]}\nexceptions: []\n", r"\[rtol, atol\] expected for float32"),
        ("dtypes: {float32: [0, -1]}\nexceptions: []\n", r"\[rtol, atol\] expected for float32"),
        (HEAD + "- {dtypes: {float32: [0, 0]}, reason: r}\n", "key 'operator' is missing"),
        (HEAD + "- {operator: a, dtypes: {float32: [0, 0]}}\n", "a: key 'reason' is missing"),
        (HEAD + "- {operator: a, reason: r}\n", "a: `dtypes` must be a map"),
        (ENTRY + ", topics: [sideways]}\n", "sinh: 'sideways' is not a topic: forward"),
        (ENTRY + ", topic: [out]}\n", "sinh: unknown key 'topic'"),
        (HEAD + "- {operator: 's*h', reason: r}\n", "only allowed at the end"),
        (HEAD + "- [\n", r"t\.yaml"),
    ],
)
def test_a_mistake_names_file_and_entry(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(TolerancesError, match=words):
        load(tmp_path, text)
