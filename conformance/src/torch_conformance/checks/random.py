# SPDX-License-Identifier: BSD-3-Clause
"""Random operators in depth: reproducibility, positions, bounds, resolution and distributions.

The chapter `generator` asks whether seeds, states and generators are honoured. This one asks if the
numbers are the same everywhere, and good. Statistical limits lie where a right generator fails for
one seed in about a million; the seeds are fixed, so a check that passes passes always.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, check, raised
from torch_conformance.checks.generator import DRAW_NEEDS, DRAWS, IMPLICIT, default_generator

FLOATING = ("float16", "bfloat16", "float32", "float64")
_ALL = {**DRAWS, **IMPLICIT}
_ROOT = str(Path(__file__).resolve().parents[2])

#: Draws large enough for a kernel to divide them among threads, blocks or calls.
_LARGE: dict[str, Callable[[torch.device], Tensor]] = {
    "rand": lambda d: torch.rand(100_003, device=d),
    "randn": lambda d: torch.randn(100_003, device=d),
    "randn_float64": lambda d: torch.randn(50_001, device=d, dtype=torch.float64),
    "randint": lambda d: torch.randint(0, 2**40, (100_003,), device=d),
    "randperm": lambda d: torch.randperm(50_001, device=d),
    "bernoulli": lambda d: torch.empty(100_003, device=d).bernoulli_(0.3),
    "exponential": lambda d: torch.empty(100_003, device=d).exponential_(),
    "dropout": lambda d: functional.dropout(torch.ones(100_003, device=d), 0.5),
    "multinomial": lambda d: torch.multinomial(torch.ones(100, device=d), 20_001, True),
}

_LARGE_NEEDS = {"randn_float64": "float64"}


def _generator(dev: Device, seed: int, index: int | None = None) -> torch.Generator:
    return torch.Generator(device=dev.device(index)).manual_seed(seed)


def _same(first: Tensor, second: Tensor) -> bool:
    return torch.equal(first.cpu(), second.cpu())


# ---- the same numbers everywhere ---------------------------------------------------------------


def digests(device: torch.device) -> dict[str, str]:
    """A digest of what every random operator draws after the same seed."""
    drawn = {}
    for name, draw in _ALL.items():
        torch.manual_seed(2024)
        drawn[name] = _digest(draw(device, None))
    for name, draw_large in _LARGE.items():
        torch.manual_seed(2024)
        drawn[f"{name}, large"] = _digest(draw_large(device))
    return drawn


def _digest(values: Tensor) -> str:
    return hashlib.sha256(values.cpu().contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


_PROGRAM = """
import json, torch
from torch_conformance.checks.random import digests
print("digests:" + json.dumps(digests(torch.device({device!r}))))
"""


@check(
    "random/process",
    "RAND-001",
    needs=("generator", *DRAW_NEEDS.values()),
    cases=("1_thread", "3_threads"),
)
def another_process_draws_the_same_bits(dev: Device, case: str) -> None:
    """Every random operator draws the same bits in a fresh process with any number of threads."""
    paths = [_ROOT, os.environ.get("PYTHONPATH", "")]
    env = {"OMP_NUM_THREADS": case[0], "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = dev.python(_PROGRAM.format(device=str(dev.device())), env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    theirs = json.loads(done.stdout.rpartition("digests:")[2])
    ours = digests(dev.device())
    assert [name for name in ours if theirs[name] != ours[name]] == []


@check(
    "random/threads", "RAND-001", needs=("generator",), cases=tuple(_LARGE), case_needs=_LARGE_NEEDS
)
def the_thread_count_does_not_matter(dev: Device, case: str) -> None:
    """torch.set_num_threads changes nothing in what is drawn."""
    threads = torch.get_num_threads()
    drawn = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            torch.manual_seed(6)
            drawn.append(_LARGE[case](dev.device()).cpu())
    finally:
        torch.set_num_threads(threads)
    dev.assert_equal(drawn[1], drawn[0])


@check(
    "random/stream",
    "RAND-002",
    needs=("generator", "streams"),
    cases=tuple(_ALL),
    case_needs=DRAW_NEEDS,
)
def the_stream_does_not_matter(dev: Device, case: str) -> None:
    """The same seed gives the same numbers on a side stream, and later draws go on from there."""
    torch.manual_seed(7)
    expected = [_ALL[case](dev.device(), None).cpu() for _ in range(2)]
    torch.manual_seed(7)
    with dev.stream() as side:
        first = _ALL[case](dev.device(), None)
    side.synchronize()
    second = _ALL[case](dev.device(), None)
    dev.assert_equal(first, expected[0])
    dev.assert_equal(second, expected[1])


@check("random/late_stream", "RAND-002", needs=("generator", "streams", "delay"))
def the_order_of_calls_decides_not_that_of_execution(dev: Device) -> None:
    """Of draws on two streams the one called first has the first numbers, however late it is."""
    torch.manual_seed(8)
    expected = [torch.rand(1000, device=dev.device()).cpu() for _ in range(3)]
    late, other = dev.stream(), dev.stream()
    torch.manual_seed(8)
    with late:
        dev.delay(60)
        first = torch.rand(1000, device=dev.device())
    with other:
        second = torch.rand(1000, device=dev.device())
    third = torch.rand(1000, device=dev.device())
    for drawn, wanted in zip((first, second, third), expected, strict=True):
        dev.assert_equal(drawn, wanted)


@check("random/queued_seed", "RAND-002", needs=("generator", "streams", "delay"))
def seeding_does_not_reach_queued_draws(dev: Device) -> None:
    """A draw that is queued but has not run keeps the numbers of its seed."""
    torch.manual_seed(9)
    expected = torch.randn(1000, device=dev.device()).cpu()
    torch.manual_seed(9)
    dev.delay(60)
    drawn = torch.randn(1000, device=dev.device())
    torch.manual_seed(10)
    dev.assert_equal(drawn, expected)


@check(
    "random/private", "RAND-003", needs=("generator",), cases=tuple(DRAWS), case_needs=DRAW_NEEDS
)
def the_default_generator_leaves_a_private_one_alone(dev: Device, case: str) -> None:
    """Draws and seeds of the default generator do not change what a private generator draws."""
    private, undisturbed = _generator(dev, 4), _generator(dev, 4)
    expected = [DRAWS[case](dev.device(), undisturbed).cpu() for _ in range(2)]
    first = DRAWS[case](dev.device(), private).cpu()
    torch.manual_seed(99)
    DRAWS[case](dev.device(), None)
    state = private.get_state()
    torch.rand(5, device=dev.device())
    assert torch.equal(private.get_state(), state)
    dev.assert_equal(DRAWS[case](dev.device(), private), expected[1])
    dev.assert_equal(first, expected[0])


@check("random/fork_devices", "GEN-011", needs=("generator", "multi_device"))
def fork_rng_isolates_every_device_named(dev: Device) -> None:
    """fork_rng(devices=[0, 1]) restores both devices and the CPU, after an error too."""
    torch.manual_seed(17)
    states = [default_generator(dev, i).get_state() for i in (0, 1)]
    cpu = torch.get_rng_state()

    def work() -> None:
        with torch.random.fork_rng(devices=[0, 1], device_type=dev.type):
            torch.manual_seed(18)
            for index in (0, 1):
                torch.rand(50, device=dev.device(index))
            torch.rand(3)
            raise KeyError

    assert isinstance(raised(work), KeyError)
    for index, state in enumerate(states):
        assert torch.equal(default_generator(dev, index).get_state(), state)
    assert torch.equal(torch.get_rng_state(), cpu)


# ---- the position in the sequence --------------------------------------------------------------


@check("random/advance", "RAND-004", needs=("generator",), cases=tuple(_ALL), case_needs=DRAW_NEEDS)
def every_draw_advances_the_state_alike(dev: Device, case: str) -> None:
    """A draw moves the state, by an amount that only its arguments decide."""
    torch.manual_seed(31)
    generator = default_generator(dev)
    states = [generator.get_state()]
    for _ in range(2):
        _ALL[case](dev.device(), None)
        states.append(generator.get_state())
    assert not torch.equal(states[0], states[1])
    assert not torch.equal(states[1], states[2])
    torch.manual_seed(31)
    _ALL[case](dev.device(), None)
    assert torch.equal(generator.get_state(), states[1])


@check(
    "random/offset",
    "RAND-004",
    needs=("generator", "generator_offset"),
    cases=("rand", "randn", "randn_float64", "randint", "bernoulli", "exponential", "dropout"),
    case_needs=_LARGE_NEEDS,
)
def offsets_grow_by_a_fixed_amount(dev: Device, case: str) -> None:
    """The offset grows by the same multiple of four for the same draw, wherever it starts."""
    generator = default_generator(dev)
    torch.manual_seed(32)
    offsets = [generator.get_offset()]
    for _ in range(3):
        _LARGE[case](dev.device())
        offsets.append(generator.get_offset())
    steps = {after - before for before, after in pairwise(offsets)}
    assert len(steps) == 1, f"offsets {offsets}"
    assert steps.pop() % 4 == 0


_EMPTY: dict[str, Callable[[torch.device], Any]] = {
    "rand": lambda d: torch.rand(0, device=d),
    "randn": lambda d: torch.randn(3, 0, device=d),
    "randint": lambda d: torch.randint(0, 9, (0,), device=d),
    "uniform": lambda d: torch.empty(0, device=d).uniform_(),
    "normal": lambda d: torch.empty(0, device=d).normal_(),
    "normal_tensors": lambda d: torch.normal(torch.empty(0, device=d), torch.empty(0, device=d)),
    "exponential": lambda d: torch.empty(0, device=d).exponential_(),
    "bernoulli": lambda d: torch.bernoulli(torch.empty(0, device=d)),
    "bernoulli_inplace": lambda d: torch.empty(0, device=d).bernoulli_(0.5),
    "random": lambda d: torch.empty(0, device=d).random_(0, 9),
    "randperm": lambda d: torch.randperm(0, device=d),
    "dropout": lambda d: functional.dropout(torch.empty(0, 4, device=d), 0.5),
    "rand_like": lambda d: torch.rand_like(torch.empty(0, device=d)),
    "poisson": lambda d: torch.poisson(torch.empty(0, device=d)),
}


@check("random/empty", "RAND-005", needs=("generator",), cases=tuple(_EMPTY))
def drawing_nothing_changes_nothing(dev: Device, case: str) -> None:
    """A draw of no elements does not advance the state."""
    torch.manual_seed(41)
    before = default_generator(dev).get_state()
    _EMPTY[case](dev.device())
    assert torch.equal(default_generator(dev).get_state(), before)


@check("random/overlap", "RAND-006", needs=("generator",))
def draws_of_any_size_never_overlap(dev: Device) -> None:
    """63 random bits at a time, no value returns in a row of draws of awkward sizes."""
    torch.manual_seed(42)
    drawn = [
        torch.empty(n, dtype=torch.int64, device=dev.device()).random_().cpu()
        for n in (1, 2, 3, 4, 5, 7, 255, 256, 257, 1023, 4097, 30_001, 1, 30_001)
    ]
    values = torch.cat(drawn)
    assert values.unique().numel() == values.numel(), "numbers are drawn twice"


_LONG = 400_000
_LONG_DRAWS: dict[str, Callable[..., Tensor]] = {"rand": torch.rand, "randn": torch.randn}


@check("random/large:int64", "RAND-006", needs=("generator",))
def a_large_tensor_of_integers_does_not_repeat_itself(dev: Device) -> None:
    """400,000 numbers of 63 random bits are all different."""
    torch.manual_seed(43)
    values = torch.empty(_LONG, dtype=torch.int64, device=dev.device()).random_().cpu()
    assert values.unique().numel() == _LONG


@check("random/large", "RAND-006", needs=("generator",), cases=_LONG_DRAWS)
def a_large_tensor_does_not_repeat_itself(dev: Device, case: str) -> None:
    """In 400,000 numbers no stretch returns at a distance by which kernels divide their work."""
    torch.manual_seed(43)
    values = _LONG_DRAWS[case](_LONG, device=dev.device()).cpu()
    for distance in (1, 4, 32, 128, 256, 1024, 4096, 8192, 65536, 131072, 262144, 100_000):
        equal = int((values[distance:] == values[:-distance]).sum())
        assert equal < 20, f"{equal} numbers return at distance {distance}"


# ---- bounds and resolution ---------------------------------------------------------------------

_N = 200_000
_RANGES = {"unit": (0.0, 1.0), "mixed": (-3.0, 5.0), "one_two": (1.0, 2.0), "narrow": (0.5, 0.75)}


def _drawn(dev: Device, dtype: torch.dtype, fill: Callable[[Tensor], Tensor]) -> Tensor:
    """A large tensor of the dtype after `fill`, on the CPU, in float64."""
    dev.require(*{str(dtype).removeprefix("torch.")} & {"float16", "bfloat16", "float64"})
    torch.manual_seed(51)
    values = fill(torch.empty(_N, dtype=dtype, device=dev.device()))
    assert values.dtype == dtype
    return values.cpu().double()


@check("random/uniform", "RAND-007", needs=("generator",), cases=tuple(_RANGES), dtypes=FLOATING)
def uniform_never_reaches_its_upper_bound(dev: Device, case: str, dtype: torch.dtype) -> None:
    """uniform_(low, high) lies in [low, high) in every data type, and comes near both ends."""
    low, high = _RANGES[case]
    values = _drawn(dev, dtype, lambda x: x.uniform_(low, high))
    assert float(values.min()) >= low
    assert float(values.max()) < high
    near = (high - low) * 1e-3 + 2 * torch.finfo(dtype).eps * max(abs(low), abs(high))
    assert float(values.min()) < low + near
    assert float(values.max()) > high - near


@check(
    "random/exponential",
    "RAND-007",
    needs=("generator",),
    dtypes=("bfloat16", "float32", "float64"),
)
def exponential_is_never_zero_nor_infinite(dev: Device, dtype: torch.dtype) -> None:
    """exponential_ is positive and finite, for small and large rates."""
    for rate in (1e-3, 1.0, 1e3):
        values = _drawn(dev, dtype, lambda x: x.exponential_(rate))  # noqa: B023 - called at once
        assert float(values.min()) > 0.0
        assert bool(values.isfinite().all())


@check("random/positive:geometric", "RAND-007", needs=("generator",))
def geometric_numbers_are_whole_and_positive(dev: Device) -> None:
    """geometric_ gives finite whole numbers from 1."""
    values = _drawn(dev, torch.float32, lambda x: x.geometric_(0.2))
    assert bool((values == values.floor()).all())
    assert float(values.min()) == 1.0
    assert bool(values.isfinite().all())


@check("random/positive:log_normal", "RAND-007", needs=("generator",))
def log_normal_numbers_are_positive(dev: Device) -> None:
    """log_normal_ gives finite positive numbers."""
    values = _drawn(dev, torch.float32, lambda x: x.log_normal_())
    assert float(values.min()) > 0.0
    assert bool(values.isfinite().all())


@check("random/finite", "RAND-007", needs=("generator",), dtypes=FLOATING)
def normal_numbers_are_finite(dev: Device, dtype: torch.dtype) -> None:
    """normal_ never meets the logarithm of zero, and its tails reach beyond four deviations."""
    values = _drawn(dev, dtype, lambda x: x.normal_())
    assert bool(values.isfinite().all())
    assert 3.5 < float(values.abs().max()) < 8.0


_BOUNDS = {
    "one": (0, 1),
    "two": (-1, 1),
    "three": (0, 3),
    "byte": (-100, 156),
    "beyond_int32": (2**31 - 2, 2**31 + 2),
    "negative_wide": (-(2**33), 2**33),
    "widest": (-(2**62), 2**62),
}


@check("random/integers", "RAND-008", needs=("generator",), cases=tuple(_BOUNDS))
def integers_cover_their_range_and_never_leave_it(dev: Device, case: str) -> None:
    """randint(low, high) stays in [low, high), takes both ends, and has no gaps or bias."""
    low, high = _BOUNDS[case]
    torch.manual_seed(52)
    values = torch.randint(low, high, (40_000,), device=dev.device()).cpu()
    assert int(values.min()) >= low
    assert int(values.max()) < high
    span = high - low
    bins = min(span, 64)
    places = ((values - low) // (span // bins)).clamp(max=bins - 1)
    if span <= 256:
        assert int(values.min()) == low and int(values.max()) == high - 1
    _assert_chi_square(torch.bincount(places, minlength=bins), torch.ones(bins))


@check("random/integer_bias", "RAND-008", needs=("generator",))
def wide_ranges_are_not_biased(dev: Device) -> None:
    """randint over three quarters of 2**32 is even: no remainder of 32 random bits is taken."""
    torch.manual_seed(53)
    values = torch.randint(0, 3 * 2**30, (30_000,), device=dev.device()).cpu()
    _assert_chi_square(torch.bincount(values // 2**30, minlength=3), torch.ones(3))


_FULL = {
    "uint8": 255,
    "int8": 127,
    "int16": 2**15 - 1,
    "int32": 2**31 - 1,
    "int64": 2**63 - 1,
    "float16": 2**11,
    "bfloat16": 2**8,
    "float32": 2**24,
    "float64": 2**53,
    "bool": 1,
}


@check("random/full_range", "RAND-008", needs=("generator",), dtypes=tuple(_FULL))
def random_without_bounds_fills_the_type(dev: Device, dtype: torch.dtype) -> None:
    """random_() draws from 0 to the largest integer that the type holds exactly."""
    name = str(dtype).removeprefix("torch.")
    dev.require(*{name} & {"float16", "bfloat16", "float64"})
    torch.manual_seed(54)
    values = torch.empty(20_000, dtype=dtype, device=dev.device()).random_().cpu()
    largest = _FULL[name]
    assert int(values.min()) >= 0
    assert int(values.max()) <= largest
    assert int(values.max()) >= largest * 0.99
    assert int(values.min()) <= largest * 0.01


@check("random/resolution", "RAND-009", needs=("generator",), dtypes=FLOATING)
def uniform_numbers_use_the_digits_of_their_type(dev: Device, dtype: torch.dtype) -> None:
    """rand takes about as many values as its type resolves: at least 2**23 of them in float32."""
    values = _drawn(dev, dtype, lambda x: x.uniform_())
    bits = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 50}
    grid = 2.0 ** bits[str(dtype).removeprefix("torch.")]
    expected = grid * -math.expm1(-_N / grid)  # distinct values if there are `grid` of them
    assert values.unique().numel() > expected - 6 * math.sqrt(expected) * 0.2 - 1


_REFUSED: dict[str, Callable[[torch.device], Any]] = {
    "uniform_reversed": lambda d: torch.empty(2, device=d).uniform_(2, 1),
    "normal_deviation": lambda d: torch.empty(2, device=d).normal_(0, -1),
    "bernoulli_above": lambda d: torch.empty(2, device=d).bernoulli_(1.5),
    "bernoulli_below": lambda d: torch.empty(2, device=d).bernoulli_(-0.5),
    "exponential_rate": lambda d: torch.empty(2, device=d).exponential_(0.0),
    "geometric_chance": lambda d: torch.empty(2, device=d).geometric_(1.5),
    "log_normal_deviation": lambda d: torch.empty(2, device=d).log_normal_(0, -1),
    "cauchy_sigma": lambda d: torch.empty(2, device=d).cauchy_(0, -1),
    "randint_empty": lambda d: torch.randint(3, 3, (2,), device=d),
    "random_beyond": lambda d: torch.empty(2, dtype=torch.uint8, device=d).random_(0, 300),
    "randperm_negative": lambda d: torch.randperm(-1, device=d),
    "multinomial_many": lambda d: torch.multinomial(torch.ones(2, device=d), 3),
    "multinomial_shape": lambda d: torch.multinomial(torch.ones(2, 2, 2, device=d), 1),
    "dropout_above": lambda d: functional.dropout(torch.ones(2, device=d), 1.5),
    "normal_integers": lambda d: torch.empty(2, dtype=torch.int64, device=d).normal_(),
}


@check("random/refused", "RAND-010", needs=("generator",), cases=tuple(_REFUSED))
def meaningless_parameters_are_refused(dev: Device, case: str) -> None:
    """Parameters that name no distribution raise, and nothing is drawn."""
    torch.manual_seed(55)
    before = default_generator(dev).get_state()
    assert isinstance(
        raised(lambda: _REFUSED[case](dev.device())),
        (RuntimeError, ValueError, NotImplementedError),
    )
    assert torch.equal(default_generator(dev).get_state(), before)


# ---- distributions -----------------------------------------------------------------------------

_MANY = 40_000


def _assert_kolmogorov(values: Tensor, cdf: Callable[[Tensor], Tensor], slack: float) -> None:
    """The largest distance of the empirical from the true distribution is one of chance."""
    __tracebackhide__ = True
    count = values.numel()
    expected = cdf(values.sort().values)
    steps = torch.arange(count + 1, dtype=torch.float64) / count
    distance = max(
        float((steps[1:] - expected).abs().max()), float((expected - steps[:-1]).abs().max())
    )
    limit = 2.6 / math.sqrt(count) + slack
    assert distance < limit, f"Kolmogorov-Smirnov distance {distance:.4f}, allowed {limit:.4f}"


def _assert_chi_square(counts: Tensor, weights: Tensor) -> None:
    """Counts of categories agree with their weights; the limit is Wilson and Hilferty's."""
    __tracebackhide__ = True
    expected = weights.double() / weights.double().sum() * counts.sum()
    freedom = max(int((expected > 0).sum()) - 1, 0)
    assert int(counts[expected == 0].sum()) == 0, "a category of weight zero was drawn"
    if freedom == 0:
        return
    used = expected > 0
    statistic = float(((counts - expected)[used] ** 2 / expected[used]).sum())
    spread = 2 / (9 * freedom)
    limit = freedom * (1 - spread + 4.9 * math.sqrt(spread)) ** 3
    assert statistic < limit, f"chi-square {statistic:.1f}, allowed {limit:.1f}: {counts.tolist()}"


