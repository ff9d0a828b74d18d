# SPDX-License-Identifier: BSD-3-Clause
"""The OpInfo tier: what it moves, what it excuses, and that its repros run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput
from torch.testing._utils import wrapper_set_seed

from torch_conformance.authoring.device import Device
from torch_conformance.opinfo import database, layouts, policy, randomness, repro, truth
from torch_conformance.opinfo.error import Error, _complaint
from torch_conformance.opinfo.foreach import Foreach, ForeachInPlace
from torch_conformance.opinfo.forward import Forward
from torch_conformance.opinfo.gradgrad import GradGrad
from torch_conformance.opinfo.gradient import Gradient
from torch_conformance.opinfo.inplace import InPlace
from torch_conformance.opinfo.math_bits import MathBits
from torch_conformance.opinfo.misfit import Misfit, changed
from torch_conformance.opinfo.noncontiguous import Noncontiguous
from torch_conformance.opinfo.out import Out
from torch_conformance.opinfo.sample import Sample
from torch_conformance.opinfo.topic import SOME, Incomparable, Topic
from torch_conformance.opinfo.transfer import META, Transfer, moved
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.outcome import CheckError
from torch_conformance.spec.reason import Unsupported

CPU = torch.device("cpu")
OPERATORS = [*database.operators(), *database.foreach()]


def operator(name: str) -> Any:
    """An entry of the database."""
    return next(op for op in OPERATORS if op.name == name)


@pytest.mark.parametrize("before", [None, "0,1"])
def test_importing_the_databases_starts_no_cuda(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    """Upstream's helpers make a tensor on the first card, after which a fork could use none."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if before is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", before)
    seen: list[str | None] = []

    def imported(name: str) -> Any:
        seen.append(os.environ.get("CUDA_VISIBLE_DEVICES"))
        return mock.Mock(module_db=[])

    monkeypatch.setattr(database, "import_module", imported)
    assert database.modules() == []
    assert seen == [""]
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == before


class Planted:
    """An entry of the database with some attributes replaced."""

    def __init__(self, op: Any, /, **replaced: Any) -> None:
        self._op = op
        self.__dict__ |= replaced

    def __getattr__(self, name: str) -> Any:
        return getattr(self._op, name)


def broken(entry: Any, function: Any, kind: type[Topic] = Forward, attribute: str = "op") -> Topic:
    """The check of an operator one function of which is replaced on the device only."""
    op = Planted(operator(entry) if isinstance(entry, str) else entry)

    class Lying(kind):  # type: ignore[misc, valid-type]  # a base known at run time
        def _observed(self, use: Callable[[], Any]) -> Any:
            with mock.patch.dict(vars(op), {attribute: function}):
                return super()._observed(use)

        def _refusal(self, dev: Device, there: Sample, error: Exception) -> Any:
            with mock.patch.dict(vars(op), {attribute: function}):
                return super()._refusal(dev, there, error)

    topic: Topic = Lying(op)
    return topic


@pytest.fixture
def dev() -> Device:
    """The CPU."""
    device = Device(Descriptor(name="cpu", device_type="cpu"))
    device.begin("opinfo/topic:x:float32")
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


def test_entries_of_random_operators_leave_the_devices_state_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    op = operator("bernoulli")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: 1 / 0)
    before = torch.get_rng_state()
    first, second = (op.op(torch.full((64,), 0.5)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)
    # What users call is as it was: torch.library.opcheck keeps that state.
    with pytest.raises(ZeroDivisionError):
        wrapper_set_seed(torch.sin, torch.ones(2))


def nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing where something is due."""


def overwrite(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """Write a result as if its tensor were contiguous."""
    out.as_strided(out.shape, torch.empty(out.shape).stride()).copy_(torch.sinh(x))
    return out


def in_other_memory(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """Give the result other memory than that of out=."""
    return out.set_(torch.sinh(x))  # type: ignore[call-overload]  # not in the stubs


def without_a_word(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """Convert the result to whatever dtype out= has, and resize that without the warning."""
    return out.resize_(0).resize_(x.shape).copy_(torch.sinh(x).nan_to_num())


def as_contiguous(x: torch.Tensor) -> torch.Tensor:
    """Read a tensor as if it were contiguous."""
    return torch.sinh(x.as_strided(x.shape, torch.empty(x.shape).stride(), x.storage_offset()))


def unresolved(x: torch.Tensor) -> torch.Tensor:
    """Take no notice of the bits of a view."""
    return torch.sinh(x.conj() if x.is_conj() else torch._neg_view(x) if x.is_neg() else x)


class WrongGradient(torch.autograd.Function):
    """The sine, with one half of its gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0] * ctx.saved_tensors[0].cos() / 2


