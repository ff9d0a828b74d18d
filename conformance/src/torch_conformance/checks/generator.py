# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers: seeding, state, independence, the Generator object, and sane distributions."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from itertools import permutations
from typing import Any

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from torch_conformance.authoring.api import AT_ONCE, Device, check, ends, raised

Draw = Callable[[torch.device, torch.Generator | None], torch.Tensor]

_N = 64


def _empty(device: torch.device, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(_N, dtype=dtype, device=device)


def _pairs(device: torch.device) -> torch.Tensor:
    """As many channels as other draws have elements."""
    return torch.ones(1, _N, 2, device=device)


def _attended(x: torch.Tensor) -> torch.Tensor:
    """Attention with dropout on its weights."""
    return functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)


def _recurrent(device: torch.device, kind: Callable[..., Any], **options: Any) -> torch.Tensor:
    """Two layers with dropout between them; their weights are all alike and not random."""
    layers = kind(2, 8, num_layers=2, dropout=0.5, device=device, **options)
    for parameter in layers.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    out: torch.Tensor = layers(torch.ones(8, 1, 2, device=device))[0]
    return out.detach()


#: What a few of the random operators need beside a generator.
DRAW_NEEDS = {"rand_float16": "float16"}

#: Random operators that take a generator. 64 elements: two draws are not equal by chance.
DRAWS: dict[str, Draw] = {
    "rand": lambda d, g: torch.rand(_N, device=d, generator=g),
    "randn": lambda d, g: torch.randn(_N, device=d, generator=g),
    "randint": lambda d, g: torch.randint(0, 1000, (_N,), device=d, generator=g),
    "randperm": lambda d, g: torch.randperm(_N, device=d, generator=g),
    "uniform": lambda d, g: _empty(d).uniform_(-1, 3, generator=g),
    "normal": lambda d, g: _empty(d).normal_(1, 2, generator=g),
    "normal_tensors": lambda d, g: torch.normal(_empty(d), _empty(d) + 2, generator=g),
    "exponential": lambda d, g: _empty(d).exponential_(0.5, generator=g),
    "cauchy": lambda d, g: _empty(d).cauchy_(generator=g),
    "log_normal": lambda d, g: _empty(d).log_normal_(generator=g),
    "geometric": lambda d, g: _empty(d).geometric_(0.05, generator=g),
    "random": lambda d, g: _empty(d, torch.int64).random_(0, 1000, generator=g),
    "bernoulli": lambda d, g: torch.bernoulli(_empty(d) + 0.5, generator=g),
    "bernoulli_inplace": lambda d, g: _empty(d).bernoulli_(0.5, generator=g),
    "multinomial": lambda d, g: torch.multinomial(_empty(d) + 1, _N, True, generator=g),
    "poisson": lambda d, g: torch.poisson(_empty(d) + 40, generator=g),
    "rand_out": lambda d, g: torch.rand(_N, generator=g, out=_empty(d)),
    "rand_float16": lambda d, g: torch.rand(_N, device=d, generator=g, dtype=torch.float16),
    "randint_below": lambda d, g: torch.randint(1000, (_N,), device=d, generator=g),
    "random_all": lambda d, g: _empty(d, torch.int64).random_(generator=g),
    "random_below": lambda d, g: _empty(d, torch.int64).random_(1000, generator=g),
    "normal_numbers": lambda d, g: torch.normal(1.0, 2.0, (_N,), device=d, generator=g),
    "normal_mean": lambda d, g: torch.normal(_empty(d), 2.0, generator=g),
    "normal_deviation": lambda d, g: torch.normal(1.0, _empty(d) + 2, generator=g),
    "bernoulli_number": lambda d, g: torch.bernoulli(_empty(d), 0.5, generator=g),
    "bernoulli_chances": lambda d, g: _empty(d).bernoulli_(_empty(d) + 0.5, generator=g),
    "multinomial_once": lambda d, g: torch.multinomial(_empty(d) + 1, _N, generator=g),
    "binomial": lambda d, g: torch.binomial(_empty(d) + 100, _empty(d) + 0.5, generator=g),
    "gamma": lambda d, g: torch._standard_gamma(_empty(d) + 3, generator=g),
    "dirichlet": lambda d, g: torch._sample_dirichlet(_empty(d) + 2, generator=g),
    "uniform_functional": lambda d, g: torch.ops.aten.uniform(_empty(d), generator=g),
    "normal_functional": lambda d, g: torch.ops.aten.normal_functional(_empty(d), generator=g),
    "exponential_functional": lambda d, g: torch.ops.aten.exponential(_empty(d), generator=g),
    "cauchy_functional": lambda d, g: torch.ops.aten.cauchy(_empty(d), generator=g),
    "log_normal_functional": lambda d, g: torch.ops.aten.log_normal(_empty(d), generator=g),
    "geometric_functional": lambda d, g: torch.ops.aten.geometric(_empty(d), 0.05, generator=g),
    "random_functional": lambda d, g: torch.ops.aten.random(
        _empty(d, torch.int64), 1000, generator=g
    ),
    "rrelu_with_noise": lambda d, g: torch.ops.aten.rrelu_with_noise(
        _empty(d) - 1, _empty(d), training=True, generator=g
    ),
    "rrelu_with_noise_inplace": lambda d, g: torch.ops.aten.rrelu_with_noise_(
        _empty(d) - 1, _empty(d), training=True, generator=g
    ),
    "rrelu_with_noise_functional": lambda d, g: torch.ops.aten.rrelu_with_noise_functional(
        _empty(d) - 1, _empty(d), training=True, generator=g
    )[0],
}

