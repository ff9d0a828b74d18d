# SPDX-License-Identifier: BSD-3-Clause
"""The processes in which a worker runs a program as the ranks of a group."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from processes import wait_until_gone

from torch_conformance.authoring import ranks
from torch_conformance.authoring.api import on_ranks
from torch_conformance.authoring.device import Device
from torch_conformance.authoring.discovery import import_checks
from torch_conformance.spec import descriptor

PROGRAMS = """
import os, time

def numbers(rank):
    return os.getpid(), os.getppid()

def one_dies(rank):
    if rank.index == 1:
        os._exit(3)
    return os.getpid(), os.getppid()

def one_hangs(rank):
    if rank.index == 1:
        open(PID, "w").write(str(os.getpid()))
        time.sleep(600)

def known(rank):
    return sorted(rank.dev.capabilities)
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    file = tmp_path_factory.mktemp("ranks") / "programs_of_ranks.py"
    file.write_text(f"PID = {str(file.with_name('pid'))!r}\n{PROGRAMS}")
    import_checks(file)
    (name,) = (name for name in sys.modules if name.endswith(f".{file.stem}"))
    return sys.modules[name]


@pytest.fixture(scope="module")
def dev(programs: ModuleType) -> Iterator[Device]:
    made = Device(descriptor.find("cpu"), torch.device("cpu"))
    on_ranks(made, programs.numbers)
    yield made
    ranks._pools.pop("cpu").close()
    nursery = ranks._nurseries.pop("cpu")
    nursery.kill()
    nursery.wait()


def test_ranks_are_kept_for_the_next_program(dev: Device, programs: ModuleType) -> None:
    assert on_ranks(dev, programs.numbers) == on_ranks(dev, programs.numbers)


def test_ranks_after_a_dead_one_are_others_of_the_same_interpreter(
    dev: Device, programs: ModuleType
) -> None:
    before = on_ranks(dev, programs.numbers)
    nursery = ranks._nurseries["cpu"].pid

    survivor, dead = on_ranks(dev, programs.one_dies, dying=frozenset({1}))

    assert survivor == before[0]
    assert isinstance(dead, ranks.Died)
    assert wait_until_gone(pid for pid, _ in before) == set()
    after = on_ranks(dev, programs.numbers)
    assert {pid for pid, _ in before}.isdisjoint(pid for pid, _ in after)
    assert ranks._nurseries["cpu"].pid == nursery


def test_ranks_that_hang_are_ended(dev: Device, programs: ModuleType) -> None:
    with pytest.raises(AssertionError, match=r"after 3 s, rank 1 of 2 has not ended"):
        on_ranks(dev, programs.one_hangs, limit=3.0)
    assert wait_until_gone([int(Path(programs.PID).read_text())]) == set()


def test_a_nursery_that_died_is_replaced(dev: Device, programs: ModuleType) -> None:
    on_ranks(dev, programs.numbers)
    nursery = ranks._nurseries["cpu"]
    nursery.kill()
    nursery.wait()
    ranks._pools["cpu"].close()
    assert len(on_ranks(dev, programs.numbers)) == 2


def test_ranks_know_the_capabilities_that_the_worker_learned(
    dev: Device, programs: ModuleType
) -> None:
    on_ranks(dev, programs.known)
    dev.capabilities = frozenset({"collectives", "ipc"})
    assert on_ranks(dev, programs.known) == [["collectives", "ipc"]] * 2
