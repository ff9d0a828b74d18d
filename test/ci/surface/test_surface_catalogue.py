# SPDX-License-Identifier: BSD-3-Clause
"""surfaces.yaml: what its patterns mean, and that each of them is about something."""

from __future__ import annotations

from pathlib import Path

import pytest

from torch_backend_ci.surface import snapshot, snapshot_file
from torch_backend_ci.surface.catalogue import Catalogue, Surface, load
from torch_backend_ci.surface.model import Domain

# Names from before the oldest snapshot: a rename back to them would be told as one.
HISTORICAL = {"c10d::parseEnvVar*", "at::getAccelerator", "at::isAccelerator"}
# A macro that its own header undefines somewhere is not read.
UNDEFINED = {"C10_EXPORT"}


def catalogue(**symbols: tuple[str, ...]) -> Catalogue:
    return Catalogue(tuple(Surface(name, "title", symbols=s) for name, s in symbols.items()))


@pytest.mark.parametrize(
    ("name", "surface"),
    [
        ("c10::Allocator", "memory"),
        ("c10::Allocator::allocate", "memory"),
        ("c10::Allocator::Inner::x", "inner"),
        ("c10::AllocatorRegisterer", None),
        ("c10::impl::tls_set", "keys"),
        ("c10::impl::tls_set::x", "keys"),
        ("c10::impl::other", None),
        ("at::autocast::Cast::run", "amp"),
        ("at::autocast", None),
        ("answer", "c"),
        ("c10::answer", None),
        ("", None),
    ],
)
def test_the_most_exact_pattern_names_the_surface(name: str, surface: str | None) -> None:
    known = catalogue(
        memory=("c10::Allocator",),
        inner=("c10::Allocator::Inner",),
        keys=("c10::impl::tls_*",),
        amp=("at::autocast::*",),
        c=("answer",),
    )
    assert known.surface_of_symbol(name) == surface


def test_a_scope_is_entered_if_something_in_it_is_asked_for() -> None:
    known = catalogue(memory=("c10::detail::Pointer", "at::amp::*"))
    reached = {
        scope: known.reaches(scope)
        for scope in ("c10", "c10::detail", "c10::detail::Pointer", "c10::impl", "at::amp", "torch")
    }
    assert [scope for scope, there in reached.items() if not there] == ["c10::impl", "torch"]


@pytest.mark.nightly
def test_every_pattern_and_header_is_there_in_some_torch() -> None:
    folder = Path(snapshot.__file__).parent / "snapshots"
    taken = [snapshot_file.read(path) for path in folder.glob("*.json.gz")]
    declarations = [d for one in taken for d in one.declarations]
    cpp = {d.name for d in declarations if d.domain is Domain.CPP and d.kind != "macro"}
    macros = {d.name for d in declarations if d.kind == "macro"}
    headers = {d.name for d in declarations if d.kind == "header"}
    unused = [
        pattern
        for surface in load().surfaces
        for pattern in (
            *(p for p in surface.headers if p not in headers and p in load().chosen),
            *(p for p in surface.symbols if not _hit(Surface("x", "x", symbols=(p,)), cpp)),
            *(p for p in surface.macros if not _hit(Surface("x", "x", macros=(p,)), macros)),
        )
    ]
    assert set(unused) == HISTORICAL | UNDEFINED


def _hit(surface: Surface, names: set[str]) -> bool:
    alone = Catalogue((surface,))
    return any(
        alone.surface_of_symbol(name.partition("<")[0]) or alone.surface_of_macro(name)
        for name in names
    )