def _normal_cdf(x: Tensor) -> Tensor:
    return torch.special.ndtr(x)


_CONTINUOUS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "uniform": (lambda x: x.uniform_(-2, 6), lambda v: (v + 2) / 8),
    "normal": (lambda x: x.normal_(1, 3), lambda v: _normal_cdf((v - 1) / 3)),
    "exponential": (lambda x: x.exponential_(0.5), lambda v: -torch.expm1(-0.5 * v)),
    "cauchy": (lambda x: x.cauchy_(1, 2), lambda v: ((v - 1) / 2).atan() / math.pi + 0.5),
    "log_normal": (lambda x: x.log_normal_(0.5, 0.8), lambda v: _normal_cdf((v.log() - 0.5) / 0.8)),
}


@check(
    "random/distribution",
    "RAND-011",
    needs=("generator",),
    cases=tuple(_CONTINUOUS),
    dtypes=FLOATING,
)
def continuous_distributions_are_the_ones_named(dev: Device, case: str, dtype: torch.dtype) -> None:
    """The Kolmogorov-Smirnov distance to the distribution is one of chance."""
    dev.require(*{str(dtype).removeprefix("torch.")} & {"float16", "bfloat16", "float64"})
    fill, cdf = _CONTINUOUS[case]
    torch.manual_seed(61)
    values = fill(torch.empty(_MANY, dtype=dtype, device=dev.device())).cpu().double()
    # Rounding to the type moves a value by up to eps of its size; densities here are below 1.
    _assert_kolmogorov(values, cdf, 1.5 * torch.finfo(dtype).eps)


