# SPDX-License-Identifier: BSD-3-Clause
"""A liar: puone with one defect, as a descriptor that the suite can judge. And all there are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import mutate
import yaml
from suites import LIBRARIES, ROOT
from telling import LIES

from conformance import descriptor
from conformance.catalogue import Requirement
from conformance.descriptor import Deadlines, Descriptor

HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "liars"
BACKEND = "puone"

#: Where a lie is told: the vehicle by which it gets into the backend.
DISPATCH, PLANTED, SOURCE, HAL, CLAIM = "dispatch", "planted", "source", "hal", "claim"

# A liar that hangs is noticed after this many seconds, unless a check needs more by itself.
DEADLINES = Deadlines(startup=60, check=15)


@dataclass(frozen=True)
class Liar:
    """One defect, and the requirements, by the checks, that must catch it."""

    id: str
    layer: str
    vehicle: str
    lie: str
    requirements: tuple[str, ...]
    checks: tuple[str, ...] = ()
    """Patterns; none: every check of the requirements but the OpInfo tier's."""
    env: dict[str, str] = field(default_factory=dict)
    capabilities: dict[str, bool] = field(default_factory=dict)
    setup: str | None = None
    package: Path | None = None
    """The folder from which it imports reference_backend, if not from the checkout."""
    cannot_load: str | None = None
    """What the suite must say where the backend is not to come up at all."""

    @property
    def honest(self) -> Liar:
        """The same vehicle without the lie: the truth, for comparison."""
        env = {**self.env, "PUONE_LIE": "", "PUONE_LIAR": "none"}
        return replace(self, id=f"truth_{self.vehicle}", env=env, capabilities={}, cannot_load=None)

    def descriptor(self) -> Descriptor:
        """The backend as it is declared to the suite."""
        true = descriptor.find(BACKEND)
        path = [*([self.package] if self.package else []), ROOT, HERE / "backend"]
        return replace(
            true,
            name=self.id,
            file=None,
            setup=self.setup,
            deadlines=DEADLINES,
            env={**self.env, "PYTHONPATH": os.pathsep.join(map(str, path))},
            capabilities=true.capabilities | self.capabilities,
        )

    def surfaces(self, catalogue: dict[str, Requirement]) -> set[str]:
        """The surfaces of its requirements."""
        return {catalogue[id].surface for id in self.requirements}


def load() -> dict[str, Liar]:
    """Every liar by id; raises ValueError where two have the same."""
    found: dict[str, Liar] = {}
    for liar in (*_backend(), *_hal(), *_sources()):
        if liar.id in found:
            raise ValueError(f"two liars are called {liar.id}")
        found[liar.id] = liar
    return found


def _backend() -> Iterator[Liar]:
    for id, told in LIES.items():
        yield Liar(
            id,
            "python" if told.planted else "operators",
            PLANTED if told.planted else DISPATCH,
            told.text,
            told.requirements,
            told.checks,
            env={"PUONE_LIE": id},
            setup="telling:set_up" if told.planted else "telling:set_up_operators",
        )


def _hal() -> Iterator[Liar]:
    for id, fields in yaml.safe_load((HERE / "hal" / "liars.yaml").read_text())["liars"].items():
        yield Liar(
            id,
            "hal",
            HAL,
            fields["lie"],
            tuple(fields["conformance"]),
            tuple(fields["checks"]),
            env={
                "PUONE_LIAR": id,
                "PUONE_LIAR_TARGET": str(LIBRARIES / "libpuone_sim.so"),
                "PUONE_DRIVER": str(LIBRARIES / "libpuone_liar.so"),
            },
        )


def _sources() -> Iterator[Liar]:
    for id, mutation in mutate.load().items():
        yield Liar(
            id,
            mutation.layer,
            SOURCE,
            mutation.lie,
            mutation.requirements,
            mutation.checks,
            env={"PUONE_LIE": id},
            package=BUILD / "package" / (id if mutation.in_python else "all"),
        )


def make_packages(liars: Iterable[Liar]) -> None:
    """Write the packages from which liars are imported: links to the checkout, and their lies."""
    mutations = mutate.load()
    for liar in liars:
        if liar.package:
            mutation = mutations.get(liar.id)
            told = mutation if mutation is not None and mutation.in_python else None
            _make_package(liar.package / "reference_backend", told)


def _make_package(folder: Path, told: mutate.Mutation | None) -> None:
    original = ROOT / "reference_backend"
    folder.mkdir(parents=True, exist_ok=True)
    files = [*original.glob("*.py"), *(BUILD / "lib").glob("_C.*")]
    for old in folder.glob("*.*"):
        old.unlink()
    for file in files:
        if told is not None and file == ROOT / told.file:
            (folder / file.name).write_text(mutate.mutated(file.read_text(), [told]))
        else:
            (folder / file.name).symlink_to(file)