#: Random operators that always use the default generator.
IMPLICIT: dict[str, Draw] = {
    "rand_like": lambda d, g: torch.rand_like(_empty(d)),
    "randn_like": lambda d, g: torch.randn_like(_empty(d)),
    "randint_like": lambda d, g: torch.randint_like(_empty(d), 0, 1000),
    "dropout": lambda d, g: functional.dropout(_empty(d) + 1, 0.5),
    "alpha_dropout": lambda d, g: functional.alpha_dropout(_empty(d) + 1, 0.5, training=True),
    "dropout1d": lambda d, g: functional.dropout1d(torch.ones(_N, 2, device=d), 0.5),
    "rrelu": lambda d, g: functional.rrelu(_empty(d) - 1, training=True),
    "gumbel_softmax": lambda d, g: functional.gumbel_softmax(_empty(d)),
    "trunc_normal": lambda d, g: torch.nn.init.trunc_normal_(_empty(d)),
    "rrelu_inplace": lambda d, g: torch.rrelu_(_empty(d) - 1, training=True),
    "dropout_inplace": lambda d, g: torch.dropout_(_empty(d) + 1, 0.5, True),
    "alpha_dropout_inplace": lambda d, g: torch.alpha_dropout_(_empty(d) + 1, 0.5, True),
    "feature_dropout_inplace": lambda d, g: torch.feature_dropout_(_pairs(d), 0.5, True),
    "feature_alpha_dropout": lambda d, g: torch.feature_alpha_dropout(_pairs(d), 0.5, True),
    "feature_alpha_dropout_inplace": lambda d, g: torch.feature_alpha_dropout_(
        _pairs(d), 0.5, True
    ),
    "native_dropout": lambda d, g: torch.native_dropout(_empty(d) + 1, 0.5, True)[0],
    "attention_dropout": lambda d, g: _attended(_empty(d).view(1, 1, 8, 8) + 1),
    "lstm_dropout": lambda d, g: _recurrent(d, torch.nn.LSTM),
    "gru_dropout": lambda d, g: _recurrent(d, torch.nn.GRU),
    "rnn_tanh_dropout": lambda d, g: _recurrent(d, torch.nn.RNN),
    "rnn_relu_dropout": lambda d, g: _recurrent(d, torch.nn.RNN, nonlinearity="relu"),
}

_ALL = {**DRAWS, **IMPLICIT}


def default_generator(dev: Device, index: int = 0) -> torch.Generator:
    """The default generator of one device, for checks about that object.

    Few modules have it. `rng_state` looks at it by a function that PyTorch itself calls.
    """
    if dev.module is None:
        return torch.default_generator
    generator: torch.Generator = dev.module.default_generators[index]
    return generator


def rng_state(dev: Device, index: int = 0) -> torch.Tensor:
    """The state of one device's default generator, by the device module's own function."""
    state: torch.Tensor = (
        torch.get_rng_state() if dev.module is None else dev.module.get_rng_state(index)
    )
    return state


def _set(dev: Device, state: torch.Tensor, index: int = 0) -> None:
    """Set the state of one device's default generator."""
    if dev.module is None:
        torch.set_rng_state(state)
    else:
        dev.module.set_rng_state(state, index)


def _states(dev: Device) -> list[torch.Tensor]:
    """The states of the first devices' default generators."""
    return [rng_state(dev, index) for index in range(min(dev.count, 4))]


def _equal(first: list[torch.Tensor], second: list[torch.Tensor]) -> list[bool]:
    return [torch.equal(one, other) for one, other in zip(first, second, strict=True)]


def _draw_on_all(dev: Device) -> None:
    for index in range(min(dev.count, 4)):
        torch.rand(4, device=dev.device(index))


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    return torch.equal(first.cpu(), second.cpu())


# ---- seeds and sequences ---------------------------------------------------------------------


@check("generator/seed", "GEN-001", needs=("generator",), cases=_ALL, case_needs=DRAW_NEEDS)
def the_same_seed_gives_the_same_numbers(dev: Device, case: str) -> None:
    """torch.manual_seed makes every random operator repeat itself, and calls after it go on."""
    torch.manual_seed(1234)
    first, second = (_ALL[case](dev.device(), None) for _ in range(2))
    torch.manual_seed(1234)
    again = _ALL[case](dev.device(), None)
    assert _same(first, again), "the same seed gave other numbers"
    assert not _same(first, second), "two draws in a row are equal: the state does not advance"


@check(
    "generator/other_seed",
    "GEN-002",
    needs=("generator",),
    cases=_ALL,
    case_needs=DRAW_NEEDS,
)
def another_seed_gives_other_numbers(dev: Device, case: str) -> None:
    """Different seeds give different numbers."""
    torch.manual_seed(1)
    first = _ALL[case](dev.device(), None)
    torch.manual_seed(2)
    assert not _same(first, _ALL[case](dev.device(), None))


@check("generator/seed_range", "GEN-003", needs=("generator",))
def seeds_of_the_documented_range_are_accepted(dev: Device) -> None:
    """Negative and 64 bit seeds work and give different sequences."""
    drawn = []
    for seed in (0, -1, 5, 2**63 + 9, 2**64 - 7):
        torch.manual_seed(seed)
        drawn.append(tuple(torch.rand(8, device=dev.device()).tolist()))
    assert len(set(drawn)) == len(drawn)


@check("generator/seed_high_bits", "GEN-022", needs=("generator", "accelerator"))
def the_high_bits_of_a_seed_count(dev: Device) -> None:
    """Seeds that differ above bit 31 only, or in the last of 64 bits, give different numbers."""
    drawn = {}
    for seed in (5, 2**32 + 5, 2**53 + 5, 2**62 + 5, 2**63 + 5, 2**63 - 1, 2**63 - 2, 2**64 - 1):
        torch.manual_seed(seed)
        drawn[seed] = tuple(torch.rand(8, device=dev.device()).tolist())
    assert len(set(drawn.values())) == len(drawn), "different seeds gave the same numbers"


@check("generator/seed_out_of_range", "GEN-003", needs=("generator",))
def seeds_out_of_range_are_refused(dev: Device) -> None:
    """A seed that does not fit 64 bits raises."""
    generator = torch.Generator(device=dev.device())
    for seed in (2**64, -(2**64)):
        error = raised(lambda: generator.manual_seed(seed))  # noqa: B023 - called at once
        assert isinstance(error, (RuntimeError, ValueError, OverflowError))


#: Seeds at the limits of what is accepted.
_SEEDS = {
    "zero": 0,
    "negative": -1,
    "least": -(2**63),
    "above_int64": 2**63,
    "greatest": 2**64 - 1,
}


@check("generator/seed_value", "GEN-003", needs=("generator",), cases=_SEEDS)
def a_seed_is_kept_as_the_cpu_keeps_it(dev: Device, case: str) -> None:
    """initial_seed() is that of a CPU generator with the same seed, also in a restored state."""
    generator = torch.Generator(device=dev.device()).manual_seed(_SEEDS[case])
    expected = torch.Generator().manual_seed(_SEEDS[case]).initial_seed()
    assert generator.initial_seed() == expected
    other = torch.Generator(device=dev.device())
    other.set_state(generator.get_state())
    assert other.initial_seed() == expected, "the state lost the seed"


@check("generator/random_seed", "GEN-014", needs=("generator",))
def a_random_seed_is_returned_and_begins_a_sequence(dev: Device) -> None:
    """seed() returns the new initial_seed(), another each time, and begins a sequence."""
    generator = torch.Generator(device=dev.device())
    seeds = []
    for _ in range(8):
        torch.rand(5, device=dev.device(), generator=generator)
        seeds.append(generator.seed())
        assert generator.initial_seed() == seeds[-1]
        again = torch.Generator(device=dev.device()).manual_seed(seeds[-1])
        drawn = [torch.rand(8, device=dev.device(), generator=g) for g in (generator, again)]
        assert _same(*drawn), "after seed() the sequence does not begin at its start"
    assert len(set(seeds)) == len(seeds), f"seeds repeat: {seeds}"