def _poisson_weights(rate: float, count: int) -> Tensor:
    k = torch.arange(count, dtype=torch.float64)
    return torch.exp(k * math.log(rate) - rate - torch.lgamma(k + 1))


def _binomial_weights(trials: int, chance: float) -> Tensor:
    return torch.tensor(
        [math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]
    )


#: A draw of small whole numbers, and the weight of each; larger numbers count as the last.
_DISCRETE: dict[str, tuple[Callable[[torch.device], Tensor], Tensor]] = {
    "bernoulli": (
        lambda d: torch.empty(_MANY, device=d).bernoulli_(0.3),
        torch.tensor([0.7, 0.3]),
    ),
    "bernoulli_tensor": (
        lambda d: torch.bernoulli(torch.full((_MANY,), 0.9, device=d)),
        torch.tensor([0.1, 0.9]),
    ),
    "randint": (lambda d: torch.randint(0, 37, (_MANY,), device=d), torch.ones(37)),
    "geometric": (
        lambda d: torch.empty(_MANY, device=d).geometric_(0.3) - 1,
        torch.tensor([0.3 * 0.7**k for k in range(15)] + [0.7**15]),
    ),
    "poisson": (
        lambda d: torch.poisson(torch.full((_MANY,), 3.0, device=d)),
        torch.cat([_poisson_weights(3.0, 12), 1 - _poisson_weights(3.0, 12).sum(0, True)]),
    ),
    "poisson_large": (
        lambda d: (torch.poisson(torch.full((_MANY,), 50.0, device=d)) - 30).clamp(0, 40),
        torch.cat(
            [
                _poisson_weights(50.0, 31).sum(0, True),
                _poisson_weights(50.0, 70)[31:],
                1 - _poisson_weights(50.0, 70).sum(0, True),
            ]
        ),
    ),
    "binomial": (
        lambda d: torch.binomial(
            torch.full((_MANY,), 8.0, device=d), torch.full((_MANY,), 0.4, device=d)
        ),
        _binomial_weights(8, 0.4),
    ),
    "multinomial": (
        lambda d: torch.multinomial(torch.tensor([0.0, 1.0, 5.0, 2.0, 0.0], device=d), _MANY, True),
        torch.tensor([0.0, 1.0, 5.0, 2.0, 0.0]),
    ),
    "multinomial_wide": (
        lambda d: torch.multinomial(torch.arange(300.0, device=d), _MANY, True) // 30,
        torch.arange(300.0).view(10, 30).sum(1),
    ),
    "multinomial_first": (
        lambda d: torch.multinomial(torch.tensor([1.0, 2.0, 5.0], device=d).expand(_MANY, 3), 2)[
            :, 0
        ],
        torch.tensor([1.0, 2.0, 5.0]),
    ),
    "randperm_first": (
        lambda d: torch.stack([torch.randperm(6, device=d)[0] for _ in range(1500)]),
        torch.ones(6),
    ),
    "randperm_shift": (
        lambda d: (torch.randperm(20_000, device=d) - torch.arange(20_000, device=d)) % 16,
        torch.ones(16),
    ),
}


