# SPDX-License-Identifier: BSD-3-Clause
"""What all topics of the OpInfo tier share.

One check verifies all samples of an operator with a dtype: made on the CPU with one seed for the
check, moved to the device, used there and on the CPU in the same way. The journal knows the running
sample, so that a crash names it.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy.random
import torch

# Samples import the second when they are made, and the first dispatch mode the first: better once
# here than in every worker.
import torch._dynamo
import torch.fx.experimental.symbolic_shapes
from torch import Tensor

from torch_conformance.authoring import compare, tolerances
from torch_conformance.authoring.assertion import said
from torch_conformance.authoring.backend import text_of
from torch_conformance.authoring.check import REGISTRY, Check
from torch_conformance.authoring.compare import Difference, DifferentError
from torch_conformance.authoring.device import Device, run_forked
from torch_conformance.authoring.origin import is_verdict
from torch_conformance.opinfo import policy, precision, randomness, repro, ties
from torch_conformance.opinfo.evidence import Evidence
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.transfer import CPU, Transfer, moved
from torch_conformance.opinfo.without_backend import raised_by_cpu
from torch_conformance.spec import capabilities
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.ids import FULL, PR, STANDARD
from torch_conformance.spec.mismatch import Mismatch
from torch_conformance.spec.operator_families import of_operator, requirement
from torch_conformance.spec.outcome import CheckError
from torch_conformance.spec.reason import NoReference

# The dtype of an operator that stands for all of them: the first of these that it supports.
REPRESENTATIVES = ("float32", "int64", "complex64", "bool", "float64", "float8_e4m3fn")

# With these a device may refuse an argument; any other exception is a defect.
_REFUSALS = (RuntimeError, TypeError, ValueError, IndexError)

#: What a topic uses of an operator's samples where `forward` has used all: pooling has 1,440.
SOME = 32

# Two results of the CPU that differ by more than this are not two roundings of one.
PLAIN = 3e-2


@dataclass
class Seen:
    """What using an operator gave: values to compare, and promises, kept or not.

    The device must keep those that the CPU keeps.
    """

    values: Any
    kept: dict[str, bool] = field(default_factory=dict)


@dataclass
class Failure:
    """One sample whose result is wrong (a difference) or missing (an exception)."""

    index: int
    text: str
    raised: bool = False
    mismatch: Mismatch | None = None


class Incomparable(Exception):
    """The CPU itself raises for a sample: there is nothing to compare with."""


class Topic:
    """The body of the checks of one operator; a subclass says what to do with a sample."""

    name: ClassVar[str]
    number: ClassVar[str]
    """Of the requirements that the checks verify; each family of operators has one."""
    sentence: ClassVar[str]
    mutates: ClassVar[bool] = False
    """Whether using an operator changes its arguments."""
    quick: ClassVar[tuple[str, ...]] = REPRESENTATIVES
    """The first dtype of these that an operator supports belongs to the quickest selection."""
    standard: ClassVar[frozenset[str] | None] = None
    """The dtypes that are run unless others are asked for; None: all."""
    recipe: ClassVar[repro.Recipe] = repro.Recipe()
    needs: ClassVar[tuple[str, ...]] = ()
    """Capabilities that every check of the topic needs."""
    most: ClassVar[int | None] = None
    """So many samples of an operator are used, chosen by the seed; None: all."""
    derives: ClassVar[bool] = False
    """Whether derivatives are compared: they may be off by more, and be those of neighbours."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self._evidence: Evidence | None = None
        self.__doc__ = f"{op.name} {op.variant_test_name}".strip() + f" {self.sentence}"

    # What a topic defines

    def required(self) -> str:
        """The requirement that the checks verify."""
        return requirement(of_operator(self.op.name), self.number)

    def case(self) -> str:
        """The operator as a word of the check id."""
        return policy.case_name(self.op)

    def dtypes(self) -> Iterable[torch.dtype]:
        """The dtypes there are checks for."""
        return supported_dtypes(self.op)

    def make(self, dtype: torch.dtype) -> Iterable[Sample]:
        """The samples."""
        return self.database_samples(dtype)

    def act(self, sample: Sample) -> Seen:
        """Use the operator; on the device and on the CPU alike."""
        raise NotImplementedError

    def canonical(self, sample: Sample, values: Any) -> Any:
        """Values in a form in which they are unique, as upstream defines it."""
        return sample.process(ties.resolved(self.op.name, sample, values))

    # The check

    def __call__(self, dev: Device, dtype: torch.dtype) -> None:
        self.verify(dev, self.samples(dtype, dev.check_id, dev.seed))

    def verify(self, dev: Device, samples: list[Sample]) -> None:
        """Judge every sample; raise for the first one that fails."""
        if not samples:
            dev.unsupported("the operator database has no sample for this")
        incomparable: list[str] = []
        self._evidence = Evidence(self.op, dev, len(samples))
        failures = list(self._failures(dev, samples, incomparable))
        if len(incomparable) == len(samples):
            dev.unsupported(NoReference(text=incomparable[0]))
        dev.note(samples=len(samples) - len(incomparable), evidence=self._evidence.path())
        if failures:
            self._raise(dev, samples, failures)

    def samples(self, dtype: torch.dtype, check_id: str, seed: int) -> list[Sample]:
        """All samples, made before any of them runs: what runs may draw random numbers."""
        seed_everything(check_id, seed)
        return list(self.make(dtype))

    def database_samples(self, dtype: torch.dtype, requires_grad: bool = False) -> list[Sample]:
        """The samples as the operator database has them."""
        # Not op.sample_inputs: it reseeds before each sample and walks the stack to find its test.
        made = self.op.sample_inputs_func(self.op, "cpu", dtype, requires_grad)
        return self._chosen(list(filter(_is_here, map(Sample.of, made))), dtype)

    def _chosen(self, samples: list[Sample], dtype: torch.dtype) -> list[Sample]:
        """Those that are used: all, or some that the seed chooses."""
        if self.most is not None or dtype != torch.float32:
            samples = samples[:: policy.SLOW.get(self.op.name, 1)]
        if self.most is None or len(samples) <= self.most:
            return samples
        return [samples[i] for i in sorted(random.sample(range(len(samples)), self.most))]

    def repro(
        self, dtype: torch.dtype, check_id: str, target: Descriptor, seed: int, i: int
    ) -> str:
        """Code that repeats sample `i`."""
        return repro.snippet(self.op, self.samples(dtype, check_id, seed)[i], target, self.recipe)

    def judge(self, dev: Device, sample: Sample) -> Difference | str | None:
        """What is wrong with the device's result for a sample, or None."""
        there, on_device = self._moved(dev, sample)
        try:
            expected = self.act(self.own(sample))
        except Exception as error:
            if not raised_by_cpu(error, lambda: self.act(self.own(sample))):
                raise
            # A kernel that the CPU does not have is nothing that a device must not have.
            if not sample.refused or isinstance(error, NotImplementedError):
                raise Incomparable(f"{type(error).__name__}: {first_line(error)}") from None
            return self._refusal(dev, there, error)
        self.trust(sample, expected)
        try:
            actual = self._observed(lambda: self.act(there))
        except _REFUSALS:
            if sample.refused:
                raise Incomparable("the device refuses what the CPU accepts") from None
            raise
        values = to_cpu(actual.values, dev) if on_device else actual.values
        for promise, kept in expected.kept.items():
            if kept and not actual.kept[promise]:
                return f"the call {promise} on the CPU, and not on the device"
        quick = self.op.name not in policy.UNINITIALISED
        if quick and _equal(values, expected.values):
            return None
        return self._difference(dev, sample, values, expected.values)

    def _observed(self, use: Callable[[], Seen]) -> Seen:
        return use() if self._evidence is None else self._evidence.observe(use)

    def _failures(
        self, dev: Device, samples: list[Sample], incomparable: list[str]
    ) -> Iterator[Failure]:
        for index, sample in enumerate(samples):
            if dev.journal is not None:
                dev.journal.sample(index)
            try:
                wrong = self.judge(dev, sample)
            except Incomparable as reason:
                incomparable.append(str(reason))
            except Exception as error:
                yield _failure(index, error)
            else:
                if wrong is not None:
                    mismatch = wrong.mismatch if isinstance(wrong, Difference) else None
                    yield Failure(index, str(wrong), mismatch=mismatch)

    def own(self, sample: Sample) -> Sample:
        """The sample for one use: a copy, if that changes its arguments."""
        changes = self.mutates or self.op.name in policy.MUTATES_ARGUMENTS
        return moved(sample, CPU) if changes else sample

    def _moved(self, dev: Device, sample: Sample) -> tuple[Sample, bool]:
        """The sample on the device, and whether the result has to be there, too."""
        if not dev.is_accelerator:
            return self.own(sample), False
        transfer = Transfer(dev.device())
        first = transfer.move(sample.input)
        args, kwargs = sample.args, sample.kwargs
        if self.op.name not in policy.HOST_ARGUMENTS:
            args, kwargs = transfer.move((args, kwargs))
        # Where no argument names a device, the result belongs on the CPU.
        return replace(sample, input=first, args=args, kwargs=kwargs), transfer.used

    def _raised(self, sample: Sample, wait: Callable[[], None] | None = None) -> Exception | None:
        """What the call raises, if anything, at the latest when the device is waited for."""
        try:
            sample.call(self.op.op)
            if wait is not None:
                wait()
        except Exception as error:
            return error
        return None

    def _refusal(self, dev: Device, there: Sample, error: Exception) -> str | None:
        """The CPU raises and the device has to: what is wrong with what the device does."""
        due = f"the CPU raises {type(error).__name__}: {first_line(error)}"
        try:
            self.act(there)
            dev.synchronize()
        except type(error):
            return None
        except Exception as raised:
            return f"{type(raised).__name__}: {text_of(raised)}; {due}"
        return f"nothing is raised; {due}"

    def trust(self, sample: Sample, expected: Seen) -> None:
        """Raise Incomparable if the CPU itself is wrong."""
        if sample.known is None or not policy.has_values(self.op):
            return
        if not _equal(expected.values, sample.known):
            found = compare.difference(expected.values, sample.known, rtol=PLAIN, atol=PLAIN)
            if found is not None and not self._draws(sample):
                raise Incomparable(f"the CPU itself is wrong: {found}")

    def _draws(self, sample: Sample) -> bool:
        return randomness.drawn(lambda: self.act(moved(sample, CPU)))

    def _difference(
        self, dev: Device, sample: Sample, actual: Any, expected: Any
    ) -> Difference | None:
        metadata = compare.metadata_difference(actual, expected)
        if metadata is not None or self.op.name in policy.UNINITIALISED:
            return metadata
        if precision.near(actual, expected):
            return None
        actual, expected = self.canonical(sample, actual), self.canonical(sample, expected)
        return precision.difference(self._question(dev, sample), actual, expected)

    def _question(self, dev: Device, sample: Sample) -> precision.Question:
        return precision.Question(
            operator=None if self.derives else self.op.name,
            act=self._values,
            sample=sample,
            rule=self.rule(),
            granted=partial(self._granted, dev),
            default=partial(self._tolerance, dev),
            draws=partial(self._draws, sample),
        )

    def rule(self) -> precision.Rule:
        """How far an element of the results may be from the truth."""
        if self.derives:
            return precision.DERIVATIVES
        if policy.is_rounded_once(self.op):
            return precision.ROUNDED_ONCE
        return precision.POINTWISE if policy.is_pointwise(self.op) else precision.RESULTS

    def _values(self, sample: Sample) -> Any:
        """What the CPU computes for a sample."""
        return self.canonical(sample, self.act(self.own(sample)).values)

    def _granted(self, dev: Device, dtype: torch.dtype) -> tuple[float, float]:
        """The widest of what the backend's descriptor and our own exceptions grant."""
        if not dev.is_accelerator:
            return 0.0, 0.0
        name = str(dtype).removeprefix("torch.")
        declared = dev.descriptor.tolerances.get(name, (0.0, 0.0))
        granted = tolerances.load().granted(self.op.name, self.name, name)
        return max(declared[0], granted[0]), max(declared[1], granted[1])

    def _tolerance(self, dev: Device, dtype: torch.dtype) -> tuple[float, float]:
        """The widest of what the dtype, upstream's tests and our own exceptions grant."""
        pairs = [dev.tolerance(dtype), self._granted(dev, dtype)]
        if dev.is_accelerator:
            pairs.append(policy.tolerance(self.op, dtype))
        return max(rtol for rtol, _ in pairs), max(atol for _, atol in pairs)

    def _raise(self, dev: Device, samples: list[Sample], failures: list[Failure]) -> None:
        first = failures[0]
        sample = samples[first.index]
        dev.note(repro=repro.snippet(self.op, sample, dev.descriptor, self.recipe))
        variant = f" ({sample.variant})" if sample.variant else ""
        count = f"{len(failures)} of {len(samples)} fail"
        text = f"{first.text}\nin sample {first.index}{variant}; {count}"
        if first.raised:
            raise CheckError(text)
        raise DifferentError(text, first.mismatch) if first.mismatch else AssertionError(text)


