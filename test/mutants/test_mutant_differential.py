# SPDX-License-Identifier: BSD-3-Clause
"""Random calls tell a backend that computes something else from one that does not."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mutants.differential import Differential, first_difference, read
from mutants.random_calls import digest, makes_calls, varied
from torch import Tensor

from torch_conformance.opinfo.sample import Sample

CHECKS = ("opinfo/forward:add:float32", "opinfo/forward:add:int64")
#: What Python runs at its start: with a mutant, numbers with a fraction leave the device doubled.
#: It ends where sets have another order in each process, which makes other samples.
DOUBLED = """
import os, sys
if sys.flags.hash_randomization:
    os._exit(4)
if "PUONE_MUTANT" in os.environ:
    import torch
    original = torch.Tensor.cpu
    torch.Tensor.cpu = lambda self: original(self * 2 if self.is_floating_point() else self)
"""


@pytest.mark.parametrize(
    "change",
    [
        lambda x: -x,
        lambda x: x.double(),
        lambda x: x[None],
        lambda x: x.flip(0),
        lambda x: x * (1 + 2**-23),
    ],
    ids=["sign of zero", "data type", "shape", "order", "last bit"],
)
def test_a_digest_is_of_all_bits(change: Callable[[Tensor], Tensor]) -> None:
    value = torch.tensor([0.0, 1.0, float("nan")])
    assert digest(value) == digest([value.clone()])
    assert digest(value) != digest(change(value))


def test_a_digest_is_of_values_and_not_of_their_layout() -> None:
    value = torch.arange(6.0).view(2, 3).to(torch.complex64) * (1 + 2j)
    same = (value.t().contiguous().t(), value.conj().resolve_conj().conj(), value.to_sparse())
    assert {digest(each) for each in same} == {digest(value)}


def test_random_arguments_keep_what_an_operator_needs() -> None:
    number = torch.ones(3, 4, requires_grad=True)
    index = torch.tensor([0, 2])
    draw = random.Random(5)
    changed = [varied(Sample(number, (0, index)), draw) for _ in range(200)]
    for each in changed:
        dim, places = each.args
        assert dim == 0 and places.tolist() == [0, 2]
        assert each.input.shape == (3, 4) and each.input.requires_grad and each.input.is_leaf
    assert len({each.input.stride() for each in changed}) > 2
    assert len({each.input.storage_offset() for each in changed}) > 1
    assert any(each.input.isnan().any() for each in changed)
    assert number.eq(1).all()


def test_tensors_become_long_together() -> None:
    draw = random.Random(5)
    changed = [varied(Sample(torch.ones(5, 2), (torch.ones(5),)), draw) for _ in range(100)]
    lengths = {(each.input.shape[0], each.args[0].shape[0]) for each in changed}
    assert all(first == second for first, second in lengths)
    assert max(lengths)[0] > 4096


@pytest.mark.parametrize(
    ("id", "made"),
    [
        ("opinfo/forward:add:float32", True),
        ("opinfo/gradgrad:add:float32", True),
        ("opinfo/error:add", False),
        ("copy/cast:float32", False),
    ],
)
def test_calls_are_those_of_topics_with_results(id: str, made: bool) -> None:
    assert makes_calls(id) is made


def test_a_line_that_is_cut_off_is_no_result(tmp_path: Path) -> None:
    file = tmp_path / "results"
    file.write_text("opinfo/forward:add:float32#0 12ab\nopinfo/forward:add:float32#1 12")
    assert read(file) == {"opinfo/forward:add:float32#0": "12ab"}


def test_a_call_that_was_not_made_any_more_differs() -> None:
    expected = {"a#0": "1", "a#1": "2"}
    assert first_difference(expected, {"a#0": "1"}) == "a#1"
    assert first_difference(expected, {"a#0": "3", "a#1": "2"}) == "a#0"
    assert first_difference(expected, expected | {"b#0": "4"}) == ""


def _environment(folder: Path, at_start: str) -> dict[str, str]:
    (folder / "sitecustomize.py").write_text(at_start)
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(path), "PUONE_DRIVER": "sim"}


@pytest.mark.nightly
def test_another_result_is_named_and_the_same_results_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in the process of the suite, which loads the backend itself.
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    calls = Differential(tmp_path / "calls", _environment(tmp_path, DOUBLED), processes=2)
    found = {each.number: each for each in calls.compare({1: CHECKS[:1], 2: CHECKS[1:]})}
    assert found[1].differs.startswith(f"{CHECKS[0]}#")
    assert found[2].differs == "" and found[2].calls > 1


#: With few calls in the process, a mutant or none, all results of numbers with a fraction differ.
FEW_DOUBLED = DOUBLED.replace(
    '"PUONE_MUTANT" in os.environ', "len(open(sys.orig_argv[2]).readlines()) == 1"
)


@pytest.mark.nightly
def test_what_differs_in_a_process_of_its_own_without_the_mutant_says_nothing(
    tmp_path: Path,
) -> None:
    calls = Differential(tmp_path / "calls", _environment(tmp_path, FEW_DOUBLED), processes=2)
    found = {each.number: each for each in calls.compare({1: CHECKS[:1], 2: CHECKS})}
    assert found[1].differs == "" and found[2].differs == ""
    assert found[1].calls < found[2].calls


def test_a_backend_that_fails_without_a_mutant_is_not_compared(tmp_path: Path) -> None:
    fails = _environment(tmp_path, "import os\nos.write(2, b'no device')\nos._exit(3)\n")
    calls = Differential(tmp_path / "calls", fails, processes=1)
    with pytest.raises(RuntimeError, match="status 3\nno device"):
        list(calls.compare({1: CHECKS}))