@check("random/counts", "RAND-011", needs=("generator",), cases=tuple(_DISCRETE))
def discrete_distributions_are_the_ones_named(dev: Device, case: str) -> None:
    """The chi-square statistic of the counts is one of chance."""
    draw, weights = _DISCRETE[case]
    torch.manual_seed(62)
    values = draw(dev.device()).cpu().long().clamp(max=len(weights) - 1)
    assert int(values.min()) >= 0
    _assert_chi_square(torch.bincount(values, minlength=len(weights)), weights)


#: A draw, and its distribution function, which maps what is drawn evenly to [0, 1].
_DRAWN_EVENLY: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor], Tensor]]] = {
    "rand": (torch.rand, lambda v: v),
    "randn": (torch.randn, _normal_cdf),
}


@check("random/pairs", "RAND-012", needs=("generator",), cases=_DRAWN_EVENLY)
def pairs_of_numbers_fill_the_square(dev: Device, case: str) -> None:
    """Two numbers of one draw at any small or power-of-two distance are independent."""
    draw, cdf = _DRAWN_EVENLY[case]
    torch.manual_seed(63)
    places = (cdf(draw(_MANY, device=dev.device()).cpu()) * 8).long().clamp(0, 7)
    for distance in (1, 2, 3, 4, 8, 32, 256, 1024, 16384):
        pairs = places[distance:] * 8 + places[:-distance]
        _assert_chi_square(torch.bincount(pairs, minlength=64), torch.ones(64))