@check("generator/torch_seed:random", "GEN-023", needs=("generator",))
def torch_seed_seeds_every_device(dev: Device) -> None:
    """torch.seed() seeds the default generator of every device with the number that it returns."""
    chosen = torch.seed()
    for index in range(min(dev.count, 4)):
        assert default_generator(dev, index).initial_seed() == chosen
    assert torch.seed() != chosen


#: Calls of the device module before its first use, in this order, and the seeds that they leave on
#: the current device and on the others. A seed of None is chosen at random.
_SEEDED_BEFORE_USE: dict[str, tuple[int | None, int | None]] = {
    "m.manual_seed(31); m.manual_seed_all(32)": (32, 32),
    "m.manual_seed_all(32); m.manual_seed(31)": (31, 32),
    "m.seed_all(); m.seed(); m.manual_seed_all(33)": (33, 33),
    "m.manual_seed_all(32); m.seed_all()": (None, None),
}
_TELL_SEEDS = """
m = torch.get_device_module(torch.device(D).type)
{calls}
seeds = []
for index in (0, torch.accelerator.device_count() - 1):
    with torch.accelerator.device_index(index): seeds.append(m.initial_seed())
print("seeds", *seeds, flush=True)
"""
_BEFORE_USE = {calls: _TELL_SEEDS.format(calls=calls) + AT_ONCE for calls in _SEEDED_BEFORE_USE} | {
    "torch": "torch.manual_seed(1234)\n"
    "print('drawn', torch.rand(8, device=D).tolist(), flush=True)\n" + AT_ONCE
}


@check("generator/seed_before_use", ("GEN-001", "GEN-010"), needs=("generator", "accelerator"))
def seeds_given_before_the_first_use_count_in_order(dev: Device) -> None:
    """Of the seeds that a program gives before it uses the device, each device has its last one."""
    end = ends(dev, _BEFORE_USE)["torch"]
    end.verify()
    torch.manual_seed(1234)
    assert f"drawn {torch.rand(8, device=dev.device()).tolist()}" in end.output
    for calls, expected in _SEEDED_BEFORE_USE.items():
        end = ends(dev, _BEFORE_USE)[calls]
        end.verify()
        told = next(line for line in end.output.splitlines() if line.startswith("seeds "))
        found = [int(word) for word in told.split()[1:]]
        for seed, wanted in zip(found[: dev.count], expected, strict=False):
            right = seed not in (31, 32, 33) if wanted is None else seed == wanted
            assert right, f"after {calls} the seed is {seed} instead of {wanted or 'a random one'}"


@check("generator/order", "GEN-001", needs=("generator",))
def a_sequence_of_different_operators_repeats(dev: Device) -> None:
    """A mixed sequence of random operators is reproduced as a whole."""

    def sequence() -> list[torch.Tensor]:
        torch.manual_seed(99)
        return [draw(dev.device(), None).cpu() for draw in present.values()]

    present = {
        name: draw for name, draw in _ALL.items() if dev.has(DRAW_NEEDS.get(name, "generator"))
    }
    for name, first, second in zip(present, sequence(), sequence(), strict=True):
        assert torch.equal(first, second), name


# ---- the state -------------------------------------------------------------------------------


@check("generator/state", "GEN-004", needs=("generator",), cases=_ALL, case_needs=DRAW_NEEDS)
def restoring_the_state_replays_the_numbers(dev: Device, case: str) -> None:
    """set_rng_state(get_rng_state()) replays, whatever the CPU generator did in between."""
    torch.manual_seed(77)
    torch.rand(3, device=dev.device())  # a state in mid-sequence
    state = rng_state(dev)
    first = _ALL[case](dev.device(), None)
    if dev.is_accelerator:
        torch.rand(11)  # restores nothing of the CPU generator: only the device's own state counts
    _set(dev, state)
    assert _same(first, _ALL[case](dev.device(), None))


@check(
    "generator/cpu_untouched",
    "GEN-005",
    needs=("generator", "accelerator"),
    cases=_ALL,
    case_needs=DRAW_NEEDS,
)
def drawing_on_the_device_leaves_the_cpu_generator(dev: Device, case: str) -> None:
    """A random operator on the device does not advance the CPU's generator."""
    torch.manual_seed(5)
    before = torch.get_rng_state()
    _ALL[case](dev.device(), None)
    assert torch.equal(torch.get_rng_state(), before)


@check("generator/cpu_independent", "GEN-005", needs=("generator", "accelerator"))
def drawing_on_the_cpu_leaves_the_device_generator(dev: Device) -> None:
    """Random operators on the CPU do not change what the device draws next."""
    torch.manual_seed(5)
    expected = torch.rand(8, device=dev.device())
    torch.manual_seed(5)
    torch.rand(100)
    assert _same(torch.rand(8, device=dev.device()), expected)


@check("generator/state_advances", "GEN-006", needs=("generator",))
def the_state_changes_when_numbers_are_drawn(dev: Device) -> None:
    """A draw changes the state; reading the state, or work that is not random, does not."""
    torch.manual_seed(5)
    before = rng_state(dev)
    torch.ones(4, device=dev.device()).add_(1)
    assert torch.equal(rng_state(dev), before)
    torch.rand(4, device=dev.device())
    assert not torch.equal(rng_state(dev), before)


@check("generator/state_type", "GEN-007", needs=("generator",))
def the_state_is_a_byte_tensor_on_the_cpu(dev: Device) -> None:
    """get_rng_state and Generator.get_state give a one-dimensional uint8 tensor on the CPU."""
    states = [rng_state(dev), torch.Generator(device=dev.device()).get_state()]
    with dev.device():  # a state must not be on the default device
        states += [rng_state(dev), torch.Generator(device=dev.device()).get_state()]
    for state in states:
        assert state.device.type == "cpu"
        assert state.dtype == torch.uint8
        assert state.dim() == 1
        assert state.numel() > 0


@check("generator/state_is_a_copy", "GEN-007", needs=("generator",))
def the_state_is_a_copy(dev: Device) -> None:
    """Writing into a state that was handed out does not change the generator."""
    generator = torch.Generator(device=dev.device()).manual_seed(3)
    state = generator.get_state()
    kept = state.clone()
    torch.rand(5, device=dev.device(), generator=generator)
    generator.get_state()
    assert torch.equal(state, kept), "a state that was handed out changed with the generator"
    generator.set_state(kept)
    state.fill_(0)
    assert torch.equal(generator.get_state(), kept)
    generator.set_state(kept)
    kept.fill_(0)
    assert generator.initial_seed() == 3


