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
from torch_backend_ci.surface.model import Finding, Severity
from torch_backend_ci.surface.probe import ProbeResult, agreement
from torch_backend_ci.surface.probe import cache as probe_cache
from torch_backend_ci.torch_tree import TorchTree

_BASE, _CHANGED = "probe of the base", "probe"


def tasks(base: TorchTree, changed: TorchTree, cache: Path) -> Mapping[str, Callable[[], Any]]:
    """What a second opinion needs; the result for the base is kept in the directory `cache`."""
    return {
        _BASE: partial(_asked, partial(probe_cache.run, base, base.version, cache, say)),
        _CHANGED: partial(_asked, partial(probe.run, changed, written_for=base.version)),
    }


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


def _asked(ask: Callable[[], ProbeResult]) -> ProbeResult | str:
    try:
        return ask()
    except CiError as error:
        return str(error)
