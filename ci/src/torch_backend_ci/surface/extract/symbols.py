# SPDX-License-Identifier: BSD-3-Clause
"""What the shared libraries export of the surface: what a backend built before links against."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.extract.elf import exported
from torch_backend_ci.surface.model import Declaration, Domain
from torch_backend_ci.torch_tree import TorchTree

LIBRARIES = ("c10", "torch_cpu", "torch_python")

# _ZNK3c109Allocator5cloneEPKvm: what stands before the chain of lengths and names.
_START = re.compile(r"_Z(?:N[KVrRO]*)?(?=\d)")
# The slots of a DispatchStub for each kind of CPU: a thousand, and nobody's concern.
_CPU_KERNEL = re.compile(r">::(DEFAULT|AVX\w*|SVE\w*|VSX|ZVECTOR)$")
_LENGTH = re.compile(r"\d+")


def extract(tree: TorchTree, catalogue: Catalogue) -> list[Declaration]:
    """Every exported symbol that belongs to a surface; none without libraries at hand."""
    if tree.libraries is None:
        return []
    found: list[Declaration] = []
    for library in LIBRARIES:
        mangled_names = _exported(tree.libraries, library)
        surfaces = {
            mangled: surface
            for mangled in mangled_names
            if (surface := catalogue.surface_of_symbol(qualified_name(mangled))) is not None
        }
        names = dict(zip(demangled(surfaces), surfaces.values(), strict=True))
        found += [
            Declaration(
                domain=Domain.SYMBOL,
                kind="symbol",
                name=name,
                surface=surface,
                text=name,
                file=f"torch/lib/lib{library}.so",
                line=0,
                facts={"library": library},
            )
            for name, surface in names.items()
            if not _CPU_KERNEL.search(name)
        ]
    return found


def _exported(folder: Path, library: str) -> list[str]:
    """Of a library, or of the list that was made of it (libraries.py)."""
    listed = folder / f"lib{library}.exports"
    if listed.is_file():
        return listed.read_text(encoding="utf-8").splitlines()
    return exported(folder / f"lib{library}.so")


def qualified_name(mangled: str) -> str:
    """`c10::Allocator::clone` of its mangled name; a C name is itself; "" for none of both.

    It ends before template arguments, constructors and operators: good enough for a surface.
    """
    if not mangled.startswith("_Z"):
        return mangled
    start = _START.match(mangled)
    if start is None:
        return ""
    position, names = start.end(), []
    while length := _LENGTH.match(mangled, position):
        position = length.end() + int(length[0])
        names.append(mangled[length.end() : position])
    return "::".join(names)


def demangled(names: Iterable[str]) -> list[str]:
    """The C++ names, by one run of c++filt."""
    try:
        done = subprocess.run(
            ["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise CiError(
            f"reading exported symbols needs c++filt, and it does not run ({error}); install "
            "binutils"
        ) from error
    return done.stdout.splitlines()