def _assert_independent(draws: list[Tensor]) -> None:
    """Fail if draws of normal numbers are correlated more than by chance."""
    __tracebackhide__ = True
    correlation = torch.corrcoef(torch.stack(draws)) - torch.eye(len(draws))
    assert float(correlation.abs().max()) < 5.5 / math.sqrt(draws[0].numel())


@check("random/seeds:neighbours", "RAND-012", needs=("generator",))
def sequences_of_different_seeds_are_independent(dev: Device) -> None:
    """Seeds n and n + 1 give numbers that are not correlated."""
    drawn = []
    for seed in range(1000, 1006):
        torch.manual_seed(seed)
        drawn.append(torch.randn(8192, device=dev.device()).cpu())
    _assert_independent(drawn)


@check("random/seeds:after_draws", "RAND-012", needs=("generator",))
def draws_in_a_row_are_independent(dev: Device) -> None:
    """Draws in a row after one seed give numbers that are not correlated."""
    torch.manual_seed(1000)
    _assert_independent([torch.randn(8192, device=dev.device()).cpu() for _ in range(6)])


@check("random/complex", "RAND-011", needs=("generator", "complex64"))
def complex_normal_numbers_have_variance_one(dev: Device) -> None:
    """randn of a complex type has independent parts of variance one half; rand fills the square."""
    torch.manual_seed(64)
    values = torch.randn(_MANY, dtype=torch.complex64, device=dev.device()).cpu()
    for part in (values.real, values.imag):
        _assert_kolmogorov(part.double(), lambda v: _normal_cdf(v * math.sqrt(2)), 1e-6)
    product = float((values.real * values.imag).mean())
    assert abs(product) < 6 * 0.5 / math.sqrt(_MANY)