#: name -> what is made of a good state, with a place where a state must not be.
_BAD_STATES: dict[str, Callable[[torch.Tensor, torch.device], torch.Tensor]] = {
    "short": lambda good, elsewhere: good[:-1].clone(),
    "long": lambda good, elsewhere: torch.cat([good, good]),
    "empty": lambda good, elsewhere: good[:0].clone(),
    "dtype": lambda good, elsewhere: good.to(torch.float32),
    "device": lambda good, elsewhere: good.to(elsewhere),
}


@check("generator/bad_state", "GEN-008", needs=("generator",), cases=_BAD_STATES)
def a_malformed_state_is_refused(dev: Device, case: str) -> None:
    """A state of the wrong size or data type raises and leaves the generator as it was."""
    generator = torch.Generator(device=dev.device()).manual_seed(3)
    good = generator.get_state()
    elsewhere = dev.device() if dev.is_accelerator else torch.device("meta")
    bad = _BAD_STATES[case](good, elsewhere)
    error = raised(lambda: generator.set_state(bad))
    assert isinstance(error, (RuntimeError, TypeError))
    assert torch.equal(generator.get_state(), good)


@check("generator/state_between", "GEN-004", needs=("generator",))
def a_state_moves_between_generators(dev: Device) -> None:
    """The state of one generator, set in another of the same device type, continues there."""
    first = torch.Generator(device=dev.device()).manual_seed(21)
    torch.rand(5, device=dev.device(), generator=first)
    second = torch.Generator(device=dev.device())
    second.set_state(first.get_state())
    assert second.initial_seed() == 21
    for _ in range(2):
        expected = torch.randn(9, device=dev.device(), generator=first)
        assert _same(torch.randn(9, device=dev.device(), generator=second), expected)


#: What is drawn before the state is taken: odd sizes, and numbers that are made in pairs.
_BEFORE: dict[str, Callable[[torch.device, torch.Generator], Any]] = {
    "one": lambda d, g: torch.rand(1, device=d, generator=g),
    "three": lambda d, g: torch.rand(3, device=d, generator=g),
    "normal_one": lambda d, g: torch.randn(1, device=d, generator=g),
    "normal_nineteen": lambda d, g: torch.randn(19, device=d, generator=g),
    "permutation": lambda d, g: torch.randperm(7, device=d, generator=g),
    "many": lambda d, g: torch.rand(65_537, device=d, generator=g),
}
_CONTINUED: dict[str, Callable[[torch.Generator], torch.Generator]] = {
    "set_state": lambda g: torch.Generator(device=g.device).set_state(g.get_state()),
    "clone_state": lambda g: g.clone_state(),
}


@check("generator/state_middle", "GEN-004", needs=("generator",), cases=_BEFORE)
def a_state_in_the_middle_continues(dev: Device, case: str) -> None:
    """A state, or a clone, taken after a draw of any size continues exactly there."""
    generator = torch.Generator(device=dev.device()).manual_seed(31)
    for _ in range(2):
        _BEFORE[case](dev.device(), generator)
        for name, copied in _CONTINUED.items():
            other = copied(generator)
            for draw in (torch.randn, torch.rand, torch.randn):
                expected = draw(5, device=dev.device(), generator=generator)
                actual = draw(5, device=dev.device(), generator=other)
                assert _same(actual, expected), f"{name}: other numbers by {draw.__name__}"


# ---- several devices, scopes -----------------------------------------------------------------


@check("generator/per_device", "GEN-009", needs=("generator", "multi_device"))
def every_device_has_its_own_sequence(dev: Device) -> None:
    """Drawing on one device changes neither the state nor the numbers of another."""
    torch.manual_seed(8)
    before = rng_state(dev, 1)
    expected = torch.rand(8, device=dev.device(1))
    torch.manual_seed(8)
    torch.rand(100, device=dev.device(0))
    assert torch.equal(rng_state(dev, 1), before)
    assert _same(torch.rand(8, device=dev.device(1)), expected)


@check("generator/per_device_state", "GEN-009", needs=("generator", "multi_device"))
def the_state_is_set_on_the_device_named(dev: Device) -> None:
    """set_rng_state(state, index) sets that device and no other."""
    torch.manual_seed(8)
    state = rng_state(dev, 1)
    torch.rand(4, device=dev.device(0))
    torch.rand(4, device=dev.device(1))
    other = rng_state(dev, 0)
    _set(dev, state, 1)
    assert torch.equal(rng_state(dev, 1), state)
    assert torch.equal(rng_state(dev, 0), other)


@check("generator/every_device", "GEN-010", needs=("generator", "accelerator"))
def the_module_seeds_every_device(dev: Device) -> None:
    """<module>.manual_seed_all sets the default generator of every device."""
    assert dev.module is not None
    dev.module.manual_seed_all(31)
    first = _states(dev)
    _draw_on_all(dev)
    dev.module.manual_seed_all(31)
    assert all(_equal(_states(dev), first)), "the same seed gave another state"
    dev.module.manual_seed_all(32)
    assert not any(_equal(_states(dev), first)), "another seed gave the same state"


@check("generator/all_devices", "GEN-010", needs=("generator", "accelerator"))
def the_module_seeds_one_device_or_all(dev: Device) -> None:
    """<module>.manual_seed sets the default generator of the current device alone."""
    assert dev.module is not None
    dev.module.manual_seed_all(31)
    first = _states(dev)
    drawn = torch.rand(4, device=dev.device(0))
    dev.module.manual_seed_all(32)
    second = _states(dev)
    dev.module.manual_seed(31)
    now = _states(dev)
    assert torch.equal(now[0], first[0]), "manual_seed has not set the state"
    assert all(_equal(now[1:], second[1:])), "manual_seed is for one device"
    assert _same(torch.rand(4, device=dev.device(0)), drawn)


@check("generator/module_initial_seed", "GEN-010", needs=("generator", "accelerator"))
def the_module_knows_its_seed(dev: Device) -> None:
    """<module>.initial_seed() is the seed that manual_seed has set."""
    assert dev.module is not None
    dev.module.manual_seed(31)
    torch.rand(4, device=dev.device(0))
    assert dev.module.initial_seed() == 31


@check("generator/module_state_all", "GEN-010", needs=("generator", "accelerator"))
def the_states_of_all_devices_can_be_kept(dev: Device) -> None:
    """get_rng_state_all gives one state for each device and set_rng_state_all restores them."""
    assert dev.module is not None
    torch.manual_seed(13)
    indices = range(min(dev.count, 4))
    for i in indices:
        for _ in range(i):  # every device has a position of its own
            torch.rand(4, device=dev.device(i))
    states = dev.module.get_rng_state_all()
    assert len(states) == dev.count
    first = [torch.rand(4, device=dev.device(i)).cpu() for i in indices]
    dev.module.set_rng_state_all(states)
    for i in indices:
        assert _same(torch.rand(4, device=dev.device(i)), first[i])


