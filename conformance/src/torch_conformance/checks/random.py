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

from torch_conformance.authoring.api import FULL, Device, check, noise, raised, why_ended
from torch_conformance.checks.generator import (
    DRAW_NEEDS,
    DRAWS,
    IMPLICIT,
    default_generator,
    rng_state,
)

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
    assert done.returncode == 0, why_ended(done)
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
    states = [rng_state(dev, i) for i in (0, 1)]
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
        assert torch.equal(rng_state(dev, index), state)
    assert torch.equal(torch.get_rng_state(), cpu)


# ---- the position in the sequence --------------------------------------------------------------


@check("random/advance", "RAND-004", needs=("generator",), cases=tuple(_ALL), case_needs=DRAW_NEEDS)
def every_draw_advances_the_state_alike(dev: Device, case: str) -> None:
    """A draw moves the state, by an amount that only its arguments decide."""
    torch.manual_seed(31)
    states = [rng_state(dev)]
    for _ in range(2):
        _ALL[case](dev.device(), None)
        states.append(rng_state(dev))
    assert not torch.equal(states[0], states[1])
    assert not torch.equal(states[1], states[2])
    torch.manual_seed(31)
    _ALL[case](dev.device(), None)
    assert torch.equal(rng_state(dev), states[1])


@check(
    "random/offset",
    "RAND-004",
    needs=("generator", "generator_offset"),
    cases=("rand", "randn", "randn_float64", "randint", "bernoulli", "exponential", "dropout"),
    case_needs=_LARGE_NEEDS,
)
def offsets_grow_by_a_fixed_amount(dev: Device, case: str) -> None:
    """The offset grows by the same amount for the same draw, wherever it starts."""
    generator = default_generator(dev)
    torch.manual_seed(32)
    offsets = [generator.get_offset()]
    for _ in range(3):
        _LARGE[case](dev.device())
        offsets.append(generator.get_offset())
    steps = {after - before for before, after in pairwise(offsets)}
    assert len(steps) == 1 and steps.pop() > 0, f"offsets {offsets}"


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
    before = rng_state(dev)
    _EMPTY[case](dev.device())
    assert torch.equal(rng_state(dev), before)


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


#: Numbers so fine that of a hundred thousand no two are equal by chance.
_FINE: dict[str, Callable[[int, torch.device], Tensor]] = {
    "uniform": lambda n, d: torch.rand(n, dtype=torch.float64, device=d),
    "uniform_strided": lambda n, d: torch.empty(2 * n, dtype=torch.float64, device=d)[
        ::2
    ].uniform_(),
    "normal": lambda n, d: torch.randn(n, dtype=torch.float64, device=d),
    "normal_tensors": lambda n, d: torch.normal(_filled(n, 1.0, d), _filled(n, 2.0, d)),
    "exponential": lambda n, d: torch.empty(n, dtype=torch.float64, device=d).exponential_(),
    "cauchy": lambda n, d: torch.empty(n, dtype=torch.float64, device=d).cauchy_(),
    "log_normal": lambda n, d: torch.empty(n, dtype=torch.float64, device=d).log_normal_(),
    "gamma": lambda n, d: torch._standard_gamma(_filled(n, 2.0, d)),
    "random": lambda n, d: torch.empty(n, dtype=torch.int64, device=d).random_(),
    "randint": lambda n, d: torch.randint(-(2**62), 2**62, (n,), device=d),
}
_FINE_NEEDS = {name: "float64" for name in _FINE if name not in ("random", "randint")}

#: Each with a remainder by the 2, 4, ... numbers that a generator gives at a time.
_AWKWARD = (*range(1, 36), 63, 65, 127, 129, 255, 257, 511, 513, 1023, 1025, 4095, 4097, 65_537)


def _filled(n: int, value: float, device: torch.device) -> Tensor:
    return torch.full((n,), value, dtype=torch.float64, device=device)