class WrongSecondGradient(WrongGradient):
    """The sine, with a gradient that is right and taken for a constant."""

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0] * ctx.saved_tensors[0].detach().cos()


COMPLEX = torch.complex64


@pytest.mark.parametrize(
    ("kind", "name", "function", "words", "dtype"),
    [
        (Out, "sinh", lambda x, *, out: out, "elements differ", None),
        (Out, "sinh", overwrite, "elements differ", None),
        (Out, "sinh", in_other_memory, "keeps the memory and the strides of out", None),
        (Out, "sinh", lambda x, *, out: torch.sinh(x, out=out).clone(), "returns out", None),
        (Out, "sinh", without_a_word, "warns that out is resized", None),
        (Out, "sinh", without_a_word, "nothing is raised; the CPU raises RuntimeError", None),
        (Noncontiguous, "sinh", as_contiguous, "elements differ", None),
        (MathBits, "sinh", unresolved, "elements differ", COMPLEX),
        (MathBits, "sinh", unresolved, "elements differ", torch.float32),
        (Gradient, "sin", WrongGradient.apply, "elements differ", None),
        (GradGrad, "sin", WrongSecondGradient.apply, "NoneType was returned", None),
        (Gradient, "sin", lambda x: x.detach().sin(), "RuntimeError: no result", None),
        (Foreach, "_foreach_add", lambda x, y, **kwargs: torch._foreach_add(x, y), "differ", None),
    ],
)
def test_a_topic_catches(
    dev: Device, kind: Any, name: str, function: Any, words: str, dtype: torch.dtype | None
) -> None:
    topic = broken(name, function, kind)
    samples = topic.samples(dtype or torch.float32, "opinfo/topic:x", 0)
    complaints = [failure.text for failure in topic._failures(dev, samples, [])]
    assert [text for text in complaints if words in text], complaints


@pytest.mark.parametrize(
    ("kind", "name", "function", "words"),
    [
        (InPlace, "sinh", lambda x: x.cosh_(), "elements differ"),
        (InPlace, "sinh", lambda x: x, "increases the version"),
        (InPlace, "sinh", lambda x: x.sinh_().clone(), "returns its input"),
        (InPlace, "sinh", lambda x: x.set_(x.sinh()), "keeps the memory"),
        (InPlace, "add", lambda x, y, **kwargs: x, "nothing is raised; the CPU raises"),
        (ForeachInPlace, "_foreach_sinh", torch._foreach_cosh_, "elements differ"),
        (ForeachInPlace, "_foreach_sinh", nothing, "increases the version"),
    ],
)
def test_a_topic_catches_in_place(
    dev: Device, kind: Any, name: str, function: Any, words: str
) -> None:
    topic = broken(name, function, kind, "inplace_variant")
    samples = topic.samples(torch.float32, "opinfo/topic:x", 0)
    complaints = [failure.text for failure in topic._failures(dev, samples, [])]
    assert [text for text in complaints if words in text], complaints


def test_of_many_samples_topics_other_than_forward_use_some_that_the_seed_chooses() -> None:
    def calls(kind: type[Topic], seed: int) -> list[str]:
        topic = kind(operator("nn.functional.max_pool1d"))
        samples = topic.samples(torch.float32, "opinfo/topic:x", seed)
        return [f"{sample.input.shape} {sample.kwargs}" for sample in samples]

    whole = calls(Forward, 0)
    for kind in (Gradient, GradGrad):
        some = calls(kind, 0)
        assert len(some) == SOME < len(whole)
        assert some == calls(kind, 0) != calls(kind, 1)
        assert set(some) <= set(whole)