#: name -> (a function of the device module, whether other devices keep their seed).
_SEEDERS: dict[str, tuple[Callable[[Any], None], bool]] = {
    "one": (lambda module: module.seed(), True),
    "all": (lambda module: module.seed_all(), False),
}


@check("generator/module_seed", "GEN-010", needs=("generator", "accelerator"), cases=_SEEDERS)
def the_module_can_seed_at_random(dev: Device, case: str) -> None:
    """<module>.seed() and seed_all() choose a new seed."""
    assert dev.module is not None
    seed, others_keep = _SEEDERS[case]
    dev.module.manual_seed_all(31)
    before = _states(dev)
    seed(dev.module)
    first = _states(dev)
    seed(dev.module)
    second = _states(dev)
    assert not torch.equal(first[0], before[0]), "the seed is not new"
    assert not torch.equal(first[0], second[0]), "the same seed was chosen again"
    kept = _equal(first[1:], before[1:])
    assert kept == [others_keep] * len(kept), f"seeds of the other devices kept: {kept}"


@check("generator/torch_seed", "GEN-001", needs=("generator",))
def torch_manual_seed_seeds_the_device(dev: Device) -> None:
    """torch.manual_seed reaches the default generator of every device of the backend."""
    torch.manual_seed(4321)
    first = _states(dev)
    _draw_on_all(dev)
    torch.manual_seed(4321)
    assert all(_equal(_states(dev), first)), "the same seed gave another state"
    torch.manual_seed(4322)
    assert not any(_equal(_states(dev), first)), "another seed gave the same state"


@check("generator/fork_rng", "GEN-011", needs=("generator",))
def fork_rng_isolates_the_device(dev: Device) -> None:
    """Inside torch.random.fork_rng draws and seeds do not reach the outside."""
    devices = [0] if dev.is_accelerator else []
    torch.manual_seed(17)
    torch.rand(3, device=dev.device())  # a state in mid-sequence
    state = rng_state(dev)
    expected = torch.rand(8, device=dev.device())
    _set(dev, state)
    with torch.random.fork_rng(devices=devices, device_type=dev.type):
        torch.manual_seed(18)
        for _ in range(5):
            torch.rand(50, device=dev.device())
    assert _same(torch.rand(8, device=dev.device()), expected)


# ---- the Generator object --------------------------------------------------------------------


@check("generator/explicit", "GEN-012", needs=("generator",), cases=DRAWS, case_needs=DRAW_NEEDS)
def an_explicit_generator_is_used(dev: Device, case: str) -> None:
    """generator= decides the numbers and leaves the default generator alone."""
    generator = torch.Generator(device=dev.device()).manual_seed(3)
    before = rng_state(dev)
    first = DRAWS[case](dev.device(), generator)
    second = DRAWS[case](dev.device(), generator)
    assert torch.equal(rng_state(dev), before), "the default generator was advanced"
    torch.rand(9, device=dev.device())
    generator.manual_seed(3)
    assert _same(DRAWS[case](dev.device(), generator), first)
    assert not _same(first, second), "two draws in a row are equal"


@check(
    "generator/explicit_equals_default",
    "GEN-012",
    needs=("generator",),
    cases=DRAWS,
    case_needs=DRAW_NEEDS,
)
def explicit_and_default_generators_agree(dev: Device, case: str) -> None:
    """With the same seed an explicit generator draws what the default generator draws."""
    torch.manual_seed(55)
    expected = DRAWS[case](dev.device(), None)
    generator = torch.Generator(device=dev.device()).manual_seed(55)
    assert _same(DRAWS[case](dev.device(), generator), expected)


@check(
    "generator/wrong_device",
    "GEN-013",
    needs=("generator", "accelerator"),
    cases=DRAWS,
    case_needs=DRAW_NEEDS,
)
def a_generator_of_another_device_is_refused(dev: Device, case: str) -> None:
    """A CPU generator for a device tensor, and the reverse, raise RuntimeError."""
    cpu, own = torch.Generator(), torch.Generator(device=dev.device())
    assert isinstance(
        raised(lambda: DRAWS[case](dev.device(), cpu), by=dev.synchronize), RuntimeError
    )
    assert isinstance(
        raised(lambda: DRAWS[case](torch.device("cpu"), own), by=dev.synchronize), RuntimeError
    )


@check("generator/object", "GEN-014", needs=("generator",))
def the_generator_object_tells_its_device_and_seed(dev: Device) -> None:
    """device, manual_seed (returns self), initial_seed and seed() behave as documented."""
    generator = torch.Generator(device=dev.device())
    assert isinstance(generator, torch.Generator)
    assert generator.device.type == dev.type
    assert generator.manual_seed(41) is generator
    assert generator.initial_seed() == 41
    chosen = generator.seed()
    assert generator.initial_seed() == chosen
    assert chosen != 41
    torch.rand(3, device=dev.device(), generator=generator)
    assert generator.initial_seed() == chosen, "drawing changed the initial seed"


@check("generator/new_generators", "GEN-014", needs=("generator",))
def new_generators_are_deterministic_and_separate(dev: Device) -> None:
    """Two new generators draw the same numbers without a seed, and do not share state."""
    first, second = (torch.Generator(device=dev.device()) for _ in range(2))
    assert first.initial_seed() == second.initial_seed()
    drawn = torch.rand(8, device=dev.device(), generator=first)
    torch.rand(8, device=dev.device(), generator=first)
    assert _same(torch.rand(8, device=dev.device(), generator=second), drawn)


@check("generator/object_forms", "GEN-014", needs=("generator",))
def a_generator_is_made_from_every_form_of_device(dev: Device) -> None:
    """torch.Generator takes a string, a torch.device, with and without an index."""
    for form in (dev.type, dev.device(), str(dev.device())):
        assert torch.Generator(device=form).device.type == dev.type
    if dev.has("multi_device"):
        assert torch.Generator(device=dev.device(1)).device == dev.device(1)


@check("generator/clone_state", "GEN-014", needs=("generator",))
def clone_state_gives_a_generator_of_its_own(dev: Device) -> None:
    """clone_state copies seed and position; the two then go separate ways."""
    generator = torch.Generator(device=dev.device()).manual_seed(6)
    torch.rand(5, device=dev.device(), generator=generator)
    other = generator.clone_state()
    expected = torch.rand(8, device=dev.device(), generator=generator)
    torch.rand(8, device=dev.device(), generator=generator)
    assert other.initial_seed() == 6
    assert _same(torch.rand(8, device=dev.device(), generator=other), expected)
    last = torch.Generator(device=dev.device(dev.count - 1) if dev.is_accelerator else "cpu")
    assert last.clone_state().device == last.device


