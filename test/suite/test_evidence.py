# SPDX-License-Identifier: BSD-3-Clause
"""How an operator ran is read off the calls that PyTorch's dispatcher saw."""

from __future__ import annotations

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
}


@pytest.mark.parametrize("case", SEEN)
def test_the_path_is_what_the_calls_show(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, kernels, path = SEEN[case]
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    monkeypatch.setattr(
        torch._C,
        "_dispatch_has_kernel_for_dispatch_key",
        lambda name, key: name in kernels if key == "PrivateUse1" else has(name, key),
    )
    evidence._registered.cache_clear()
    evidence._dispatched.cache_clear()
    dev: Any = SimpleNamespace(
        type="mychip", is_accelerator=True, has=lambda name: False, fallbacks=set
    )
    monkeypatch.setattr(torch._C, "_dispatch_key_for_device", lambda type: "PrivateUse1")
    monkeypatch.setattr(calls, "recorded", lambda use: (use(), [seen]))
    watched = evidence.Evidence(OP, dev)
    assert watched.observe(lambda: 7) == 7
    assert watched.path() == path
    evidence._registered.cache_clear()
    evidence._dispatched.cache_clear()


def test_calls_are_recorded_as_a_tree_with_overloads_and_operands() -> None:
    x = torch.arange(6.0)
    value, seen = calls.recorded(lambda: torch.stack([x, x]).sum())
    assert value.item() == 30.0
    names = [call.overload for call in seen]
    assert names == ["aten::stack", "aten::sum"]
    assert seen[0].inputs[0] == (Operand("cpu", 6), Operand("cpu", 6))
    assert "aten::cat" in [inner.name for inner in seen[0].children]
