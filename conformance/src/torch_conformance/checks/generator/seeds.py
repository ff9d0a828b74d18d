# SPDX-License-Identifier: BSD-3-Clause
"""The same seed gives the same numbers, another seed others, and every seed of 64 bits counts."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import AT_ONCE, Device, check, ends, raised
from torch_conformance.checks._random_operators import ALL, DRAW_NEEDS
from torch_conformance.checks._random_state import default_generator, same


@check("generator/seed", "GEN-001", needs=("generator",), cases=ALL, case_needs=DRAW_NEEDS)
def the_same_seed_gives_the_same_numbers(dev: Device, case: str) -> None:
    """torch.manual_seed makes every random operator repeat itself, and calls after it go on."""
    torch.manual_seed(1234)
    first, second = (ALL[case](dev.device(), None) for _ in range(2))
    torch.manual_seed(1234)
    again = ALL[case](dev.device(), None)
    assert same(first, again), "the same seed gave other numbers"
    assert not same(first, second), "two draws in a row are equal: the state does not advance"


@check(
    "generator/other_seed",
    "GEN-002",
    needs=("generator",),
    cases=ALL,
    case_needs=DRAW_NEEDS,
)
def another_seed_gives_other_numbers(dev: Device, case: str) -> None:
    """Different seeds give different numbers."""
    torch.manual_seed(1)
    first = ALL[case](dev.device(), None)
    torch.manual_seed(2)
    assert not same(first, ALL[case](dev.device(), None))


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
        assert same(*drawn), "after seed() the sequence does not begin at its start"
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
        name: draw for name, draw in ALL.items() if dev.has(DRAW_NEEDS.get(name, "generator"))
    }
    for name, first, second in zip(present, sequence(), sequence(), strict=True):
        assert torch.equal(first, second), name


@check("generator/init", "GEN-001", needs=("generator",))
def module_initialisation_is_reproducible_on_the_device(dev: Device) -> None:
    """A module made on the device after the same seed has the same parameters, within bounds."""

    def make() -> torch.nn.Module:
        torch.manual_seed(44)
        return torch.nn.Linear(16, 16, device=dev.device())

    first, second = make(), make()
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert same(one.detach(), other.detach())
        assert float(one.detach().abs().max()) <= 0.25
        assert one.detach().unique().numel() > 1