@check("generator/device_object", "GEN-014", needs=("generator", "multi_device"))
def generators_of_two_devices_are_independent(dev: Device) -> None:
    """Drawing by a generator of one device changes no generator of another, whatever is current."""
    last = dev.count - 1
    first, second = (torch.Generator(device=dev.device(i)).manual_seed(9) for i in (0, last))
    assert (first.device.index, second.device.index) == (0, last)
    before = second.get_state()
    torch.rand(9, device=dev.device(0), generator=first)
    assert torch.equal(second.get_state(), before), "it moved with the other device's"
    kept, default = first.get_state(), rng_state(dev, last)
    drawn = torch.rand(9, device=dev.device(last), generator=second)
    assert torch.equal(first.get_state(), kept), "it moved with the other device's"
    assert torch.equal(rng_state(dev, last), default), "the default generator moved"
    second.set_state(before)
    with dev.device(last):
        assert _same(torch.rand(9, device=dev.device(last), generator=second), drawn)
    assert second.clone_state().device == second.device


def _sharing(dev: Device, index: int = 0) -> list[torch.Generator]:
    """Two generators of one device, in the middle of different sequences, that share a state."""
    first, second = (torch.Generator(device=dev.device(index)).manual_seed(k) for k in (6, 7))
    torch.rand(5, device=dev.device(index), generator=first)
    try:
        second.graphsafe_set_state(first.graphsafe_get_state())
    except (NotImplementedError, RuntimeError) as error:
        if isinstance(error, NotImplementedError) or "not supported" in str(error):
            dev.unsupported("generators do not share their states")
        raise
    return [first, second]


@check("generator/shared_state:draws", "GEN-024", needs=("generator",))
def generators_of_one_state_draw_one_sequence(dev: Device) -> None:
    """Two generators that share a state go on where the other one stopped, in turns."""
    pair = _sharing(dev)
    alone = pair[0].clone_state()
    for generator in (*pair, *reversed(pair)):
        drawn = torch.rand(8, device=dev.device(), generator=generator)
        assert _same(drawn, torch.rand(8, device=dev.device(), generator=alone))


@check("generator/shared_state:seed", "GEN-024", needs=("generator",))
def generators_of_one_state_have_one_seed(dev: Device) -> None:
    """A seed or a state that one of two generators of one state gets is the other one's, too."""
    for setting, other in permutations(_sharing(dev)):
        setting.manual_seed(41)
        assert other.initial_seed() == 41
        state = setting.get_state()
        drawn = torch.rand(8, device=dev.device(), generator=other)
        setting.set_state(state)
        assert torch.equal(other.get_state(), state)
        assert _same(torch.rand(8, device=dev.device(), generator=other), drawn)


@check("generator/shared_state:clone", "GEN-024", needs=("generator",))
def clones_of_a_shared_state_are_their_own(dev: Device) -> None:
    """A clone of a generator that shares its state does not share it."""
    first, second = _sharing(dev)
    clone = second.clone_state()
    before = clone.get_state()
    torch.rand(8, device=dev.device(), generator=first)
    assert torch.equal(clone.get_state(), before), "the clone moved with the others"
    kept = first.get_state()
    torch.rand(8, device=dev.device(), generator=clone)
    assert torch.equal(second.get_state(), kept), "the others moved with the clone"


@check("generator/shared_state:outlives", "GEN-024", needs=("generator",))
def a_shared_state_outlives_the_generator_it_came_from(dev: Device) -> None:
    """A generator goes on when the one that it shared the state with is gone, or shares another."""
    first, second = _sharing(dev)
    alone = first.clone_state()
    first.graphsafe_set_state(torch.Generator(device=dev.device()).graphsafe_get_state())
    torch.rand(8, device=dev.device(), generator=first)
    del first
    drawn = torch.rand(8, device=dev.device(), generator=second)
    assert _same(drawn, torch.rand(8, device=dev.device(), generator=alone))


@check("generator/default", "GEN-015", needs=("generator",))
def the_default_generator_is_the_one_that_draws(dev: Device) -> None:
    """Passing the default generator explicitly is the same as passing none."""
    torch.manual_seed(71)
    expected = torch.rand(8, device=dev.device())
    torch.manual_seed(71)
    actual = torch.rand(8, device=dev.device(), generator=default_generator(dev))
    assert _same(actual, expected)
    drawn = default_generator(dev).get_state()
    torch.manual_seed(71)
    assert not torch.equal(drawn, default_generator(dev).get_state())


@check("generator/default_generators", "GEN-015", needs=("generator", "accelerator"))
def there_is_one_default_generator_for_each_device(dev: Device) -> None:
    """<module>.default_generators has one entry for each device, on that device."""
    assert dev.module is not None
    generators = dev.module.default_generators
    assert len(generators) == dev.count
    for index in range(min(dev.count, 4)):
        assert generators[index].device == dev.device(index)
    # The objects of Python may be others each time; what they stand for may not.
    generators[0].manual_seed(83)
    assert dev.module.default_generators[0].initial_seed() == 83


@check("generator/offset", "GEN-016", needs=("generator", "generator_offset"))
def the_offset_is_the_position_in_the_sequence(dev: Device) -> None:
    """get_offset grows with every draw, set_offset goes back, manual_seed starts from zero."""
    generator = torch.Generator(device=dev.device()).manual_seed(9)
    assert generator.get_offset() == 0
    torch.rand(8, device=dev.device(), generator=generator)
    position = generator.get_offset()
    assert position > 0
    expected = torch.rand(8, device=dev.device(), generator=generator)
    assert generator.get_offset() > position
    generator.set_offset(position)
    assert generator.get_offset() == position
    assert _same(torch.rand(8, device=dev.device(), generator=generator), expected)
    generator.manual_seed(9)
    assert generator.get_offset() == 0


@check("generator/offset_in_state", "GEN-016", needs=("generator", "generator_offset"))
def the_offset_is_part_of_the_state(dev: Device) -> None:
    """A restored state restores the offset, and the offset advances enough for a large draw."""
    generator = torch.Generator(device=dev.device()).manual_seed(9)
    torch.rand(8, device=dev.device(), generator=generator)
    state, position = generator.get_state(), generator.get_offset()
    torch.rand(8, device=dev.device(), generator=generator)
    generator.set_state(state)
    assert generator.get_offset() == position
    large = torch.rand(100_000, device=dev.device(), generator=generator)
    after = torch.rand(100_000, device=dev.device(), generator=generator)
    # An offset that advances too little makes the second draw repeat the tail of the first.
    tail = set(large[-1000:].tolist())
    assert len(tail & set(after[:1000].tolist())) < 10