def _is_here(sample: Sample) -> bool:
    return not any(map(policy.is_elsewhere, (*sample.args, *sample.kwargs.values())))


def _failure(index: int, error: Exception) -> Failure:
    """What an exception says of a sample: a comparison that failed, or no result at all."""
    if isinstance(error, AssertionError) and is_verdict(error, __file__):
        return Failure(index, said(error))
    return Failure(index, f"{type(error).__name__}: {text_of(error)}", raised=True)


def seed_everything(check_id: str, seed: int) -> None:
    """Seed all generators that samples are drawn from."""
    value = zlib.crc32(f"{seed}:{check_id}".encode())
    torch.default_generator.manual_seed(value)
    random.seed(value)
    numpy.random.seed(value)


def register(bodies: Iterable[Topic], file: str) -> list[Check]:
    """Make and register the checks of a topic, one for each operator and dtype."""
    made = [check for body in bodies for check in _checks(body, file)]
    for check in made:
        REGISTRY.add(check)
    return made


def _checks(body: Topic, file: str) -> Iterator[Check]:
    dtypes = sorted(body.dtypes(), key=str)
    names = {str(dtype).removeprefix("torch."): dtype for dtype in dtypes}
    quick = next((name for name in body.quick if name in names), None)
    for name, dtype in names.items():
        standard = body.standard is None or name in body.standard
        yield Check(
            id=f"opinfo/{body.name}:{body.case()}:{name}",
            requirements=(body.required(),),
            body=body,
            arguments=(("dtype", name),),
            needs=(
                *body.needs,
                *policy.needs(body.op),
                *([name] if name in capabilities.MEANING else []),
            ),
            breadth=PR if name == quick else STANDARD if standard else FULL,
            file=file,
            line=Topic.__call__.__code__.co_firstlineno,
            sample_repro=_sample_repro(body, dtype, f"opinfo/{body.name}:{body.case()}:{name}"),
        )


