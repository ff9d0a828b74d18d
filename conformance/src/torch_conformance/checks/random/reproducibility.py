# SPDX-License-Identifier: BSD-3-Clause
"""The same seed gives the same numbers in every process, thread, stream and generator."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, check, raised, why_ended
from torch_conformance.checks._random_operators import ALL, DRAW_NEEDS, DRAWS
from torch_conformance.checks._random_state import rng_state
from torch_conformance.checks.random._draws import LARGE, LARGE_NEEDS

_ROOT = str(Path(__file__).resolve().parents[3])


def _generator(dev: Device, seed: int, index: int | None = None) -> torch.Generator:
    return torch.Generator(device=dev.device(index)).manual_seed(seed)


def digests(device: torch.device) -> dict[str, str]:
    """A digest of what every random operator draws after the same seed."""
    drawn = {}
    for name, draw in ALL.items():
        torch.manual_seed(2024)
        drawn[name] = _digest(draw(device, None))
    for name, draw_large in LARGE.items():
        torch.manual_seed(2024)
        drawn[f"{name}, large"] = _digest(draw_large(device))
    return drawn


def _digest(values: Tensor) -> str:
    return hashlib.sha256(values.cpu().contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


_PROGRAM = """
import json, torch
from torch_conformance.checks.random.reproducibility import digests
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
    "random/threads", "RAND-001", needs=("generator",), cases=tuple(LARGE), case_needs=LARGE_NEEDS
)
def the_thread_count_does_not_matter(dev: Device, case: str) -> None:
    """torch.set_num_threads changes nothing in what is drawn."""
    threads = torch.get_num_threads()
    drawn = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            torch.manual_seed(6)
            drawn.append(LARGE[case](dev.device()).cpu())
    finally:
        torch.set_num_threads(threads)
    dev.assert_equal(drawn[1], drawn[0])


@check(
    "random/stream",
    "RAND-002",
    needs=("generator", "streams"),
    cases=tuple(ALL),
    case_needs=DRAW_NEEDS,
)
def the_stream_does_not_matter(dev: Device, case: str) -> None:
    """The same seed gives the same numbers on a side stream, and later draws go on from there."""
    torch.manual_seed(7)
    expected = [ALL[case](dev.device(), None).cpu() for _ in range(2)]
    torch.manual_seed(7)
    with dev.stream() as side:
        first = ALL[case](dev.device(), None)
    side.synchronize()
    second = ALL[case](dev.device(), None)
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