#: Offsets around the limits of counters of fewer bits.
_OFFSETS = (0, 2**31, 2**32 - 4, 2**32, 2**33, 2**48, 2**62)


@check("generator/offset_limits", "GEN-016", needs=("generator", "generator_offset"))
def offsets_have_64_bits(dev: Device) -> None:
    """Offsets that differ above bit 31 only give different numbers, and pass the limits."""
    generator = torch.Generator(device=dev.device()).manual_seed(9)
    drawn: dict[int, tuple[float, ...]] = {}
    for offset in _OFFSETS:
        generator.set_offset(offset)
        assert generator.get_offset() == offset
        drawn[offset] = tuple(torch.rand(8, device=dev.device(), generator=generator).tolist())
        after = generator.get_offset()
        assert after > offset, f"{after} follows {offset}"
        expected = torch.rand(8, device=dev.device(), generator=generator)
        other = torch.Generator(device=dev.device()).manual_seed(9)
        other.set_offset(after)
        assert _same(torch.rand(8, device=dev.device(), generator=other), expected)
    assert len(set(drawn.values())) == len(drawn), "different offsets gave the same numbers"


@check("generator/offset_limits:last", "GEN-016", needs=("generator", "generator_offset"))
def the_last_offsets_are_kept_or_refused(dev: Device) -> None:
    """An offset near 2**64 is refused, or kept and in the state, and draws still give numbers."""
    generator = torch.Generator(device=dev.device()).manual_seed(9)
    for offset in (2**64 - 4, 2**63, 2**63 - 4):
        try:
            generator.set_offset(offset)
        except (RuntimeError, ValueError, OverflowError):
            continue
        assert generator.get_offset() == offset
        other = torch.Generator(device=dev.device())
        other.set_state(generator.get_state())
        assert other.get_offset() == offset, "the state lost the offset"
        values = torch.rand(64, device=dev.device(), generator=generator).tolist()
        assert all(0 <= value < 1 for value in values)
        assert len(set(values)) > 32


_COPIES: dict[str, Callable[[torch.Generator], torch.Generator]] = {
    "pickle": lambda generator: pickle.loads(pickle.dumps(generator)),
    "deepcopy": copy.deepcopy,
}


@check("generator/deepcopy", "GEN-017", needs=("generator",), cases=_COPIES)
def generators_can_be_copied_as_objects(dev: Device, case: str) -> None:
    """A pickled or deep-copied generator continues as the original would."""
    generator = torch.Generator(device=dev.device()).manual_seed(12)
    torch.rand(3, device=dev.device(), generator=generator)
    other = _COPIES[case](generator)
    expected = torch.rand(8, device=dev.device(), generator=generator)
    assert other.device.type == dev.type
    assert _same(torch.rand(8, device=dev.device(), generator=other), expected)


# ---- distributions ---------------------------------------------------------------------------

_MANY = 40_000


def _near(value: float, expected: float, deviation: float, count: int = _MANY) -> bool:
    """Whether a mean of `count` values with that deviation is within six standard errors."""
    return abs(value - expected) <= 6 * deviation / math.sqrt(count)


def _host(values: torch.Tensor) -> torch.Tensor:
    return values.cpu().double()


@check(
    "generator/uniform",
    "GEN-018",
    needs=("generator",),
    dtypes=("float16", "bfloat16", "float32", "float64"),
)
def uniform_numbers_fill_the_half_open_interval(dev: Device, dtype: torch.dtype) -> None:
    """rand lies in [0, 1), with the mean, variance and range of the uniform distribution."""
    torch.manual_seed(2)
    values = torch.rand(_MANY, dtype=dtype, device=dev.device())
    assert values.dtype == dtype
    host = _host(values)
    assert float(host.min()) >= 0.0
    assert float(host.max()) < 1.0
    slack = torch.finfo(dtype).eps
    assert abs(float(host.mean()) - 0.5) <= 6 * 0.2887 / math.sqrt(_MANY) + slack
    assert abs(float(host.var()) - 1 / 12) < 0.01
    counts = torch.histc(host, 16, 0.0, 1.0)
    assert float(counts.min()) > 0.8 * _MANY / 16
    assert float(counts.max()) < 1.2 * _MANY / 16


@check(
    "generator/normal", "GEN-018", needs=("generator",), dtypes=("float16", "float32", "float64")
)
def normal_numbers_have_the_moments_of_the_normal_distribution(
    dev: Device, dtype: torch.dtype
) -> None:
    """randn has mean 0, variance 1, no skew and the kurtosis of the normal distribution."""
    torch.manual_seed(2)
    host = _host(torch.randn(_MANY, dtype=dtype, device=dev.device()))
    assert bool(host.isfinite().all())
    assert _near(float(host.mean()), 0.0, 1.0)
    assert abs(float(host.var()) - 1.0) < 0.05
    assert abs(float((host**3).mean())) < 0.12
    assert abs(float((host**4).mean()) - 3.0) < 0.3


@check("generator/correlation", "GEN-018", needs=("generator",), cases=("rand", "randn"))
def neighbouring_numbers_are_not_correlated(dev: Device, case: str) -> None:
    """The first autocorrelations of a draw, and between two draws, are near zero."""
    torch.manual_seed(2)
    draw = getattr(torch, case)
    first, second = (_host(draw(_MANY, device=dev.device())) for _ in range(2))
    centred, other = first - first.mean(), second - second.mean()
    variance = float((centred**2).mean())
    for lag in (1, 2, 4, 32, 256):
        correlation = float((centred[lag:] * centred[:-lag]).mean()) / variance
        assert abs(correlation) < 0.05, f"lag {lag}"
    assert abs(float((centred * other).mean())) / variance < 0.05, "between two draws"


@check("generator/bernoulli", "GEN-018", needs=("generator",))
def bernoulli_honours_its_probability(dev: Device) -> None:
    """bernoulli gives 0 and 1 with the asked rate; 0 and 1 are exact."""
    torch.manual_seed(2)
    for p in (0.0, 0.25, 0.9, 1.0):
        host = _host(torch.empty(_MANY, device=dev.device()).bernoulli_(p))
        assert set(host.unique().tolist()) <= {0.0, 1.0}
        assert _near(float(host.mean()), p, math.sqrt(p * (1 - p)))
    chances = torch.tensor([0.0, 1.0], device=dev.device()).repeat(100)
    assert torch.equal(torch.bernoulli(chances).cpu(), chances.cpu())


