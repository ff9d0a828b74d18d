# SPDX-License-Identifier: BSD-3-Clause
"""A look at a backend that nobody has described yet.

Two processes find things out, and both may crash or hang: a fresh interpreter imports the backend
and tells how it is called, then the suite's own workers load it as in a run, and probe it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

import msgspec
from msgspec import UNSET

from torch_conformance.authoring.backend import AUTOLOAD
from torch_conformance.bringup.loading import explained
from torch_conformance.judging.judge import Options
from torch_conformance.running import probes
from torch_conformance.running.pool import Pool
from torch_conformance.running.process import ended
from torch_conformance.running.result import Result
from torch_conformance.spec.descriptor import Deadlines, Descriptor, Imports, torch_device_types
from torch_conformance.spec.outcome import CannotLoad, LoadProblem, Outcome

BACKENDS = "torch.backends"
UNNAMED = "privateuseone"
# Data types that a descriptor may call unsupported.
DTYPES = (
    *("float32", "float64", "float16", "bfloat16"),
    *("int8", "int16", "int32", "int64", "uint8", "bool"),
    *("complex64", "complex128"),
)

_SCOUT = """
import importlib, json, sys
import torch
for name in sys.argv[1:]:
    importlib.import_module(name)
print()
name = torch._C._get_privateuse1_backend_name()
print(json.dumps({"privateuse1": name, "module": hasattr(torch, name), "torch": torch.__version__}))
"""


@dataclass
class Survey:
    """What was found out about a backend."""

    descriptor: Descriptor
    torch: str
    loading: float
    """Seconds that a worker took to load it."""
    devices: list[str] = field(default_factory=list)
    probed: dict[str, Result] = field(default_factory=dict)
    spawned_because: str | None = None

    @property
    def missing_dtypes(self) -> list[str]:
        """Data types that did not come back from the device, once one of them did."""
        if not self.has(probes.DTYPE + DTYPES[0]):
            return []  # Copies are missing, which says nothing about data types.
        return [name for name in DTYPES if not self.has(probes.DTYPE + name)]

    def has(self, name: str) -> bool:
        """Whether probing found a capability."""
        return self.probed[name].outcome is Outcome.PASS


def survey(name: str, imports: Iterable[str] = (), deadline: float = 120.0) -> Survey:
    """Look at backend `name`, made available by `imports`; raises CannotLoad with what to do."""
    modules, autoload = _what_to_import(name, tuple(imports))
    scouted = _scout(modules, deadline)
    device_type = _device_type(name, scouted["privateuse1"], modules)
    forked = Descriptor(
        name=name,
        device_type=device_type,
        module=f"torch.{device_type}" if scouted["module"] and modules else UNSET,
        imports=Imports(after_torch=modules),
        autoload=autoload,
        deadlines=Deadlines(startup=deadline),
    )
    try:
        return _load_and_probe(forked, scouted["torch"])
    except CannotLoad as error:
        reason, problem = str(error), error.problem
    try:
        with _in_a_file(msgspec.structs.replace(forked, start_method="spawn")) as spawned:
            found = _load_and_probe(spawned, scouted["torch"])
    except CannotLoad:
        raise CannotLoad(explained(reason, problem)) from None
    found.spawned_because = reason
    return found


def _what_to_import(name: str, given: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Modules to import, and whether torch would load the backend by itself."""
    announced = [entry for entry in entry_points(group=BACKENDS) if entry.name == name]
    modules = given or tuple(entry.module for entry in announced)
    if not modules and name not in torch_device_types():
        raise CannotLoad(
            f"which module makes {name!r} available? Say it: --import torch_{name}\n"
            f"(Torch does not know a device {name!r} by itself, and no installed package announces "
            f"it in the entry point group {BACKENDS!r}.)"
        )
    return modules, bool(announced)


def _device_type(name: str, privateuse1: str, modules: tuple[str, ...]) -> str:
    if not modules or (privateuse1 == UNNAMED and name in torch_device_types()):
        return name
    return privateuse1


def _scout(modules: tuple[str, ...], deadline: float) -> dict[str, Any]:
    """Import the modules in a fresh interpreter; what it says about itself."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _SCOUT, *modules],
            env={**os.environ, AUTOLOAD: "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=deadline,
        )
    except subprocess.TimeoutExpired:
        raise CannotLoad(
            f"importing {', '.join(('torch', *modules))} takes more than {deadline:g} s: if the "
            "device needs that long, give --deadline"
        ) from None
    *_, last = done.stdout.strip().splitlines() or [""]
    try:
        scouted: dict[str, Any] = json.loads(last)
    except ValueError:
        *_, said = done.stderr.strip().splitlines() or ["it wrote nothing"]
        how = ended(done.returncode)
        raise CannotLoad(
            explained(
                f"{how} while loading {', '.join(('torch', *modules))}: {said}", LoadProblem.DIED
            )
        ) from None
    return scouted


@contextmanager
def _in_a_file(target: Descriptor) -> Iterator[Descriptor]:
    """The descriptor for workers that do not inherit it: they read it."""
    values = {
        "device_type": target.device_type,
        "import": {"after_torch": list(target.imports.after_torch)},
        "autoload": target.autoload,
        "start_method": target.start_method,
        "deadlines": {"startup": target.deadlines.startup},
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(json.dumps(values))  # JSON is YAML.
        file.flush()
        yield msgspec.structs.replace(target, file=file.name)


def _load_and_probe(draft: Descriptor, torch_version: str) -> Survey:
    """Load the backend in a worker, then run every probe; one that ends the worker says no."""
    pool = Pool(draft, Options())
    found: list[Result] = []
    begin = time.monotonic()
    try:
        checks = probes.to_probe(draft)
        pool.run(checks[:1], found.append)
        loading = time.monotonic() - begin
        pool.run([*checks[1:], *(probes.check_of(probes.DTYPE + d) for d in DTYPES)], found.append)
    finally:
        pool.close()
    return Survey(
        draft,
        torch_version,
        loading,
        pool.identity.get("devices", []),
        {result.id.removeprefix(probes.PREFIX): result for result in found},
    )