@check("random/unique", "RAND-006", needs=("generator",), cases=_FINE, case_needs=_FINE_NEEDS)
def no_number_is_drawn_twice(dev: Device, case: str) -> None:
    """In a row of draws of every awkward size no number of 53 or more random bits returns."""
    torch.manual_seed(44)
    values = torch.cat([_FINE[case](n, dev.device()).cpu() for n in _AWKWARD])
    assert values.unique().numel() == values.numel(), "numbers are drawn twice"


#: Numbers of 24 random bits or less.
_COARSE: dict[str, Callable[[int, torch.device], Tensor]] = {
    "uniform": lambda n, d: torch.rand(n, device=d),
    "normal": lambda n, d: torch.randn(n, device=d),
    "exponential": lambda n, d: torch.empty(n, device=d).exponential_(),
    "cauchy": lambda n, d: torch.empty(n, device=d).cauchy_(),
    "randint": lambda n, d: torch.randint(0, 2**24, (n,), device=d),
    "random_int32": lambda n, d: torch.empty(n, dtype=torch.int32, device=d).random_(),
}


@check("random/unique_pairs", "RAND-006", needs=("generator",), cases=_COARSE)
def no_pair_of_numbers_is_drawn_twice(dev: Device, case: str) -> None:
    """In a row of draws of every awkward size no two neighbours return together."""
    torch.manual_seed(45)
    values = torch.cat([_COARSE[case](n, dev.device()).cpu() for n in _AWKWARD])
    whole = values.view(torch.int32) if values.element_size() == 4 else values
    pairs = whole[1:].long() * 2**32 + (whole[:-1].long() & 0xFFFFFFFF)
    assert pairs.unique().numel() == pairs.numel(), "pairs of numbers are drawn twice"


@check("random/samplers_in_turn", "RAND-012", needs=("generator", "float64"))
def samplers_in_turn_share_no_numbers(dev: Device) -> None:
    """Uniform, exponential and Cauchy numbers drawn in turn are not made of the same bits."""
    torch.manual_seed(46)
    places = []
    for n in (1001, 2003, 3001):
        places += [
            _FINE["uniform"](n, dev.device()).cpu(),
            -torch.expm1(-_FINE["exponential"](n, dev.device()).cpu()),
            _FINE["cauchy"](n, dev.device()).cpu().atan() / math.pi + 0.5,
        ]
    drawn = torch.cat(places)
    gaps = torch.cat([drawn, 1 - drawn]).sort().values.diff()
    assert float(gaps.min()) > 1e-14, "two samplers use the same bits"


def _constant(value: float, device: torch.device) -> Tensor:
    return torch.full((20_000,), value, device=device)


#: Samplers that draw until a number is accepted; no two of their numbers are often equal.
_REJECTING: dict[str, Callable[[torch.device], Tensor]] = {
    "gamma": lambda d: torch._standard_gamma(_constant(1.5, d)),
    "gamma_below_one": lambda d: torch._standard_gamma(_constant(0.5, d)),
    "dirichlet": lambda d: torch._sample_dirichlet(_constant(2.0, d).view(-1, 2))[:, 0],
    "poisson": lambda d: torch.poisson(_constant(4e6, d)),
    "binomial": lambda d: torch.binomial(_constant(1.6e7, d), _constant(0.5, d)),
}


@check("random/rejection", "RAND-012", needs=("generator",), cases=_REJECTING)
def rejected_numbers_are_not_drawn_again(dev: Device, case: str) -> None:
    """Samplers that reject numbers leave the sequence behind the last that they may have used."""
    torch.manual_seed(47)
    drawn = [_REJECTING[case](dev.device()).cpu().double() for _ in range(4)]
    for first in range(4):
        for second in range(first):
            equal = int((drawn[first] == drawn[second]).sum())
            assert equal < 40, f"{equal} numbers of draw {second} return in draw {first}"
    _assert_independent(drawn)


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


#: The binary places of uniform numbers, which hold one random bit each in every known generator.
_PLACES = {"float32": 23, "float64": 52}