# ---- users of random numbers -------------------------------------------------------------------

_DROPOUTS: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
    "dropout1d": (lambda x: functional.dropout1d(x, 0.3), 1),
    "dropout2d": (lambda x: functional.dropout2d(x, 0.3), 2),
    "dropout3d": (lambda x: functional.dropout3d(x, 0.3), 3),
}


@check("random/channels", "RAND-013", needs=("generator",), cases=tuple(_DROPOUTS))
def channel_dropout_drops_whole_channels(dev: Device, case: str) -> None:
    """dropout1d, 2d and 3d zero whole channels at their rate and scale the others."""
    function, dims = _DROPOUTS[case]
    torch.manual_seed(71)
    out = function(torch.ones(50, 40, *[3] * dims, device=dev.device())).cpu().flatten(2)
    assert bool((out == out[:, :, :1]).all()), "a channel was dropped in part"
    kept = (out[:, :, 0] != 0).flatten()
    _assert_chi_square(torch.bincount(kept.long(), minlength=2), torch.tensor([0.3, 0.7]))
    torch.testing.assert_close(out[out != 0], torch.full_like(out[out != 0], 1 / 0.7))


@check("random/alpha_dropout", "RAND-013", needs=("generator",))
def alpha_dropout_keeps_mean_and_variance(dev: Device) -> None:
    """Alpha dropout of standard normal numbers keeps mean 0 and variance 1."""
    torch.manual_seed(72)
    x = torch.randn(_MANY, device=dev.device())
    out = functional.alpha_dropout(x, 0.4, training=True).cpu().double()
    assert abs(float(out.mean())) < 6 / math.sqrt(_MANY)
    assert abs(float(out.var()) - 1) < 0.08