def test_an_unchanged_version_is_caught(dev: Device) -> None:
    def behind_autograds_back(x: torch.Tensor) -> torch.Tensor:
        x.data.sinh_()
        return x

    with pytest.raises(AssertionError, match="increases the version"):
        broken("sinh", behind_autograds_back, InPlace, "inplace_variant")(dev, torch.float32)


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (None, "nothing was raised; expected ValueError with a message like 'too la+rge'"),
        (TypeError("too large"), "TypeError: too large; expected ValueError"),
        (ValueError("no"), "ValueError: no; expected ValueError"),
        (ValueError("it is too laaarge"), None),
    ],
)
def test_errors_are_judged_by_type_and_message(raised: Exception | None, words: str | None) -> None:
    def act(x: Any) -> None:
        if raised is not None:
            raise raised

    sample = Sample(1, error=(ValueError, "too la+rge"))
    found = _complaint(sample, Error(Planted(operator("sinh"), op=act))._raised(sample))
    assert (found is None) if words is None else words in str(found)


def test_an_error_may_come_as_late_as_the_device_is_waited_for() -> None:
    def late() -> None:
        raise ValueError("late")

    sample = Sample(1, error=(ValueError, "late"))
    error = Error(Planted(operator("sinh"), op=nothing))._raised(sample, late)
    assert _complaint(sample, error) is None


@pytest.mark.parametrize(
    ("on_meta", "complains"),
    [
        (TypeError("of 3 sizes"), False),
        (TypeError("of 4 sizes"), True),
        (RuntimeError("of 3 sizes"), True),
        (None, True),
    ],
)
def test_an_error_may_be_that_of_pytorchs_own_functions_of_shapes(
    on_meta: Exception | None, complains: bool
) -> None:
    raises = iter([TypeError("of 3 sizes"), ValueError("as documented"), on_meta])

    def act(x: Any) -> None:
        if (error := next(raises)) is not None:
            raise error

    dev: Any = SimpleNamespace(is_accelerator=True, synchronize=nothing)
    sample = Sample(1, error=(ValueError, "as documented"))
    found = Error(Planted(operator("sinh"), op=act)).judge(dev, sample)
    assert (found is not None) == complains


def _misfit(act: Any) -> str | None:
    """What is said of a product of 2 x 3 and 2 x 3; `act` is given the place of each call."""
    places = iter(["meta", "cpu", "device"])
    sample = Sample(torch.ones(2, 3), (torch.ones(2, 3),))
    dev: Any = SimpleNamespace(is_accelerator=False, synchronize=nothing)
    topic = Misfit(Planted(operator("mm"), op=lambda x, y: act(next(places), x, y)))
    return topic.judge(dev, sample)