@check("generator/randint", "GEN-018", needs=("generator",))
def randint_covers_its_range(dev: Device) -> None:
    """randint takes every value of [low, high) and no other, evenly."""
    torch.manual_seed(2)
    values = torch.randint(-3, 5, (_MANY,), device=dev.device())
    assert values.dtype == torch.int64
    counts = torch.bincount(values.cpu() + 3, minlength=8)
    assert counts.numel() == 8
    assert int(counts.min()) > 0.85 * _MANY / 8
    wide = torch.randint(0, 2**40, (1000,), device=dev.device())
    assert int(wide.max()) >= 2**32, "the high bits are never set"


@check("generator/randperm", "GEN-018", needs=("generator",))
def randperm_is_a_permutation(dev: Device) -> None:
    """randperm(n) holds each of 0..n-1 once, in an order that is not the identity."""
    torch.manual_seed(2)
    for n in (0, 1, 2, 1000):
        values = torch.randperm(n, device=dev.device()).cpu()
        assert torch.equal(values.sort().values, torch.arange(n))
    assert not torch.equal(values, torch.arange(1000))


@check("generator/multinomial", "GEN-018", needs=("generator",))
def multinomial_honours_weights(dev: Device) -> None:
    """multinomial never draws weight 0, follows the weights, and can draw without replacement."""
    torch.manual_seed(2)
    weights = torch.tensor([0.0, 1.0, 3.0, 0.0, 4.0], device=dev.device())
    drawn = torch.multinomial(weights, _MANY, replacement=True).cpu()
    counts = torch.bincount(drawn, minlength=5)
    assert counts[0] == 0
    assert counts[3] == 0
    assert abs(int(counts[4]) / _MANY - 0.5) < 0.03
    assert sorted(torch.multinomial(weights, 3).tolist()) == [1, 2, 4]


@check("generator/exponential", "GEN-018", needs=("generator",))
def exponential_numbers_are_positive(dev: Device) -> None:
    """exponential_(rate) is positive and finite with mean 1/rate."""
    torch.manual_seed(2)
    host = _host(torch.empty(_MANY, device=dev.device()).exponential_(2.0))
    assert float(host.min()) > 0.0
    assert bool(host.isfinite().all())
    assert _near(float(host.mean()), 0.5, 0.5)


#: Views of a matrix of 16 x 24.
_VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": lambda base: base.t()[:10],
    "sliced": lambda base: base[1::3, ::2],
    "offset": lambda base: base.flatten()[5:77],
}


@check("generator/strided", "GEN-019", needs=("generator",), cases=_VIEWS)
def random_fills_honour_strides(dev: Device, case: str) -> None:
    """An in-place draw into a view fills the view and nothing else."""
    torch.manual_seed(2)
    base = torch.full((16, 24), -1.0, device=dev.device())
    view = _VIEWS[case](base)
    view.uniform_()
    host = view.cpu()
    assert float(host.min()) >= 0.0
    assert host.unique().numel() > host.numel() // 2
    assert int((base.cpu() == -1.0).sum()) == base.numel() - view.numel()


@check("generator/empty", "GEN-019", needs=("generator",))
def drawing_no_numbers_works(dev: Device) -> None:
    """Random operators accept tensors without elements."""
    assert torch.rand(0, 3, device=dev.device()).shape == (0, 3)
    assert torch.empty(0, device=dev.device()).normal_().numel() == 0
    assert torch.randint(0, 5, (0,), device=dev.device()).numel() == 0


# ---- users -----------------------------------------------------------------------------------


@check("generator/dropout", "GEN-020", needs=("generator",))
def dropout_zeroes_at_its_rate_and_scales_the_rest(dev: Device) -> None:
    """dropout(p) zeroes with probability p, scales by 1/(1-p), and is the identity in eval."""
    torch.manual_seed(2)
    x = torch.ones(_MANY, device=dev.device())
    host = _host(functional.dropout(x, 0.25))
    kept = host[host != 0]
    assert _near(kept.numel() / _MANY, 0.75, 0.433)
    assert torch.allclose(kept, torch.full_like(kept, 1 / 0.75), atol=1e-6)
    dev.assert_equal(functional.dropout(x, 0.25, training=False), torch.ones(_MANY))
    dev.assert_equal(functional.dropout(x, 1.0), torch.zeros(_MANY))
    dev.assert_equal(functional.dropout(x, 0.0), torch.ones(_MANY))


@check("generator/dropout_backward", "GEN-020", needs=("generator",))
def the_backward_of_dropout_uses_the_forward_mask(dev: Device) -> None:
    """Gradients are zero exactly where dropout zeroed the value, and scaled alike elsewhere."""
    torch.manual_seed(2)
    x = torch.ones(1000, device=dev.device(), requires_grad=True)
    out = functional.dropout(x, 0.5)
    out.sum().backward()
    assert x.grad is not None
    dev.assert_equal(x.grad, out.detach().cpu())


def _checkpoint_replays(dev: Device, where: torch.device, *, reentrant: bool) -> None:
    """A checkpoint with dropout is recomputed with the mask of the forward pass."""
    torch.manual_seed(2)
    torch.rand(3, device=where)  # which other devices have not drawn
    x = torch.ones(1000, device=where, requires_grad=True)
    out: Any = checkpoint(lambda x: functional.dropout(x * 2, 0.5), x, use_reentrant=reentrant)
    torch.rand(7, device=where)
    torch.rand(7)
    out.sum().backward()
    assert x.grad is not None
    dev.assert_equal(x.grad, out.detach().cpu())


_REENTRANT = {"reentrant": True, "non_reentrant": False}


@check("generator/checkpoint", "GEN-021", needs=("generator",), cases=_REENTRANT)
def activation_checkpointing_replays_dropout(dev: Device, case: str) -> None:
    """torch.utils.checkpoint recomputes with the random state of the forward pass."""
    _checkpoint_replays(dev, dev.device(), reentrant=_REENTRANT[case])


@check("generator/checkpoint:other_device", "GEN-021", needs=("generator",))
def activation_checkpointing_replays_dropout_of_another_device(dev: Device) -> None:
    """torch.utils.checkpoint restores the random state of a device that is not current, too."""
    dev.require("multi_device")
    _checkpoint_replays(dev, dev.device(1), reentrant=False)


@check("generator/init", "GEN-001", needs=("generator",))
def module_initialisation_is_reproducible_on_the_device(dev: Device) -> None:
    """A module made on the device after the same seed has the same parameters, within bounds."""

    def make() -> torch.nn.Module:
        torch.manual_seed(44)
        return torch.nn.Linear(16, 16, device=dev.device())

    first, second = make(), make()
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert _same(one.detach(), other.detach())
        assert float(one.detach().abs().max()) <= 0.25
        assert one.detach().unique().numel() > 1
