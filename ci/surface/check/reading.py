# SPDX-License-Identifier: BSD-3-Clause
"""Read a changed torch, and where the change makes something unreadable, read the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from ci.errors import CiError
from ci.surface import snapshot
from ci.surface.catalogue import Catalogue
from ci.surface.check import broken
from ci.surface.check.reach import Includes
from ci.surface.model import Declaration, Domain, Snapshot
from ci.torch_tree import TorchTree

Progress = Callable[[str], None]

HEADERS = frozenset({Domain.CPP, Domain.HEADER})
# What is read together, and so is lost together.
GROUPS = (HEADERS, {Domain.PYTHON, Domain.DEVICE_MODULE}, {Domain.OPERATOR})
# Without the headers that do not compile, others may turn out not to either.
ATTEMPTS = 3


@dataclass
class Reading:
    """What could be read, and what not."""

    declarations: list[Declaration] = field(default_factory=list)
    faults: list[broken.Fault] = field(default_factory=list)
    lost: set[Domain] = field(default_factory=set)  # of which nothing could be read
    left_out: set[str] = field(default_factory=set)  # headers that do not compile any more


def read(
    tree: TorchTree,
    domains: Collection[Domain],
    catalogue: Catalogue,
    graph: Includes,
    progress: Progress,
) -> Reading:
    """Read some domains of a tree whose base could be read."""
    reading = Reading()
    for group in GROUPS:
        if wanted := group & set(domains):
            _read(reading, tree, wanted, catalogue, graph, progress)
    return reading


def still_read(before: Snapshot, reading: Reading, graph: Includes) -> Snapshot:
    """The base's snapshot without what could not be read any more: that is not gone."""
    kept = [d for d in before.declarations if d.domain not in reading.lost]
    if reading.left_out:
        files = graph.reached(graph.listed.keys() - reading.left_out)
        kept = [
            d
            for d in kept
            if d.domain not in HEADERS
            or (d.name not in reading.left_out if d.kind == "header" else d.file in files)
        ]
    return replace(before, domains=before.domains - reading.lost, declarations=tuple(kept))


def _read(
    reading: Reading,
    tree: TorchTree,
    wanted: Collection[Domain],
    catalogue: Catalogue,
    graph: Includes,
    progress: Progress,
) -> None:
    for _ in range(ATTEMPTS):
        rest = _without(catalogue, reading.left_out)
        try:
            taken = snapshot.take(tree, catalogue=rest, progress=progress, domains=wanted)
        except CiError as error:
            faults = broken.faults(error, tree)
            if not faults:  # of the environment
                raise
            reading.faults += faults
            worse = graph.including(fault.file for fault in faults) - reading.left_out
            reading.left_out |= worse
            if not worse or not graph.listed.keys() - reading.left_out:
                break
        else:
            reading.declarations += taken.declarations
            return
    reading.lost |= set(wanted)


def _without(catalogue: Catalogue, headers: Collection[str]) -> Catalogue:
    surfaces = (
        replace(surface, headers=tuple(h for h in surface.headers if h not in headers))
        for surface in catalogue.surfaces
    )
    return Catalogue(tuple(surfaces)) if headers else catalogue
