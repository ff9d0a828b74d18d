# SPDX-License-Identifier: BSD-3-Clause
"""The first descriptor of a backend, written from a survey for people to go on with."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from torch_conformance.bringup.survey import Survey
from torch_conformance.running import probes
from torch_conformance.running.capability_probes import ABSENT
from torch_conformance.running.result import Result
from torch_conformance.spec.capabilities import MEANING
from torch_conformance.spec.descriptor import Document
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.typed import meanings

# Loading may take this many times as long as it did now, and at least this many seconds.
SLACK, LEAST = 10, 60
# Keys that only the author of the backend can fill in, with an example.
LATER = {
    "delay": "torch.{type}._sleep_ms",
    "driver": "torch.{type}.driver_info",
    "fallback_counts": "torch.{type}._fallback_counts",
    "fallback_reset": "torch.{type}._reset_fallback_counts",
    "backend_meta": "torch.{type}._attach_backend_meta",
    "expectations": "{name}-expectations.yaml",
    "environment_errors": "['device is busy']",
    "torch": '">=2.11"',
}


def draft(found: Survey) -> str:
    """The text of a descriptor."""
    return "\n".join([*_head(found), "", *_capabilities(found), "", *_later(found)]) + "\n"


def _head(found: Survey) -> Iterator[str]:
    target = found.descriptor
    startup = max(LEAST, math.ceil(found.loading * SLACK / 10) * 10)
    yield f"# {target.name} as the conformance suite sees it. `python -m torch_conformance init`"
    yield f"# wrote this from what it found with torch {found.torch}; correct it. What is not said"
    yield "# here has a default; all keys: python -m torch_conformance help descriptor"
    yield ""
    yield from _key("device_type", target.device_type)
    yield from _key("description", ", ".join(dict.fromkeys(found.devices)) or target.name)
    if target.imports.after_torch:
        yield "# what makes the backend available, in order; before_torch: what must precede it"
        yield f"import: {{after_torch: {_yaml(list(target.imports.after_torch))}}}"
    if target.autoload:
        yield from _key("autoload", True)
    if target.device.setup:
        yield "# makes the device; teardown: 'pkg.mod:function' gets what it returned, and ends it"
        yield f"device: {{setup: {_yaml(target.device.setup)}}}"
    if target.env:
        yield "# was set when this was written; workers get it wherever the suite runs"
        yield f"env: {_map(target.env)}"
    if target.module:
        yield from _key("module", target.module)
    if found.spawned_because:
        yield f"# forked workers could not load it: {_line(found.spawned_because)}"
    else:
        yield "# workers are forked from a process that has imported torch: tried, and it works;"
        yield "# the other way, spawn, starts a fresh Python for each and takes seconds more"
    yield f"start_method: {target.start_method}"
    yield f"# seconds; loading took {found.loading:.1f} now. A check that is silent for longer ends"
    yield f"deadlines: {{startup: {startup}, check: 60}}"
    if found.missing_dtypes:
        yield "# these did not come back from the device as they went; delete what is to come"
        yield f"dtypes: {{unsupported: {_yaml(found.missing_dtypes)}}}"


def _capabilities(found: Survey) -> Iterator[str]:
    yield "# What probing found. While these lines are comments, each run probes again. Checks"
    yield "# that need an absent capability are `unsupported`; those that need a BROKEN one fail."
    yield "# Declare what the backend is meant to have: if it is absent, its checks then fail, too."
    denied = dict(_denied(found))
    yield "capabilities:" if denied else "# capabilities:"
    for name, why in denied.items():
        yield f"  {name}: false  # {MEANING[name]} ({_line(why)})"
    for name, meaning in MEANING.items():
        result = found.probed.get(name)
        if result is not None and name not in denied:
            seen = probes.broken(result)
            offered = found.has(name) or seen is not None
            yield f"#   {name}: {_yaml(offered)}  # {meaning}{_why(result, seen)}"


def _denied(found: Survey) -> Iterator[tuple[str, str]]:
    """Capabilities that only the descriptor can deny, and what was seen."""
    seen = found.processes
    if seen is None:
        return
    if seen.fork:
        threads = f"; loading starts {seen.started} threads" if seen.started else ""
        yield "fork", f"{seen.fork}{threads}"
    if seen.threads:
        yield "threads", seen.threads


def _why(result: Result, seen: str | None) -> str:
    """Why a capability is broken or absent, if the probe says so."""
    if seen is not None:
        return f" (BROKEN: {_line(seen)})"
    if result.outcome is Outcome.PASS or str(result.reason or ABSENT) == ABSENT:
        return ""
    return f" ({_line(str(result.reason))})"


def _later(found: Survey) -> Iterator[str]:
    target = found.descriptor
    yield "# For later; without them the suite does without."
    for key, example in LATER.items():
        value = example.format(type=target.device_type, name=target.name)
        yield f"# {key}: {value}  # {meanings(Document)[key]}"


def _key(key: str, value: Any) -> Iterator[str]:
    yield f"# {meanings(Document)[key]}"
    yield f"{key}: {_yaml(value)}"


def _yaml(value: Any) -> str:
    """A value in YAML: words as they are, everything else as JSON, which YAML contains."""
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    plain = isinstance(value, str) and value.replace(".", "").replace("_", "").isalnum()
    return value if plain and not value[0].isdigit() else json.dumps(value)


def _map(values: dict[str, str]) -> str:
    """A map in YAML, on one line; all values are quoted, because they are text."""
    return f"{{{', '.join(f'{_yaml(key)}: {json.dumps(value)}' for key, value in values.items())}}}"


def _line(text: str, room: int = 90) -> str:
    """The beginning of a message, on one line."""
    first = " ".join(text.split())
    return first if len(first) <= room else first[: room - 3] + "..."
