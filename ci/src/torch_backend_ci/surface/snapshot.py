# SPDX-License-Identifier: BSD-3-Clause
"""Take the snapshot of a torch: every extractor, two at a time, or the cache."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import TypeVar

from torch_backend_ci.errors import CiError
from torch_backend_ci.output import say
from torch_backend_ci.surface import snapshot_cache, snapshot_file
from torch_backend_ci.surface.catalogue import Catalogue, load
from torch_backend_ci.surface.model import Declaration, Domain, Snapshot, Torch
from torch_backend_ci.torch_tree import TorchTree

PROCESSES = 2
_PR_SET_PDEATHSIG = 1  # of prctl(2)

Progress = Callable[[str], None]
Part = list[Declaration]  # what a task gives
Task = tuple[set[Domain], Callable[[], Part]]  # for the sake of which domains, and how
T = TypeVar("T")


def take(
    tree: TorchTree,
    cache: Path | None = None,
    *,
    catalogue: Catalogue | None = None,
    progress: Progress = say,
    domains: Collection[Domain] | None = None,
) -> Snapshot:
    """The snapshot of a torch tree, read or out of the directory `cache` if one is given.

    One of only some `domains` is always read.
    """
    catalogue = catalogue or load()
    if cache is None or domains is not None:
        return read_tree(tree, catalogue, progress, domains)
    entry = snapshot_cache.entry(cache, tree, catalogue)
    if (known := snapshot_cache.get(entry)) is not None:
        progress(f"torch {tree.version}: unchanged since it was last read ({entry})")
        return known
    snapshot = read_tree(tree, catalogue, progress)
    snapshot_cache.put(entry, snapshot, progress)
    return snapshot


def read_tree(
    tree: TorchTree,
    catalogue: Catalogue,
    progress: Progress = say,
    domains: Collection[Domain] | None = None,
) -> Snapshot:
    """Read all that the tree has of the `domains` (default: of every one); each task in a process
    of its own, because clang's memory is not small."""
    read = _domains(tree) if domains is None else _domains(tree) & set(domains)
    doing = tasks(tree, catalogue, read)
    parts: dict[str, Part] = {}
    begun = time.monotonic()
    progress(f"torch {tree.version}: reading {', '.join(doing)}")
    for name, part in in_processes(doing):
        parts[name] = part
        progress(f"  {time.monotonic() - begun:5.1f} s  {name}: {len(part)}")
    return assemble(tree, read, parts)


def assemble(tree: TorchTree, domains: Collection[Domain], parts: Mapping[str, Part]) -> Snapshot:
    """The snapshot of what the tasks gave, in an order of its own."""
    declarations = [declaration for part in parts.values() for declaration in part]
    return Snapshot(
        Torch(tree.version, tree.git_version),
        frozenset(domains),
        tuple(sorted(declarations, key=snapshot_file.order)),
    )


def _domains(tree: TorchTree) -> set[Domain]:
    return set(Domain) - ({Domain.SYMBOL} if tree.libraries is None else set())


def tasks(
    tree: TorchTree,
    catalogue: Catalogue,
    domains: Collection[Domain],
    alone: Sequence[str] | None = None,
    *,
    plain: bool = False,
) -> dict[str, Callable[[], Part]]:
    """What there is to do for the `domains`, the longest first.

    If they are given, only the headers `alone` are tried alone; C++ is read, if `plain`, by the
    plain profile only.
    """
    from torch_backend_ci.surface.extract import (
        cpp,
        device_module,
        headers,
        operators,
        python_api,
        symbols,
    )

    profiles = cpp.PROFILES[:1] if plain else cpp.PROFILES
    of_cpp = partial(cpp.extract, tree, catalogue, profiles=profiles)
    every: dict[str, Task] = {
        "headers": ({Domain.HEADER}, partial(headers.extract, tree, catalogue, headers=alone)),
        "Python": ({Domain.PYTHON}, partial(python_api.extract, tree, catalogue)),
        "C++": ({Domain.CPP}, of_cpp),
        "device module": ({Domain.DEVICE_MODULE}, partial(device_module.extract, tree, catalogue)),
        "operators": ({Domain.OPERATOR}, partial(operators.extract, tree, catalogue)),
        "symbols": ({Domain.SYMBOL}, partial(symbols.extract, tree, catalogue)),
    }
    return {name: do for name, (of, do) in every.items() if not of.isdisjoint(domains)}


def in_processes(tasks: Mapping[str, Callable[[], T]]) -> Iterator[tuple[str, T]]:
    """Name and result of each task as it ends; the first failure ends them all."""
    with ThreadPoolExecutor(PROCESSES) as threads:
        futures = {threads.submit(_in_process, task): name for name, task in tasks.items()}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise CiError(
                "a process that was reading the torch died, perhaps for want of memory (2 GB)"
            ) from error
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _in_process(task: Callable[[], T]) -> T:
    """One new process for one task: clang does not give all of its memory back, and a fork does
    not get along with its threads. (max_tasks_per_child does the same, and loses processes in
    Python 3.11.)"""
    context = multiprocessing.get_context("spawn")
    begin = partial(_end_with, os.getpid())
    with ProcessPoolExecutor(1, mp_context=context, initializer=begin) as process:
        return process.submit(task).result()


def _end_with(parent: int) -> None:
    """Let the kernel end this process when its parent ends, by whatever signal.

    PR_SET_PDEATHSIG is about the thread that started this process, which waits for its result.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it had ended before
        os._exit(1)