@check("random/bits:uniform", "RAND-009", needs=("generator",), dtypes=_PLACES)
def every_bit_of_uniform_numbers_is_random(dev: Device, dtype: torch.dtype) -> None:
    """Each of the first 23 or 52 binary places of rand is 1 for half of the numbers."""
    values = _drawn(dev, dtype, lambda x: x.uniform_())
    places = _PLACES[str(dtype).removeprefix("torch.")]
    _assert_balanced((values * 2.0**places).long(), places)


#: Samplers whose numbers have digits down to the last.
_DIGITS: dict[str, Callable[[Tensor], Tensor]] = {
    "normal": lambda x: x.normal_(),
    "exponential": lambda x: x.exponential_(),
    "cauchy": lambda x: x.cauchy_(),
    "log_normal": lambda x: x.log_normal_(),
    "gamma": lambda x: torch._standard_gamma(x.fill_(2.0)),
}


@check("random/digits", "RAND-009", needs=("generator", "float64"), cases=_DIGITS)
def samplers_compute_in_float64(dev: Device, case: str) -> None:
    """Each of bits 4 to 20 of a float64 number is 1 for half of the numbers."""
    values = _drawn(dev, torch.float64, _DIGITS[case])
    # The lowest bits are not even: results of a division or a logarithm are rounded.
    _assert_balanced(values.view(torch.int64) >> 4, 17)


def _assert_balanced(words: Tensor, bits: int) -> None:
    """Each of the lowest bits is set as often as by chance."""
    __tracebackhide__ = True
    rates = torch.stack([(words >> bit & 1).double().mean() for bit in range(bits)])
    allowed = 5.5 * 0.5 / math.sqrt(words.numel())
    apart = [f"{bit}: {rate:.4f}" for bit, rate in enumerate(rates) if abs(rate - 0.5) > allowed]
    assert not apart, f"bits that are not 1 for half of the numbers, {', '.join(apart)}"


_SURE = 1 << 20
#: A draw of which the result is certain, and that result: a number, or what the draw is made of.
_CERTAIN: dict[str, tuple[Callable[[torch.device], Tensor], float]] = {
    "bernoulli_never": (lambda d: torch.empty(_SURE, device=d).bernoulli_(0.0), 0.0),
    "bernoulli_always": (lambda d: torch.empty(_SURE, device=d).bernoulli_(1.0), 1.0),
    "bernoulli_tensor_never": (lambda d: torch.bernoulli(torch.zeros(_SURE, device=d)), 0.0),
    "bernoulli_tensor_always": (lambda d: torch.bernoulli(torch.ones(_SURE, device=d)), 1.0),
    "bernoulli_into_integers": (
        lambda d: torch.empty(_SURE, dtype=torch.int64, device=d).bernoulli_(
            torch.ones(_SURE, device=d)
        ),
        1.0,
    ),
    "dropout_never": (lambda d: functional.dropout(torch.full((_SURE,), 3.0, device=d), 0.0), 3.0),
    "dropout_always": (lambda d: functional.dropout(torch.full((_SURE,), 3.0, device=d), 1.0), 0.0),
    "dropout_recorded_never": (
        lambda d: torch.native_dropout(torch.full((_SURE,), 3.0, device=d), 0.0, True)[0],
        3.0,
    ),
    "dropout_recorded_always": (
        lambda d: torch.native_dropout(torch.full((_SURE,), 3.0, device=d), 1.0, True)[0],
        0.0,
    ),
    "poisson": (lambda d: torch.poisson(torch.zeros(_SURE, device=d)), 0.0),
    "binomial_never": (
        lambda d: torch.binomial(torch.full((9999,), 40.0, device=d), torch.zeros(9999, device=d)),
        0.0,
    ),
    "binomial_always": (
        lambda d: torch.binomial(torch.full((9999,), 40.0, device=d), torch.ones(9999, device=d)),
        40.0,
    ),
    "normal": (lambda d: torch.empty(9999, device=d).normal_(1.5, 0.0), 1.5),
    "normal_tensors": (
        lambda d: torch.normal(torch.full((9999,), 1.5, device=d), torch.zeros(9999, device=d)),
        1.5,
    ),
    "uniform": (lambda d: torch.empty(9999, device=d).uniform_(1.5, 1.5), 1.5),
    "randint": (lambda d: torch.randint(7, 8, (9999,), device=d), 7.0),
    "random": (lambda d: torch.empty(9999, device=d).random_(7, 8), 7.0),
    "rrelu": (
        lambda d: functional.rrelu(torch.full((9999,), -2.0, device=d), 0.5, 0.5, True),
        -1.0,
    ),
    "multinomial_one_weight": (
        lambda d: torch.multinomial(torch.tensor([0.0, 0.0, 2.5, 0.0], device=d), 99_999, True),
        2.0,
    ),
    "multinomial_rows": (
        lambda d: torch.multinomial(torch.tensor([0.0, 1e-30, 0.0], device=d).expand(999, 3), 1),
        1.0,
    ),
}


