# SPDX-License-Identifier: BSD-3-Clause
"""A liar: puone with one defect, as a descriptor that the suite can judge. And all there are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import mutate
import yaml
from msgspec import UNSET
from suites import LIBRARIES, ROOT, SIM
from telling import LIES, import_all

from torch_conformance.spec import descriptor
from torch_conformance.spec.catalogue import Requirement
from torch_conformance.spec.descriptor import Deadlines, Descriptor, Dtypes, Setup

HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "liars"
BACKEND = "puone"
LIAR = "libpuone_liar.so"

#: Where a lie is told: the vehicle by which it gets into the backend.
DISPATCH, PLANTED, SOURCE, HAL, CLAIM = "dispatch", "planted", "source", "hal", "claim"

#: The package with the library in which all lies are, of which PUONE_LIE tells none or one.
HONEST = BUILD / "package" / "all"

# A liar that hangs is noticed after this many seconds; enough to start fresh interpreters.
DEADLINES = Deadlines(startup=60, check=40)


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
    hal: tuple[str, ...] = ()
    """The requirements of the HAL suite, for a driver."""
    kernel: str | None = None
    """The kernel that it lies about: the known answers of the others are left out."""
    capabilities: dict[str, bool] = field(default_factory=dict)
    unsupported: tuple[str, ...] = ()
    """Data types that its descriptor calls unsupported."""
    setup: str | None = None
    package: Path | None = None
    """The directory from which it imports torch_puone, if not from the checkout."""
    cannot_load: str | None = None
    """What the suite must say where the backend is not to come up at all."""

    @property
    def honest(self) -> Liar:
        """The same vehicle without the lie: the truth, for comparison."""
        env = {**self.env, "PUONE_LIE": "", "PUONE_LIAR": "none"}
        env.pop("PUONE_SIM_DEVICES", None)
        if "PUONE_DRIVER" in env:
            env["PUONE_DRIVER"] = str(LIBRARIES / LIAR)
        return replace(
            self,
            id=f"truth_{self.vehicle}",
            env=env,
            capabilities={},
            unsupported=(),
            cannot_load=None,
            package=HONEST if self.package else None,
        )

    def descriptor(self) -> Descriptor:
        """The backend as it is declared to the suite."""
        true = descriptor.find(BACKEND)
        path = [
            *([self.package] if self.package else []),
            ROOT,
            ROOT / "reference_backend",
            HERE / "backend",
        ]
        return msgspec.structs.replace(
            true,
            name=self.id,
            file=None,
            device=Setup(setup=self.setup or UNSET),
            deadlines=DEADLINES,
            env={**self.env, "PYTHONPATH": os.pathsep.join(map(str, path))},
            capabilities=true.capabilities | self.capabilities,
            dtypes=Dtypes(unsupported=self.unsupported),
        )

    def surfaces(self, catalogue: dict[str, Requirement]) -> set[str]:
        """The surfaces of its requirements."""
        return {catalogue[id].surface for id in self.requirements} | {HAL for _ in self.hal}


def load() -> dict[str, Liar]:
    """Every liar by id; raises ValueError where two have the same."""
    found: dict[str, Liar] = {}
    for liar in (*_backend(), *_hal(), *_sources(), *_claims()):
        if liar.id in found:
            raise ValueError(f"two liars are called {liar.id}")
        found[liar.id] = liar
    return found


def _backend() -> Iterator[Liar]:
    import_all()
    for id, told in LIES.items():
        yield Liar(
            id,
            told.layer or ("python" if told.planted else "operators"),
            PLANTED if told.planted else DISPATCH,
            told.text,
            told.requirements,
            told.checks,
            env={"PUONE_LIE": id, "PUONE_LIE_MODULE": told.tell.__module__},
            setup="telling:set_up" if told.planted else "telling:set_up_operators",
        )


def _read(file: Path) -> dict[str, Any]:
    return dict(yaml.load(file.read_text(), yaml.CSafeLoader))


def _hal() -> Iterator[Liar]:
    for id, fields in _read(HERE / "hal" / "liars.yaml")["liars"].items():
        yield Liar(
            id,
            "hal",
            HAL,
            fields["lie"],
            tuple(fields["conformance"]),
            tuple(fields.get("checks", ())),
            env=_interposed(id, fields.get("library", LIAR)),
            hal=tuple(fields["hal"]),
            kernel=fields.get("kernel"),
            cannot_load=fields.get("cannot_load"),
        )


def _interposed(lie: str, library: str = LIAR) -> dict[str, str]:
    return {
        "PUONE_LIAR": lie,
        "PUONE_LIAR_TARGET": str(SIM),
        "PUONE_DRIVER": str(LIBRARIES / library),
    }


def _claims() -> Iterator[Liar]:
    for id, fields in _read(HERE / "claims.yaml").items():
        yield Liar(
            id,
            "descriptor",
            CLAIM,
            fields["lie"],
            tuple(fields["requirements"]),
            tuple(fields.get("checks", ())),
            env=_interposed("none") | fields.get("env", {}),
            capabilities=fields["capabilities"],
            unsupported=tuple(fields.get("unsupported", ())),
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
            package=BUILD / "package" / id if mutation.in_python else HONEST,
            cannot_load=mutation.cannot_load,
        )


def make_packages(liars: Iterable[Liar]) -> None:
    """Write the packages from which liars are imported: links to the checkout, and their lies."""
    mutations = mutate.load()
    _make_package(HONEST / "torch_puone", None)
    for liar in liars:
        if liar.package and liar.package != HONEST:
            _make_package(liar.package / "torch_puone", mutations[liar.id])


def _make_package(folder: Path, told: mutate.Mutation | None) -> None:
    original = ROOT / mutate.PACKAGE
    folder.mkdir(parents=True, exist_ok=True)
    files = [*original.glob("*.py"), *(BUILD / "lib").glob("_*.so")]
    for old in folder.iterdir():
        if old.is_symlink() or old.is_file():
            old.unlink()
    for part in original.iterdir():
        if (part / "__init__.py").exists():
            (folder / part.name).symlink_to(part)
    for file in files:
        if told is not None and file == ROOT / told.file:
            (folder / file.name).write_text(mutate.mutated(file.read_text(), [told]))
        else:
            (folder / file.name).symlink_to(file)
