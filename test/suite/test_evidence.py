# SPDX-License-Identifier: BSD-3-Clause
"""How an operator ran is read off the calls that PyTorch's dispatcher saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from torch_conformance.opinfo import calls, evidence
from torch_conformance.opinfo.calls import Call, Operand

OP = SimpleNamespace(name="exp", aten_name="exp")
CHIP, CPU, META = (Operand(type, 6) for type in ("mychip", "cpu", "meta"))


def call(name: str, *inputs: Operand, inner: tuple[Call, ...] = ()) -> Call:
    """A call of a function with tensors."""
    base = name.partition(".")[0]
    return Call(f"aten::{base}", f"aten::{name}", [(one,) for one in inputs], list(inner))


TO_CPU = call("copy_", CPU, CHIP)
READ = call("_local_scalar_dense", CHIP, inner=(TO_CPU,))
NUMBER = call("copy_", Operand("cpu", 1), Operand("mychip", 1))
#: name -> the calls that were seen, those of which the backend has kernels, what they show.
SEEN: dict[str, tuple[Call, set[str], str]] = {
    "kernel": (call("exp", CHIP), {"aten::exp"}, "native"),
    "structured": (
        call("exp", CHIP, inner=(call("exp.out", CHIP, CHIP),)),
        {"aten::exp.out"},
        "native",
    ),
    "structured_falls_back": (
        call("exp", CHIP, inner=(call("exp.out", CHIP, CHIP, inner=(TO_CPU,)),)),
        set(),
        "fallback",
    ),
    "kernel_that_uses_the_cpu": (call("exp", CHIP, inner=(TO_CPU,)), {"aten::exp"}, "fallback"),
    "kernel_that_reads_a_number": (call("exp", CHIP, inner=(READ,)), {"aten::exp"}, "native"),
    "kernel_that_copies_a_number": (call("exp", CHIP, inner=(NUMBER,)), {"aten::exp"}, "native"),
    "boxed_out_of_sight": (call("exp.out", CHIP, CHIP), set(), "fallback"),
    "boxed_on_the_device": (
        call("exp.out", CHIP, CHIP, inner=(call("exp.out", META, META),)),
        set(),
        "native",
    ),
    "composite": (
        call("dropout", CHIP, inner=(call("mul.out", CHIP, CHIP),)),
        {"aten::mul.out"},
        "composite",
    ),
    "composite_of_a_fallback": (
        call("dropout", CHIP, inner=(call("mul.out", CHIP, CHIP),)),
        set(),
        "fallback",
    ),
    "on_the_cpu": (call("exp.out", CPU, CPU), set(), "composite"),
    "factory": (call("exp"), {"aten::exp"}, "native"),
    "factory_of_another_name": (call("empty"), {"aten::empty"}, "composite"),
    "in_place": (call("exp_", CHIP), {"aten::exp_"}, "native"),
}


@pytest.fixture
def dev(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A device whose calls are planted."""
    monkeypatch.setattr(torch._C, "_dispatch_key_for_device", lambda type: "PrivateUse1")
    evidence._registered.cache_clear()
    evidence._dispatched.cache_clear()
    yield SimpleNamespace(type="mychip", is_accelerator=True, has=lambda name: False, fallbacks=set)
    evidence._registered.cache_clear()
    evidence._dispatched.cache_clear()


@pytest.mark.parametrize("case", SEEN)
def test_the_path_is_what_the_calls_show(
    case: str, dev: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, kernels, path = SEEN[case]
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    monkeypatch.setattr(
        torch._C,
        "_dispatch_has_kernel_for_dispatch_key",
        lambda name, key: name in kernels if key == "PrivateUse1" else has(name, key),
    )
    monkeypatch.setattr(calls, "recorded", lambda use: (use(), [seen]))
    watched = evidence.Evidence(OP, dev, samples=1)
    assert watched.observe(lambda: 7) == 7
    assert watched.path() == path


def test_what_is_no_operator_is_looked_through() -> None:
    # Autograd's nodes and labels of users are recorded, too; their names are no operators' names.
    dev: Any = SimpleNamespace(
        type="cpu", is_accelerator=True, has=lambda name: False, fallbacks=set
    )
    watched = evidence.Evidence(OP, dev, samples=1)
    x = torch.ones(3, requires_grad=True)

    def differentiate() -> None:
        with torch.profiler.record_function("mine: second: try"):
            x.exp().sum().backward()

    watched.observe(differentiate)
    assert watched.path() == "native"


def test_of_many_samples_some_are_observed_at_no_regular_distance(
    dev: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed: list[int] = []

    def recorded(use: Callable[[], int]) -> tuple[int, list[Call]]:
        observed.append(use())
        return observed[-1], []

    monkeypatch.setattr(calls, "recorded", recorded)
    samples = 10 * evidence.OBSERVED
    watched = evidence.Evidence(OP, dev, samples)
    for number in range(samples):
        watched.observe(partial(int, number))
    assert len(observed) == evidence.OBSERVED
    assert {number % 2 for number in observed} == {0, 1} == {n // (samples // 2) for n in observed}


def test_a_function_of_python_is_not_the_operator_that_its_name_ends_with() -> None:
    names = evidence._candidates(SimpleNamespace(name="masked.mean", aten_name="masked_mean"))
    assert "mean" not in names
    names = evidence._candidates(SimpleNamespace(name="nn.functional.relu", aten_name="relu"))
    assert "relu" in names
    assert "zero" in evidence._candidates(SimpleNamespace(name="zero_", aten_name="zero_"))


def test_calls_are_recorded_as_a_tree_with_overloads_and_operands() -> None:
    x = torch.arange(6.0)
    value, seen = calls.recorded(lambda: torch.stack([x, x]).sum())
    assert value.item() == 30.0
    names = [call.overload for call in seen]
    assert names == ["aten::stack", "aten::sum"]
    assert seen[0].inputs[0] == (Operand("cpu", 6), Operand("cpu", 6))
    assert "aten::cat" in [inner.name for inner in seen[0].children]