def _sample_repro(body: Topic, dtype: torch.dtype, check_id: str) -> Any:
    def made(target: Descriptor, seed: int, i: int) -> str | None:
        """Made in a child: this is the runner's process, which runs no operators."""
        status, text = run_forked(lambda: body.repro(dtype, check_id, target, seed, i))
        return text if status == 0 else None

    return made


def supported_dtypes(op: Any) -> frozenset[torch.dtype]:
    """The dtypes with which the CPU runs the operator, says the database."""
    return frozenset(op.supported_dtypes("cpu"))


def _equal(actual: Any, expected: Any) -> bool:
    """Whether both are the same plain tensors: the way of nearly all samples, kept short."""
    if type(expected) is list and type(actual) is list and len(actual) == len(expected):
        return all(map(_equal, actual, expected))
    return (
        type(expected) is Tensor
        and type(actual) is Tensor
        and actual.dtype is expected.dtype is not torch.complex32
        and actual.layout is expected.layout is torch.strided
        and torch.equal(actual, expected)
    )


def to_cpu(value: Any, dev: Device) -> Any:
    """Results copied to the CPU; one that is not on the device is an error of its own."""
    if isinstance(value, Tensor):
        if value.device.type != dev.type:
            raise AssertionError(f"a result is on {value.device}, not on {dev.type}")
        return value.detach().cpu()
    if isinstance(value, (list, tuple)):
        return [to_cpu(item, dev) for item in value]
    return value


def first_line(error: BaseException) -> str:
    """The first line of that message."""
    return (text_of(error).strip().splitlines() or [""])[0][:160]
