# SPDX-License-Identifier: BSD-3-Clause
"""Try witnesses with g++: each must compile with the torch before, and not with the torch after.

All witnesses that can share a translation unit do: it includes the headers of the catalogue once,
and says for each witness where it begins (`#line`), so that every error tells whose it is. The
headers without any witness must compile with both; otherwise no witness means anything.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.extract.cpp.compiler import COMPILER, PROFILES, flags
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity
from torch_backend_ci.surface.probe.witness import NotProvable, Witness, Writer
from torch_backend_ci.torch_tree import TorchTree

PROCESSES = 2

_PRELUDE = """\
#include <type_traits>
#include <utility>
template <class T>
T&& some();  // an argument; std::declval refuses to be compiled into a function
#define WITNESS_TEXT(...) #__VA_ARGS__
#define WITNESS_EXPANDED(...) WITNESS_TEXT(__VA_ARGS__)
"""
_ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$")
_CONTEXT = re.compile(r"\b(witness-\d+):\d+")


class Outcome(str, Enum):
    """The result for a finding."""

    PROVED = "proved"  # a witness compiles before and does not after
    REFUTED = "refuted"  # it compiles after too: the finding is wrong, or the witness is
    NOT_PROVABLE = "not provable"


@dataclass(frozen=True)
class Verdict:
    """One finding, tried."""

    finding: Finding
    outcome: Outcome
    why: str  # the compiler's word after, or what keeps it from being proved
    source: str = ""


def try_all(
    findings: Iterable[Finding],
    before: tuple[TorchTree, Sequence[Declaration]],
    after: tuple[TorchTree, Sequence[Declaration]],
    catalogue: Catalogue,
) -> list[Verdict]:
    """A verdict on every C++ finding that breaks compilation, in their order."""
    wanted = [
        finding
        for finding in findings
        if finding.severity == Severity.COMPILE_BREAK
        and finding.domain in (Domain.CPP, Domain.HEADER)
    ]
    writer = Writer(before[1], after[1])
    written: list[Witness | Verdict] = [_write(writer, finding) for finding in wanted]
    witnesses = [each for each in written if isinstance(each, Witness)]
    prelude = _includes(catalogue, before[1], after[1])
    with ThreadPoolExecutor(PROCESSES) as pool:
        was, now = pool.map(
            lambda tree: _complaints(tree, witnesses, prelude), (before[0], after[0])
        )
    tried = iter(_verdict(w, a, b) for w, a, b in zip(witnesses, was, now, strict=True))
    return [next(tried) if isinstance(each, Witness) else each for each in written]


def _write(writer: Writer, finding: Finding) -> Witness | Verdict:
    try:
        return writer.write(finding)
    except NotProvable as reason:
        return Verdict(finding, Outcome.NOT_PROVABLE, str(reason))


def _verdict(witness: Witness, was: str | None, now: str | None) -> Verdict:
    if was is not None:
        why = f"the witness does not compile with the torch before: {was}"
        return Verdict(witness.finding, Outcome.NOT_PROVABLE, why, witness.source)
    if now is None:
        why = "the witness compiles with both"
        return Verdict(witness.finding, Outcome.REFUTED, why, witness.source)
    return Verdict(witness.finding, Outcome.PROVED, now, witness.source)


def _includes(catalogue: Catalogue, *sides: Sequence[Declaration]) -> str:
    """Every header of the catalogue that compiles, where it exists."""
    broken = {
        declaration.name
        for declarations in sides
        for declaration in declarations
        if declaration.domain == Domain.HEADER and declaration.facts.get("error")
    }
    headers = [header for header in catalogue.headers if header not in broken]
    return _PRELUDE + "".join(
        f"#if __has_include(<{header}>)\n#include <{header}>\n#endif\n" for header in headers
    )


def _complaints(tree: TorchTree, witnesses: Sequence[Witness], prelude: str) -> list[str | None]:
    """What the compiler first says against each witness; None if nothing."""
    shared = {f"witness-{i}": w for i, w in enumerate(witnesses) if not w.alone}
    source = prelude + "".join(
        f'#line 1 "{name}"\nnamespace {name.replace("-", "_")} {{\n{witness.source}}}\n'
        for name, witness in shared.items()
    )
    said = _compile(tree, source, set(shared)) if shared else {}
    if None in said:
        raise CiError(
            f"the headers of torch {tree.version} do not compile with {COMPILER}: {said[None]}"
        )
    alone = (_alone(tree, witness) if witness.alone else None for witness in witnesses)
    return [
        single if witness.alone else said.get(f"witness-{index}")
        for index, (witness, single) in enumerate(zip(witnesses, alone, strict=True))
    ]


def _alone(tree: TorchTree, witness: Witness) -> str | None:
    standard = [f"-std={witness.standard}"] if witness.standard else []
    return _compile(tree, witness.source, set(), standard).get(None)


def _compile(
    tree: TorchTree, source: str, names: set[str], more: Sequence[str] = ()
) -> dict[str | None, str]:
    """The first error of each part of a source; that of nobody's part is None's."""
    options = [*flags(tree, PROFILES[0]), *more, "-fsyntax-only", "-fmax-errors=0"]
    command = [COMPILER, *options, "-"]
    try:
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CiError(
            f"witnesses are compiled with {COMPILER}, which does not run: {error}"
        ) from error
    if done.returncode < 0:
        raise CiError(
            f"{COMPILER} was ended by signal {-done.returncode}, perhaps for want of memory"
        )
    first: dict[str | None, str] = {}
    context: str | None = None
    for line in done.stderr.splitlines():
        match = _ERROR.match(line)
        if match is None:
            named = _CONTEXT.search(line)
            context = named[1] if named else context
            continue
        whose = match["file"] if match["file"] in names else context
        first.setdefault(whose, match["text"])
        context = None
    if done.returncode and not first:
        raise CiError(f"{COMPILER}: {done.stderr.strip()[-300:]}")
    return first