@check("random/certain", "RAND-015", needs=("generator",), cases=_CERTAIN)
def what_is_certain_happens_always(dev: Device, case: str) -> None:
    """A draw that has one possible outcome has it each time, in up to a million draws."""
    draw, expected = _CERTAIN[case]
    torch.manual_seed(56)
    values = draw(dev.device()).cpu()
    wrong = int((values != expected).sum())
    assert wrong == 0, f"{wrong} of {values.numel()} numbers are not {expected}"


#: Weights of categories, of which those of zero are first, last and next to large ones.
_WEIGHTS = (0.0, 0.0, 1e-3, 0.0, 5.0, 0.0, 1e3, 0.0, 2.0, 0.0)

_MULTINOMIAL: dict[str, Callable[[Tensor], Tensor]] = {
    "with_replacement": lambda weights: torch.multinomial(weights, 300_000, True),
    "without": lambda weights: torch.multinomial(weights.expand(30_000, 10), 4),
    "rows": lambda weights: torch.multinomial(weights.expand(30_000, 10), 9, True),
}


@check("random/zero_weight", "RAND-015", needs=("generator",), cases=_MULTINOMIAL)
def categories_of_weight_zero_are_never_drawn(dev: Device, case: str) -> None:
    """multinomial draws no category of weight zero, wherever it stands among the others."""
    torch.manual_seed(57)
    drawn = _MULTINOMIAL[case](torch.tensor(_WEIGHTS, device=dev.device())).cpu()
    counts = torch.bincount(drawn.flatten(), minlength=len(_WEIGHTS))
    assert counts.numel() == len(_WEIGHTS)
    assert int(counts[torch.tensor(_WEIGHTS) == 0].sum()) == 0, f"drawn: {counts.tolist()}"


#: Draws of an event that happens once in 200,000 draws, in four million of them.
_RARE: dict[str, Callable[[torch.device, float], Tensor]] = {
    "number": lambda d, p: torch.empty(1 << 22, device=d).bernoulli_(p),
    "tensor": lambda d, p: torch.bernoulli(torch.full((1 << 22,), p, device=d)),
}


@check("random/rare", "RAND-011", needs=("generator",), cases=_RARE)
def rare_events_are_rare(dev: Device, case: str) -> None:
    """Chances of 5 in a million, and of all but those, are honoured."""
    for chance in (5e-6, 1 - 5e-6):
        torch.manual_seed(58)
        ones = int(_RARE[case](dev.device(), chance).sum(dtype=torch.int64))
        rare = min(ones, (1 << 22) - ones)
        assert 1 <= rare <= 55, f"{ones} of {1 << 22} draws with the chance {chance} are 1"


#: Draws with what must hold for each of 2**26 numbers: what one word of 32 random bits can break.
_EXTREME: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "uniform": (lambda x: x.uniform_(), lambda x: (x >= 0) & (x < 1)),
    "exponential": (lambda x: x.exponential_(), lambda x: (x > 0) & x.isfinite()),
    "normal": (lambda x: x.normal_(), lambda x: x.abs() < 8),
    "log_normal": (lambda x: x.log_normal_(), lambda x: (x > 0) & x.isfinite()),
    "cauchy": (lambda x: x.cauchy_(), torch.isfinite),
    "geometric": (lambda x: x.geometric_(0.5), lambda x: (x >= 1) & (x < 64)),
    "never": (lambda x: x.bernoulli_(0.0), lambda x: x == 0),
    "always": (lambda x: x.bernoulli_(1.0), lambda x: x == 1),
}