@check("random/dropout_rate", "RAND-013", needs=("generator",), dtypes=FLOATING)
def dropout_keeps_its_rate_in_every_type(dev: Device, dtype: torch.dtype) -> None:
    """A small rate is honoured in float16 and bfloat16 too, and masks change from call to call."""
    dev.require(*{str(dtype).removeprefix("torch.")} & {"float16", "bfloat16", "float64"})
    torch.manual_seed(73)
    x = torch.ones(_MANY, dtype=dtype, device=dev.device())
    masks = [(functional.dropout(x, 0.02).cpu() != 0).long() for _ in range(2)]
    for mask in masks:
        _assert_chi_square(torch.bincount(mask, minlength=2), torch.tensor([0.02, 0.98]))
    assert not torch.equal(*masks)


_TORCH_DISTRIBUTIONS: dict[str, tuple[Callable[[Tensor], Any], float, float]] = {
    "normal": (lambda t: torch.distributions.Normal(t * 2, t * 3), 2.0, 3.0),
    "gamma": (lambda t: torch.distributions.Gamma(t * 3, t * 2), 1.5, math.sqrt(0.75)),
    "beta": (lambda t: torch.distributions.Beta(t * 2, t * 3), 0.4, 0.2),
    "poisson": (lambda t: torch.distributions.Poisson(t * 4), 4.0, 2.0),
    "student": (lambda t: torch.distributions.StudentT(t * 8), 0.0, math.sqrt(8 / 6)),
    "laplace": (lambda t: torch.distributions.Laplace(t, t), 1.0, math.sqrt(2)),
    "von_mises": (lambda t: torch.distributions.VonMises(t * 0, t * 4), 0.0, 0.54),
}