def test_arguments_that_do_not_fit_are_refused() -> None:
    def refuse(place: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x @ y

    def accept(place: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor | None:
        return x if place == "device" else x @ y

    def refuse_otherwise(place: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if place == "device":
            raise KeyError("sizes")
        return x @ y

    assert _misfit(refuse) is None
    assert str(_misfit(accept)).startswith("nothing was raised; the CPU raises RuntimeError: ")
    assert str(_misfit(refuse_otherwise)).startswith("KeyError: 'sizes'; the CPU raises Runtime")


def test_a_missing_kernel_refuses_nothing() -> None:
    def lack(place: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if place == "device":
            raise NotImplementedError("Could not run")
        return x @ y

    with pytest.raises(NotImplementedError, match="Could not run"):
        _misfit(lack)


@pytest.mark.parametrize("generous", ["meta", "cpu"])
def test_what_the_cpu_or_its_shapes_accept_may_be_accepted(generous: str) -> None:
    def act(place: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x if place == generous else x @ y

    with pytest.raises(Incomparable, match="does not refuse"):
        _misfit(act)


def test_misfits_change_one_argument_each() -> None:
    sample = Sample(torch.ones(2, 3), (4, [torch.ones(()), torch.ones(5)]), {"flag": True})
    found = {one.variant: one for one in changed(sample)}
    assert found["argument 0 longer"].input.shape == (2, 4)
    assert found["argument 0 with a dimension more"].input.shape == (1, 2, 3)
    assert found["argument 1 -100"].args[0] == -100
    assert found["argument 3 without dimensions"].args[1][1].shape == ()
    assert len(found) == 3 + 2 + 3
    assert all(one.kwargs == {"flag": True} for one in found.values())


# An operator of which the CPU has no kernel.
LACKING = partial(torch.ops.aten.cudnn_affine_grid_generator, N=1, C=1, H=1, W=1)


def test_a_sample_that_the_cpu_refuses_says_nothing(dev: Device) -> None:
    with pytest.raises(Unsupported, match="nothing to compare with: NotImplementedError: Could"):
        Forward(Planted(operator("sinh"), op=LACKING))(dev, torch.float32)


def test_an_error_of_the_backend_in_a_computation_on_the_cpu_is_its_own(dev: Device) -> None:
    def interfere(*args: Any) -> None:
        raise NotImplementedError("a hook of the backend")

    with pytest.raises(CheckError, match="NotImplementedError: a hook of the backend"):
        Forward(Planted(operator("sinh"), op=interfere))(dev, torch.float32)


def test_a_kernel_that_the_cpu_lacks_is_no_refusal(dev: Device) -> None:
    topic = Forward(Planted(operator("sinh"), op=LACKING))
    with pytest.raises(Incomparable, match="NotImplementedError: Could not run"):
        topic.judge(dev, Sample(torch.ones(2), refused=True))


@pytest.mark.parametrize("accelerator", [False, True])
def test_an_error_that_the_cpu_does_not_raise_is_not_asked_of_any_device(
    accelerator: bool,
) -> None:
    device = mock.Mock(is_accelerator=accelerator)
    sample = Sample(torch.ones(2), error=(ValueError, "what the database says"))
    with pytest.raises(Incomparable, match="nothing was raised; expected ValueError"):
        Error(operator("sinh")).judge(device, sample)


def test_a_result_that_the_cpu_gets_wrong_is_not_asked_of_the_device(dev: Device) -> None:
    op = operator("sinh")

    def wrong(x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        return torch.sinh(x) if out is None else out

    topic = Out(Planted(op, op=wrong))
    reasons: list[str] = []
    samples = topic.samples(torch.float32, "opinfo/topic:x", 0)
    assert not list(topic._failures(dev, samples, reasons))
    assert len(reasons) == sum(sample.known is not None for sample in samples)
    assert {reason[:27] for reason in reasons} == {"the CPU itself is wrong: ou"}


def test_what_the_cpu_gets_wrong_for_some_strides_is_not_asked_of_the_device(dev: Device) -> None:
    cpus = Planted(operator("sinh"), op=as_contiguous)
    topic = broken(cpus, torch.sinh, Noncontiguous)
    reasons: list[str] = []
    samples = topic.samples(torch.float32, "opinfo/topic:x", 0)
    assert not list(topic._failures(dev, samples, reasons))
    assert reasons
    assert all(reason.startswith("the CPU itself is wrong: ") for reason in reasons)


HALF = torch.bfloat16


def test_a_dtype_that_is_asked_for_is_asked_for_in_double_precision() -> None:
    sample = Sample(1.0, (torch.float16, 2), {"dtype": HALF, "dim": 0})
    wide = truth.in_double(sample)
    assert wide.args == (torch.float64, 2)
    assert wide.kwargs == {"dtype": torch.float64, "dim": 0}


def test_every_layout_keeps_the_values_and_changes_the_memory() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    for change in (layouts.gaps, layouts.transposed, layouts.offset):
        changed = change(tensor)
        assert torch.equal(changed, tensor)
        assert (changed.stride(), changed.storage_offset()) != (tensor.stride(), 0)
    assert layouts.expanded(tensor).stride() == (0, 1)
    assert torch.equal(layouts.expanded(tensor)[1], tensor[0])


def test_randomness_is_seen_through_helpers_that_restore_the_seed() -> None:
    def drawn(name: str, **wanted: Any) -> bool:
        op = operator(name)
        samples = op.sample_inputs("cpu", torch.float32)
        sample = next(s for s in samples if wanted.items() <= s.kwargs.items())
        return randomness.drawn(lambda: op.op(sample.input, *sample.args, **sample.kwargs))

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


@pytest.mark.parametrize("place", [slice(None), slice(2, 8, 2)], ids=["whole", "view"])
def test_a_sample_that_is_copied_for_the_cpu_keeps_its_own_values(place: slice) -> None:
    value = torch.arange(8.0)[place]
    copied = moved(Sample(value, (value,), {"other": [value]}), CPU)
    copied.input.zero_()
    assert copied.args[0] is copied.kwargs["other"][0] is copied.input
    assert value.sum() > 0


def test_lazy_bits_and_identity_survive_the_move() -> None:
    value = torch.ones(2, dtype=torch.complex64)
    transfer = Transfer(CPU)
    first, again, conj = transfer.move([value, value, value.conj()])
    assert first is again
    assert conj.is_conj()
    assert transfer.move({"device": "cpu", "dim": 1}) == {"device": CPU, "dim": 1}
    assert transfer.move(torch.Generator().manual_seed(5)).initial_seed() == 5


@pytest.mark.skipif(
    not hasattr(torch.nn, "LinearCrossEntropyOptions"),
    reason="torch before 2.13 has none",
)
def test_what_torch_chooses_by_the_device_is_chosen_before() -> None:
    chosen = policy.settled(torch.nn.LinearCrossEntropyOptions(batch_chunk_size=4))
    assert (chosen.acc_policy, chosen.batch_chunk_size) == ("compact", 4)
    explicit = torch.nn.LinearCrossEntropyOptions(acc_policy="accurate")
    assert policy.settled(explicit) is explicit
    assert policy.settled("auto") == "auto"


def test_ids_are_unique_over_all_operators() -> None:
    names = [policy.case_name(op) for op in OPERATORS]
    assert len(names) == len(set(names))


def test_every_name_in_the_policy_is_an_operator() -> None:
    known = {op.name for op in OPERATORS}
    listed = policy.UNINITIALISED | policy.RANDOM | policy.MUTATES_ARGUMENTS | policy.SPARSE
    listed |= policy.BEARS_REPETITION | policy.CPU_OVERRUNS_OUT | set(policy.SLOW)
    assert listed | policy.HOST_ARGUMENTS <= known


REPEATED: list[tuple[type[Topic], str]] = [
    (Forward, "sinh"),
    (Forward, "as_strided"),
    (Forward, "nn.functional.conv2d"),
    (Forward, "cat"),
    (Out, "aminmax"),
    (InPlace, "sinh"),
    (Noncontiguous, "nn.functional.linear"),
    (MathBits, "mul"),
    (Gradient, "nn.functional.linear"),
    (GradGrad, "sin"),
    (Foreach, "_foreach_add"),
    (ForeachInPlace, "_foreach_zero"),
]

# Runs each piece of code on its own and tells what it wrote, or how it failed.
ALONE = """
import contextlib, io, json, sys, traceback
def outcome(code):
    with contextlib.redirect_stdout(io.StringIO()) as written:
        try:
            exec(code, {})
        except Exception:
            return traceback.format_exc()
    return written.getvalue()
json.dump([outcome(code) for code in json.load(sys.stdin)], sys.stdout)
"""


def repeated(kind: type[Topic], name: str) -> str:
    """Code that repeats the first sample of an operator on the CPU."""
    dtype = torch.complex64 if kind is MathBits else torch.float32
    topic = kind(operator(name))
    return topic.repro(dtype, "opinfo/topic:x", Descriptor(name="cpu", device_type="cpu"), 0, 0)


def wrong_argument() -> str:
    """Code that repeats a call that is refused."""
    op = operator("diagonal")
    sample = Sample.of(next(iter(op.error_inputs_func(op, "cpu"))).sample_input)
    return repro.snippet(op, sample, Descriptor(name="cpu", device_type="cpu"), Error.recipe)


@pytest.fixture(scope="module")
def alone() -> list[str]:
    """What the repros of all topics write, and the one of a wrong argument, with torch alone."""
    codes = [*(repeated(kind, name) for kind, name in REPEATED), wrong_argument()]
    done = subprocess.run(
        [sys.executable, "-c", ALONE], input=json.dumps(codes), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    outputs: list[str] = json.loads(done.stdout)
    return outputs


@pytest.mark.parametrize("index", range(len(REPEATED)), ids=lambda i: REPEATED[i][1])
def test_a_repro_runs_with_torch_alone(alone: list[str], index: int) -> None:
    assert alone[index].startswith("device:"), alone[index]


def test_a_repro_of_a_wrong_argument_prints_the_exception(alone: list[str]) -> None:
    assert "Error(" in alone[-1]


def test_a_repro_of_every_operator_is_a_program() -> None:
    """With types of 8 bits, for which torch has no minimum; and with numbers, lists and enums."""
    target = Descriptor(name="cpu", device_type="cpu")
    for topic in map(Noncontiguous, OPERATORS):
        narrow = [d for d in topic.dtypes() if d.is_floating_point and d.itemsize == 1]
        for dtype in [*narrow, *list(topic.dtypes())[:1]]:
            for sample in topic.samples(dtype, "opinfo/topic:x", 0)[: 3 if dtype in narrow else 1]:
                code = repro.snippet(topic.op, sample, target, topic.recipe)
                compile(code, topic.op.name, "exec")


def judged(name: str, dtype: torch.dtype, message: str | None) -> str:
    """What becomes of a device that refuses gaps, in the meta device's words or in others."""

    def refuse(self: Topic, dev: Any, sample: Sample) -> None:
        if message is None:
            moved(sample, META).call(self.op.op)
        raise RuntimeError(message)

    topic = Noncontiguous(operator(name))
    sample = next(s for s in topic.samples(dtype, "opinfo/topic:x", 0) if s.variant == "gaps")
    with mock.patch.object(Topic, "judge", refuse):
        try:
            topic.judge(mock.Mock(), sample)
        except (Incomparable, RuntimeError) as error:
            return type(error).__name__
    return "nothing"


def test_strides_that_pytorchs_function_of_shapes_refuses_are_not_asked_for() -> None:
    assert judged("torch._scaled_mm", torch.float8_e4m3fn, None) == "Incomparable"
    assert judged("torch._scaled_mm", torch.float8_e4m3fn, "no kernel") == "RuntimeError"
    # Here the function of shapes refuses the dense sample, too: the device is what lacks something.
    assert judged("repeat_interleave", torch.float32, None) == "RuntimeError"


class WithElsewhere(Forward):
    """As if the database had a sample more."""

    elsewhere: Any = None

    def __init__(self, op: Any) -> None:
        def made(op: Any, device: str, *options: Any) -> Any:
            yield from original(op, device, *options)
            yield SampleInput(torch.ones(2), args=(self.elsewhere,))

        original = op.sample_inputs_func
        super().__init__(Planted(op, sample_inputs_func=made))


@pytest.mark.parametrize(
    "argument", ["cuda", torch.device("cuda:0"), torch.empty(1, device="meta")]
)
def test_a_sample_of_another_device_is_left_out(argument: Any) -> None:
    """Where PyTorch has CUDA, the database gives some results to it."""
    topic = WithElsewhere(operator("to"))
    count = len(list(Forward(operator("to")).database_samples(torch.float32)))
    topic.elsewhere = "cpu"
    assert len(list(topic.database_samples(torch.float32))) == count + 1
    topic.elsewhere = argument
    assert len(list(topic.database_samples(torch.float32))) == count


@pytest.mark.parametrize("argument", ["cpu", "mean", torch.device("cpu"), torch.ones(1), 3, None])
def test_other_arguments_stay(argument: Any) -> None:
    assert not policy.is_elsewhere(argument)