@check(
    "random/extreme", ("RAND-007", "RAND-015"), needs=("generator",), cases=_EXTREME, breadth=FULL
)
def the_rarest_random_bits_give_good_numbers(dev: Device, case: str) -> None:
    """Of 2**26 numbers none leaves its support: also not those of random bits 0 and 2**32 - 1."""
    draw, holds = _EXTREME[case]
    torch.manual_seed(59)
    for _ in range(4):
        values = draw(torch.empty(1 << 24, device=dev.device())).cpu()
        wrong = values[~holds(values)]
        assert wrong.numel() == 0, f"{wrong.numel()} numbers, the first of them {wrong[0]}"


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
    before = rng_state(dev)
    assert isinstance(
        raised(lambda: _REFUSED[case](dev.device()), by=dev.synchronize),
        (RuntimeError, ValueError, NotImplementedError),
    )
    assert torch.equal(rng_state(dev), before)


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
    "random_of_truth": (
        lambda d: torch.empty(_MANY, dtype=torch.bool, device=d).random_(),
        torch.ones(2),
    ),
    "randint_of_truth": (
        lambda d: torch.randint(0, 2, (_MANY,), dtype=torch.bool, device=d),
        torch.ones(2),
    ),
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


_ROWS = 10_000
_MEANS = torch.tensor([-3.0, 0.0, 2.0, 50.0])
_DEVIATIONS = torch.tensor([0.5, 1.0, 2.0, 4.0])
_CHANCES = torch.tensor([0.1, 0.8, 0.4, 0.2])
_RATES = torch.tensor([3.0, 9.0, 11.0, 60.0])
_TRIALS = torch.tensor([2.0, 10.0, 100.0, 1000.0])


def _columns(parameters: Tensor, device: torch.device) -> Tensor:
    """The parameters of four columns, once in memory."""
    return parameters.to(device).expand(_ROWS, 4)


#: Draws of four columns with parameters of their own, and the columns' means and deviations.
_BY_COLUMN: dict[str, tuple[Callable[[torch.device], Tensor], Tensor, Tensor]] = {
    "normal": (
        lambda d: torch.normal(_columns(_MEANS, d), _columns(_DEVIATIONS, d)),
        _MEANS,
        _DEVIATIONS,
    ),
    "normal_strided": (
        lambda d: torch.normal(
            _columns(_MEANS, d).t().contiguous().t(), _columns(_DEVIATIONS, d).contiguous()
        ),
        _MEANS,
        _DEVIATIONS,
    ),
    "normal_mean": (
        lambda d: torch.normal(_columns(_MEANS, d), 2.0),
        _MEANS,
        torch.full((4,), 2.0),
    ),
    "normal_deviation": (
        lambda d: torch.normal(1.5, _columns(_DEVIATIONS, d)),
        torch.full((4,), 1.5),
        _DEVIATIONS,
    ),
    "normal_out": (
        lambda d: torch.normal(
            _columns(_MEANS, d), _columns(_DEVIATIONS, d), out=torch.empty(4, _ROWS, device=d).t()
        ),
        _MEANS,
        _DEVIATIONS,
    ),
    "bernoulli": (
        lambda d: torch.bernoulli(_columns(_CHANCES, d)),
        _CHANCES,
        (_CHANCES * (1 - _CHANCES)).sqrt(),
    ),
    "bernoulli_in_place": (
        lambda d: torch.empty(4, _ROWS, device=d).t().bernoulli_(_columns(_CHANCES, d)),
        _CHANCES,
        (_CHANCES * (1 - _CHANCES)).sqrt(),
    ),
    "poisson": (lambda d: torch.poisson(_columns(_RATES, d)), _RATES, _RATES.sqrt()),
    "binomial": (
        lambda d: torch.binomial(_columns(_TRIALS, d), _columns(_CHANCES, d)),
        _TRIALS * _CHANCES,
        (_TRIALS * _CHANCES * (1 - _CHANCES)).sqrt(),
    ),
    "gamma": (
        lambda d: torch._standard_gamma(_columns(_DEVIATIONS, d)),
        _DEVIATIONS,
        _DEVIATIONS.sqrt(),
    ),
    "dirichlet": (
        lambda d: torch._sample_dirichlet(_columns(_DEVIATIONS, d)),
        _DEVIATIONS / 7.5,
        (_DEVIATIONS / 7.5 * (1 - _DEVIATIONS / 7.5) / 8.5).sqrt(),
    ),
    "rrelu": (
        lambda d: functional.rrelu(_columns(-_DEVIATIONS, d).contiguous(), 0.2, 0.8, True),
        -0.5 * _DEVIATIONS,
        0.6 / math.sqrt(12) * _DEVIATIONS,
    ),
}