@check(
    "random/library",
    "RAND-014",
    needs=("generator",),
    cases=tuple(_TORCH_DISTRIBUTIONS),
    case_needs={"von_mises": "float64"},
)
def torch_distributions_sample_on_the_device(dev: Device, case: str) -> None:
    """Samples of torch.distributions are on the device, repeat with the seed, have the mean."""
    make, mean, deviation = _TORCH_DISTRIBUTIONS[case]
    distribution = make(torch.ones((), device=dev.device()))
    drawn = []
    for _ in range(2):
        torch.manual_seed(74)
        drawn.append(distribution.sample((4000,)))
    assert drawn[0].device.type == dev.type
    assert _same(*drawn)
    host = drawn[0].cpu().double()
    assert abs(float(host.mean()) - mean) < 6 * deviation / math.sqrt(4000)
    assert 0.8 * deviation < float(host.std()) < 1.2 * deviation


@check("random/reparametrised", "RAND-014", needs=("generator",), cases=("normal", "gamma", "beta"))
def samples_carry_gradients(dev: Device, case: str) -> None:
    """rsample differentiates with respect to its parameters, to the derivative of the mean."""
    t = torch.full((4000,), 3.0, device=dev.device(), requires_grad=True)
    one = torch.ones((), device=dev.device())
    torch.manual_seed(75)
    distribution: Any = {
        "normal": lambda: torch.distributions.Normal(t, one),
        "gamma": lambda: torch.distributions.Gamma(t, one),
        "beta": lambda: torch.distributions.Beta(t, one),
    }[case]()
    distribution.rsample().sum().backward()
    assert t.grad is not None
    expected = {"normal": 1.0, "gamma": 1.0, "beta": 1 / 16}[case]
    assert abs(float(t.grad.cpu().mean()) - expected) < 0.1 * expected
