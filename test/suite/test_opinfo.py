# SPDX-License-Identifier: BSD-3-Clause
"""The OpInfo tier: what it moves, what it excuses, and that its repros run."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from conformance.descriptor import Descriptor
from conformance.device import Device
from conformance.opinfo import forward, policy, randomness, repro
from conformance.opinfo.transfer import Transfer
from conformance.outcome import CheckError

CPU = torch.device("cpu")


def operator(name: str) -> Any:
    """An entry of the database."""
    return next(op for op in op_db if op.name == name)


def broken(name: str, function: Any) -> forward.Forward:
    """The check of an operator whose second call, the one on the device, is replaced."""
    op = operator(name)
    calls = iter(range(10**6))

    def alternate(*args: Any, **kwargs: Any) -> Any:
        return (op.op if next(calls) % 2 == 0 else function)(*args, **kwargs)

    fields = ("name", "variant_test_name", "sample_inputs_func", "decorators", "aten_name")
    copy = SimpleNamespace(op=alternate, **{field: getattr(op, field) for field in fields})
    copy.sample_inputs_func = lambda _, *args: op.sample_inputs_func(op, *args)
    return forward.Forward(copy)


@pytest.fixture
def dev() -> Device:
    """The CPU."""
    device = Device(Descriptor("cpu", "cpu"))
    device.begin("opinfo/forward:x:float32")
    return device


def test_a_wrong_value_fails_with_its_sample_and_a_repro(dev: Device) -> None:
    with pytest.raises(AssertionError, match="elements differ") as error:
        broken("sinh", lambda x: torch.sinh(x) + 1e-3)(dev, torch.float32)
    assert "in sample 0; " in str(error.value)
    assert "x0 = torch." in dev.facts["repro"]
    assert dev.facts["samples"] == 1


def test_a_raised_error_keeps_its_type(dev: Device) -> None:
    def refuse(*args: Any) -> None:
        raise NotImplementedError("aten::sinh")

    with pytest.raises(CheckError, match=r"^NotImplementedError: aten::sinh"):
        broken("sinh", refuse)(dev, torch.float32)


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("sinh", lambda x: torch.sinh(x).double(), "dtype"),
        ("sinh", lambda x: torch.sinh(x)[None], "shape"),
        ("empty_like", lambda x, **kwargs: torch.empty(7), "shape"),
        ("aminmax", lambda x, **kwargs: torch.aminmax(x, **kwargs)[:1], "structure"),
    ],
)
def test_metadata_and_structure_count(dev: Device, name: str, function: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        broken(name, function)(dev, torch.float32)


def test_uninitialised_values_do_not_count(dev: Device) -> None:
    broken("empty_like", lambda x, **kwargs: torch.full_like(x, 7, **kwargs))(dev, torch.float32)


def test_randomness_is_seen_through_helpers_that_restore_the_seed() -> None:
    def drawn(name: str, **wanted: Any) -> bool:
        op = operator(name)
        samples = op.sample_inputs("cpu", torch.float32)
        sample = next(s for s in samples if wanted.items() <= s.kwargs.items())
        return randomness.drawn(op.op, sample)

    assert drawn("cauchy")
    assert drawn("svd_lowrank")
    assert not drawn("sinh")
    attention = "nn.functional.scaled_dot_product_attention"
    assert drawn(attention, dropout_p=0.5)
    assert not drawn(attention, dropout_p=0.0)


def test_a_view_is_moved_with_its_storage() -> None:
    base = torch.arange(12.0)
    moved = Transfer(torch.device("meta")).move(base[2:].as_strided((2, 3), (1, 3)))
    assert moved.device.type == "meta"
    assert (moved.stride(), moved.storage_offset()) == ((1, 3), 2)
    assert moved.untyped_storage().nbytes() == base.untyped_storage().nbytes()


def test_lazy_bits_and_identity_survive_the_move() -> None:
    value = torch.ones(2, dtype=torch.complex64)
    transfer = Transfer(CPU)
    first, again, conj = transfer.move([value, value, value.conj()])
    assert first is again
    assert conj.is_conj()
    assert transfer.move({"device": "cpu", "dim": 1}) == {"device": CPU, "dim": 1}
    assert transfer.move(torch.Generator().manual_seed(5)).initial_seed() == 5


def test_ids_are_unique_over_all_operators() -> None:
    names = [policy.case_name(op) for op in op_db]
    assert len(names) == len(set(names))


def test_every_name_in_the_policy_is_an_operator() -> None:
    known = {op.name for op in op_db}
    listed = policy.UNINITIALISED | policy.RANDOM | policy.MUTATES_ARGUMENTS | policy.SPARSE
    assert listed | policy.HOST_ARGUMENTS <= known


@pytest.mark.parametrize("name", ["sinh", "as_strided", "nn.functional.conv2d", "cat"])
def test_a_repro_runs_with_torch_alone(name: str) -> None:
    sample = next(iter(operator(name).sample_inputs("cpu", torch.float32)))
    code = repro.snippet(operator(name), sample, Descriptor("cpu", "cpu"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("device:")