@check("random/by_column", "RAND-011", needs=("generator",), cases=_BY_COLUMN)
def every_element_has_its_own_parameters(dev: Device, case: str) -> None:
    """Parameters in tensors, of any strides, decide the numbers in their own places."""
    draw, means, deviations = _BY_COLUMN[case]
    torch.manual_seed(65)
    values = draw(dev.device()).cpu().double()
    assert values.shape == (_ROWS, 4)
    apart = (values.mean(0) - means).abs() / deviations
    assert float(apart.max()) < 6 / math.sqrt(_ROWS), f"means {values.mean(0)}, not {means}"
    ratios = values.std(0) / deviations
    assert float((ratios - 1).abs().max()) < 0.1, f"deviations {values.std(0)}, not {deviations}"


@check("random/by_row", "RAND-011", needs=("generator",))
def every_row_of_weights_is_drawn_from(dev: Device) -> None:
    """multinomial draws each row of its result by the weights of that row."""
    weights = torch.tensor([[1.0, 2.0, 0.0, 5.0], [0.5, 0.0, 3.0, 0.1], [9.0, 1.0, 1.0, 1.0]])
    torch.manual_seed(66)
    drawn = torch.multinomial(weights.to(dev.device()), _ROWS, True).cpu()
    for row, chances in zip(drawn, weights, strict=True):
        _assert_chi_square(torch.bincount(row, minlength=4), chances)


_INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32")
_BETWEEN: dict[str, Callable[[Tensor], Tensor]] = {
    "from_to": lambda x: x.random_(3, 17) - 3,
    "to": lambda x: x.random_(14),
    "like": lambda x: torch.randint_like(x, 3, 17) - 3,
    "like_below": lambda x: torch.randint_like(x, 14),
}


@check("random/between", "RAND-008", needs=("generator",), cases=_BETWEEN, dtypes=_INTEGERS)
def bounds_are_honoured_in_every_type(dev: Device, case: str, dtype: torch.dtype) -> None:
    """random_ and randint_like take each of 14 numbers equally often in every data type."""
    dev.require(*{str(dtype).removeprefix("torch.")} & {"float16", "bfloat16"})
    torch.manual_seed(67)
    values = _BETWEEN[case](torch.zeros(14_007, dtype=dtype, device=dev.device())).cpu().long()
    assert int(values.min()) >= 0 and int(values.max()) < 14
    _assert_chi_square(torch.bincount(values, minlength=14), torch.ones(14))


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


#: Of native_dropout: the probability, whether it is training, and the share that is kept.
_COMPLEX_DROPOUTS: dict[str, tuple[float, bool | None, float]] = {
    "some": (0.2, True, 0.8),
    "few": (0.9, True, 0.1),
    "by_default": (0.5, None, 0.5),
    "never": (0.0, True, 1.0),
    "always": (1.0, True, 0.0),
    "evaluated": (0.5, False, 1.0),
}


