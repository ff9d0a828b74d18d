# SPDX-License-Identifier: BSD-3-Clause
"""A look at a backend that nobody has described yet.

What finds things out are processes that may crash or hang: fresh interpreters import the packages
that may be the backend, the suite's own workers load it as in a run, and probe it, and a last
interpreter forks and uses threads.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec
from msgspec import UNSET

from torch_conformance.bringup.loading import explained
from torch_conformance.bringup.packages import BACKENDS, Candidate, announced, likely
from torch_conformance.bringup.scout import Processes, Scouted, processes, scout
from torch_conformance.judging.judge import Options
from torch_conformance.running import probes
from torch_conformance.running.pool import Pool
from torch_conformance.running.result import Result
from torch_conformance.spec.descriptor import (
    Deadlines,
    Descriptor,
    Imports,
    Setup,
    torch_device_types,
)
from torch_conformance.spec.outcome import CannotLoad, Outcome

UNNAMED = "privateuseone"
# Data types that a descriptor may call unsupported.
DTYPES = (
    *("float32", "float64", "float16", "bfloat16"),
    *("int8", "int16", "int32", "int64", "uint8", "bool"),
    *("complex64", "complex128"),
)
# Words of the names of variables whose values are not to be copied.
_SECRETS = frozenset(
    ("AUTH", "CREDENTIAL", "CREDENTIALS", "KEY", "PASSWD", "PASSWORD", "SECRET", "TOKEN")
)


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
    processes: Processes | None = None

    @property
    def missing_dtypes(self) -> list[str]:
        """Data types that did not come back from the device, once one of them did."""
        if not self.has(probes.DTYPE + DTYPES[0]):
            return []  # Copies are missing, which says nothing about data types.
        return [name for name in DTYPES if not self.has(probes.DTYPE + name)]

    def has(self, name: str) -> bool:
        """Whether probing found a capability."""
        return self.probed[name].outcome is Outcome.PASS


def survey(
    name: str, imports: Iterable[str] = (), deadline: float = 120.0, setup: str | None = None
) -> Survey:
    """Look at backend `name`, made available by `imports`; raises CannotLoad with what to do.

    `setup` (`pkg.mod:function`) makes the device, where it does not exist before.
    """
    candidate, scouted = _found(name, tuple(imports), setup, deadline)
    device_type = scouted.device if setup else _device_type(name, scouted.privateuse1, candidate)
    made_by_import = candidate.modules and not scouted.called
    forked = Descriptor(
        name=name,
        device_type=device_type,
        module=f"torch.{device_type}" if scouted.module and candidate.modules else UNSET,
        imports=Imports(after_torch=candidate.modules if made_by_import else ()),
        autoload=candidate.entry is not None,
        device=Setup(setup=setup) if setup else Setup(),
        env=_environment(device_type, candidate.modules),
        deadlines=Deadlines(startup=deadline),
    )
    found = _probed(forked, scouted.torch)
    found.processes = processes(candidate, setup, device_type, deadline)
    return found


def _probed(forked: Descriptor, torch: str) -> Survey:
    """What probing finds, in workers that are forked or, where that does not work, fresh."""
    try:
        return _load_and_probe(forked, torch)
    except CannotLoad as error:
        reason, problem = str(error), error.problem
    try:
        with _in_a_file(msgspec.structs.replace(forked, start_method="spawn")) as spawned:
            found = _load_and_probe(spawned, torch)
    except CannotLoad:
        raise CannotLoad(explained(reason, problem)) from None
    found.spawned_because = reason
    return found


def _found(
    name: str, given: tuple[str, ...], setup: str | None, deadline: float
) -> tuple[Candidate, Scouted]:
    """What makes the device available, and how it calls itself."""
    if given or setup or name in torch_device_types():
        known = (one for one in announced(name) if one.modules == given)
        candidate = next(known, Candidate(given))
        return candidate, scout(candidate, setup, deadline)
    problem: CannotLoad | None = None
    for candidate in (*announced(name), *likely(name)):
        try:
            scouted = scout(candidate, setup, deadline)
        except CannotLoad as error:
            problem = problem or error
            continue
        if scouted.privateuse1 == name:
            return candidate, scouted
    if problem is not None:
        raise problem
    others = [f"{one.entry}" for one in announced(name)]
    found = f"They announce: {', '.join(others)}." if others else "They announce none."
    raise CannotLoad(
        f"which module makes {name!r} available? Say it: --import torch_{name}\n"
        f"(Torch does not know a device {name!r} by itself, and no installed package makes it, "
        f"neither one of the entry point group {BACKENDS!r} nor one for torch that has {name!r} in "
        f"its name. {found})"
    )


def _environment(device_type: str, modules: tuple[str, ...]) -> dict[str, str]:
    """Variables that are set now and have the name of the backend in theirs.

    A password is nothing for a file that others read.
    """
    names = {device_type.upper(), *(module.partition(".")[0].upper() for module in modules)}
    return {
        key: value
        for key, value in sorted(os.environ.items())
        if any(f"_{name}_" in f"_{key.upper()}_" for name in names)
        and not _SECRETS.intersection(key.upper().split("_"))
    }


def _device_type(name: str, privateuse1: str, candidate: Candidate) -> str:
    if not candidate.modules or (privateuse1 == UNNAMED and name in torch_device_types()):
        return name
    return privateuse1


@contextmanager
def _in_a_file(target: Descriptor) -> Iterator[Descriptor]:
    """The descriptor for workers that do not inherit it: they read it."""
    values = {
        "device_type": target.device_type,
        "import": {"after_torch": list(target.imports.after_torch)},
        "autoload": target.autoload,
        "start_method": target.start_method,
        "device": {"setup": target.device.setup} if target.device.setup else {},
        "env": target.env,
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
