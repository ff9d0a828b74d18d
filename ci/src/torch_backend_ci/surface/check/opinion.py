# SPDX-License-Identifier: BSD-3-Clause
"""The probe's opinion on a change: the compiler's, on a backend that uses everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch_backend_ci.errors import CiError
from torch_backend_ci.output import say
from torch_backend_ci.surface import probe
from torch_backend_ci.surface.check import part
from torch_backend_ci.surface.check.reach import Includes
from torch_backend_ci.surface.check.stakes import Stakes
from torch_backend_ci.surface.model import Finding, Severity
from torch_backend_ci.surface.probe import ProbeResult, agreement
from torch_backend_ci.surface.probe import cache as probe_cache
from torch_backend_ci.torch_tree import TorchTree

Tasks = Mapping[str, Callable[[], Any]]

_BASE, _CHANGED = "probe of the base", "probe"


class Opinion:
    """What a second opinion needs; the result for the base is kept in the directory `cache`."""

    def __init__(self, base: TorchTree, changed: TorchTree, cache: Path) -> None:
        self._base, self._changed, self._cache = base, changed, cache
        known = probe_cache.known(base, base.version, cache)
        self.known = {} if known is None else {_BASE: known}

    def whole(self) -> Tasks:
        """The probe of both, as far as it is not known."""
        changed = partial(probe.run, self._changed, written_for=self._base.version)
        return {**self._of_base(), _CHANGED: partial(_asked, changed)}

    def part(self, stakes: Stakes, graph: Includes) -> tuple[Tasks, Mapping[str, Any]]:
        """The probe of the base, and of the changed what is at stake; and what is known of it."""
        asked = part.of(stakes, graph)
        version = self._base.version
        if not asked.text:
            return self._of_base(), {_CHANGED: ProbeResult(version, version, (), ())}
        changed = partial(_partly, self._changed, version, asked)
        return {**self._of_base(), _CHANGED: partial(_asked, changed)}, {}

    def _of_base(self) -> Tasks:
        version = self._base.version
        ask = partial(probe_cache.run, self._base, version, self._cache, say)
        return {} if self.known else {_BASE: partial(_asked, ask)}


def weighed(findings: Sequence[Finding], parts: Mapping[str, Any]) -> tuple[list[Finding], str]:
    """The findings with the probe's opinion, and why there is none, if there is none.

    A second opinion that cannot be had takes nothing from the first.
    """
    before, after = parts[_BASE], parts[_CHANGED]
    for refusal in (before, after):
        if isinstance(refusal, str):
            return list(findings), f"No second opinion: {refusal}."
    try:
        return list(map(_doubted, agreement.agree(findings, before, after))), ""
    except CiError as error:
        return list(findings), f"No second opinion: {error}."


def _doubted(finding: Finding) -> Finding:
    """A break that the compiler does not see where the probe does what it would break is none of
    compiling."""
    refuted = finding.probe == agreement.DISAGREES and finding.rule != agreement.RULE
    if not refuted or finding.severity is not Severity.COMPILE_BREAK:
        return finding
    message = f"{finding.message} The probe, which does that, compiles nevertheless."
    return replace(finding, severity=Severity.REBUILD, message=message)


def _partly(tree: TorchTree, version: str, asked: part.Part) -> ProbeResult:
    overlay = asked.overlay(tree)
    return probe.run(tree, written_for=version, part=asked.text, overlay=overlay)


def _asked(ask: Callable[[], ProbeResult]) -> ProbeResult | str:
    try:
        return ask()
    except CiError as error:
        return str(error)
