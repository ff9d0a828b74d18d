# SPDX-License-Identifier: BSD-3-Clause
"""Forward results of every operator, variant and dtype of PyTorch's database against the CPU.

One check verifies all samples of an operator with a dtype: made on the CPU with one seed for the
check, moved to the device, run there and on the CPU. The journal knows the running sample, so that
a crash names it.
"""

from __future__ import annotations

import copy
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy.random
import torch

# Samples import it when they are made: better once here than in every worker.
import torch.fx.experimental.symbolic_shapes
from torch import Tensor

from conformance import compare
from conformance.check import REGISTRY, Check
from conformance.descriptor import Descriptor
from conformance.device import Device, run_forked
from conformance.opinfo import database, policy, randomness, repro
from conformance.opinfo.evidence import evidence
from conformance.opinfo.transfer import Transfer
from conformance.outcome import CheckError

TOPIC = "opinfo/forward"


@dataclass
class Failure:
    """One sample whose result is wrong (a difference) or missing (an exception)."""

    index: int
    text: str
    raised: bool


class Forward:
    """The body of the checks of one operator."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self.__doc__ = f"{op.name} {op.variant_test_name}".strip() + " gives the CPU's results."

    def __call__(self, dev: Device, dtype: torch.dtype) -> None:
        samples = self.samples(dtype, dev.check_id, dev.seed)
        if not samples:
            dev.unsupported("the operator database has no sample for this dtype")
        dev.reset_fallback_counts()
        failures = list(self._failures(dev, samples))
        dev.note(samples=len(samples), evidence=evidence(self.op, dev))
        if failures:
            self._raise(dev, samples, failures)

    def samples(self, dtype: torch.dtype, check_id: str, seed: int) -> list[Any]:
        """All samples, made before any of them runs: what runs may draw random numbers."""
        value = zlib.crc32(f"{seed}:{check_id}".encode())
        torch.default_generator.manual_seed(value)
        random.seed(value)
        numpy.random.seed(value)
        # Not op.sample_inputs: it reseeds before each sample and walks the stack to find its test.
        return list(self.op.sample_inputs_func(self.op, "cpu", dtype, False))

    def repro(
        self, dtype: torch.dtype, check_id: str, target: Descriptor, seed: int, i: int
    ) -> str:
        """Code that repeats sample `i`."""
        return repro.snippet(self.op, self.samples(dtype, check_id, seed)[i], target)

    def _failures(self, dev: Device, samples: list[Any]) -> Iterator[Failure]:
        op, journal = self.op.op, dev.journal
        on_cpu, mutates = not dev.is_accelerator, self.op.name in policy.MUTATES_ARGUMENTS
        stays = self.op.name in policy.HOST_ARGUMENTS
        quick = self.op.name not in policy.UNINITIALISED
        for index, sample in enumerate(samples):
            if journal is not None:
                journal.sample(index)
            try:
                arguments = (sample.input, sample.args, sample.kwargs)
                on_device = not on_cpu
                if on_cpu:
                    moved = copy.deepcopy(arguments) if mutates else arguments
                else:
                    transfer = Transfer(dev.device())
                    moved = transfer.move(arguments[:1] if stays else arguments)
                    moved = (*moved, *arguments[len(moved) :])
                    # Where no argument names a device, the result belongs on the CPU.
                    on_device = transfer.used
                expected = op(sample.input, *sample.args, **sample.kwargs)
                actual = op(moved[0], *moved[1], **moved[2])
                result = _to_cpu(actual, dev) if on_device else actual
            except AssertionError as error:
                yield Failure(index, str(error), raised=False)
            except Exception as error:
                yield Failure(index, f"{type(error).__name__}: {_text(error)}", raised=True)
            else:
                if quick and _equal(result, expected):
                    continue
                text = self._difference(dev, sample, result, expected)
                if text is not None:
                    yield Failure(index, text, raised=False)

    def _difference(self, dev: Device, sample: Any, actual: Any, expected: Any) -> str | None:
        metadata = compare.metadata_difference(actual, expected)
        if metadata is not None or self.op.name in policy.UNINITIALISED:
            return metadata
        text = self._value_difference(dev, actual, expected)
        if text is None or randomness.drawn(self.op.op, sample):
            return None
        # Some results are unique up to a sign or phase only; upstream says how to compare them.
        process = sample.output_process_fn_grad
        return self._value_difference(dev, process(actual), process(expected))

    def _value_difference(
        self, dev: Device, actual: Any, expected: Any, at: str = ""
    ) -> str | None:
        if isinstance(expected, (list, tuple)):
            if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
                return compare.difference(actual, expected, where=at)
            pairs = enumerate(zip(actual, expected, strict=True))
            texts = (self._value_difference(dev, a, e, f"{at}[{i}]") for i, (a, e) in pairs)
            return next((text for text in texts if text is not None), None)
        rtol = atol = 0.0
        if isinstance(expected, Tensor):
            rtol, atol = dev.tolerance(expected.dtype)
            wider = policy.tolerance(self.op, expected.dtype) if dev.is_accelerator else (0.0, 0.0)
            rtol, atol = max(rtol, wider[0]), max(atol, wider[1])
        elif isinstance(expected, (float, complex)):
            rtol, atol = dev.tolerance(torch.float32)
        return compare.difference(actual, expected, rtol=rtol, atol=atol, where=at)

    def _raise(self, dev: Device, samples: list[Any], failures: list[Failure]) -> None:
        first = failures[0]
        sample = samples[first.index]
        dev.note(repro=repro.snippet(self.op, sample, dev.descriptor))
        text = f"{first.text}\nin sample {first.index}; {len(failures)} of {len(samples)} fail"
        raise CheckError(text) if first.raised else AssertionError(text)


def checks() -> list[Check]:
    """The checks of every operator and dtype that the CPU has; registers them."""
    made = []
    for op in database.load():
        if not policy.applies(op):
            continue
        body, case, requirement = Forward(op), policy.case_name(op), policy.requirement(op)
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            made.append(_check(body, case, requirement, dtype))
            REGISTRY.add(made[-1])
    return made


def _check(body: Forward, case: str, requirement: str, dtype: torch.dtype) -> Check:
    name = str(dtype).removeprefix("torch.")
    check_id = f"{TOPIC}:{case}:{name}"
    return Check(
        id=check_id,
        requirements=(requirement,),
        body=body,
        arguments=(("dtype", name),),
        needs=policy.needs(body.op),
        file=__file__,
        line=Forward.__call__.__code__.co_firstlineno,
        sample_repro=lambda target, seed, i: _repro(body, dtype, check_id, target, seed, i),
    )


def _repro(
    body: Forward, dtype: torch.dtype, check_id: str, target: Descriptor, seed: int, i: int
) -> str | None:
    """Made in a child: this is the runner's process, which runs no operators."""
    status, text = run_forked(lambda: body.repro(dtype, check_id, target, seed, i))
    return text if status == 0 else None


def _equal(actual: Any, expected: Any) -> bool:
    """Whether both are the same plain tensor: the way of nearly all samples, kept short."""
    return (
        type(expected) is Tensor
        and type(actual) is Tensor
        and actual.dtype is expected.dtype is not torch.complex32
        and actual.layout is expected.layout is torch.strided
        and torch.equal(actual, expected)
    )


def _to_cpu(value: Any, dev: Device) -> Any:
    """Results copied to the CPU; one that is not on the device is an error of its own."""
    if isinstance(value, Tensor):
        if value.device.type != dev.type:
            raise AssertionError(f"a result is on {value.device}, not on {dev.type}")
        return value.detach().cpu()
    if isinstance(value, (list, tuple)):
        return [_to_cpu(item, dev) for item in value]
    return value


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(message cannot be printed)"