@check(
    "random/dropout_complex",
    "RAND-013",
    needs=("generator", "complex64"),
    cases=_COMPLEX_DROPOUTS,
)
def dropout_scales_complex_numbers(dev: Device, case: str) -> None:
    """native_dropout keeps its share of complex numbers, scaled, and returns which they are."""
    p, train, share = _COMPLEX_DROPOUTS[case]
    torch.manual_seed(74)
    given = torch.complex(noise((_MANY,)), noise((_MANY,), seed=1))
    out, mask = torch.native_dropout(given.to(dev.device()), p, train)
    assert mask.dtype == torch.bool
    kept = dev.cpu(mask)
    found = float(kept.double().mean())
    assert abs(found - share) <= 6 * math.sqrt(share * (1 - share) / _MANY), found
    dev.assert_close(out, given * kept * (1 / share if share else 0.0))


#: Random functions that multiply each element of an image by a random number.
_SCALING: dict[str, Callable[[Tensor], Tensor]] = {
    "rrelu": lambda x: functional.rrelu(x, 0.1, 0.6, training=True),
    "rrelu_in_place": lambda x: functional.rrelu_(x * 1, 0.1, 0.6, training=True),
    "dropout": lambda x: functional.dropout(x, 0.4),
    "dropout_in_place": lambda x: functional.dropout(x * 1, 0.4, inplace=True),
    "native_dropout": lambda x: torch.native_dropout(x, 0.4, True)[0],
    "dropout1d": lambda x: functional.dropout1d(x.flatten(2), 0.4).view(x.shape),
    "dropout2d": lambda x: functional.dropout2d(x, 0.4),
    "feature_dropout_in_place": lambda x: torch.feature_dropout_(x * 1, 0.4, True),
}


@check(
    "random/gradient",
    "RAND-016",
    needs=("generator",),
    cases=_SCALING,
    dtypes=("float32", "bfloat16"),
)
def gradients_use_the_numbers_of_forward(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A random activation multiplies value and gradient by the same number, each time it is asked.

    The inputs are strided one way and the other.
    """
    dev.require(*{str(dtype).removeprefix("torch.")} & {"bfloat16"})
    given, weight = noise((6, 5, 7, 3)).to(dtype), noise((6, 5, 7, 3), seed=1).to(dtype)
    torch.manual_seed(76)
    for image in (given, given.contiguous(memory_format=torch.channels_last)):
        x = image.to(dev.device()).requires_grad_()
        out = _SCALING[case](x)
        expected = dev.cpu(out.detach()).double() * weight.double()
        for _ in range(2):
            (gradient,) = torch.autograd.grad(out, x, weight.to(dev.device()), retain_graph=True)
            scaled = dev.cpu(gradient).double() * given.double()
            loose = 4 * torch.finfo(dtype).eps
            dev.assert_close(scaled, expected, rtol=loose, atol=loose * 1e-3)


#: Random functions that keep an element, scaled and shifted, or replace it by a constant.
_REPLACING: dict[str, Callable[[Tensor], Tensor]] = {
    "alpha_dropout": lambda x: functional.alpha_dropout(x, 0.4, training=True),
    "alpha_dropout_in_place": lambda x: torch.alpha_dropout_(x * 1, 0.4, True),
    "feature_alpha_dropout": lambda x: functional.feature_alpha_dropout(x, 0.4, training=True),
    "feature_alpha_dropout_in_place": lambda x: torch.feature_alpha_dropout_(x * 1, 0.4, True),
}


@check("random/gradient_replaced", "RAND-016", needs=("generator",), cases=_REPLACING)
def gradients_of_replaced_elements_are_zero(dev: Device, case: str) -> None:
    """Alpha dropout has the gradient zero for what it replaced, and its scale for the rest."""
    given = noise((16, 5, 7))
    x = given.to(dev.device()).requires_grad_()
    torch.manual_seed(77)
    out = _REPLACING[case](x)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    host, slope = dev.cpu(out.detach()), dev.cpu(gradient)
    kept = slope != 0
    assert 0.2 < float(kept.double().mean()) < 0.95
    assert host[~kept].unique().numel() == 1, "an element without a gradient was kept"
    scale = float(slope[kept][0])
    dev.assert_equal(slope[kept], torch.full_like(slope[kept], scale))
    shift = host[kept] - scale * given[kept]
    dev.assert_close(shift, shift[:1].expand_as(shift), rtol=1e-5, atol=1e-5)


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
