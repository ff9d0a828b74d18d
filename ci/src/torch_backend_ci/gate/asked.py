# SPDX-License-Identifier: BSD-3-Clause
"""What a configuration must have run: torch by its pin, the backend, the driver, the descriptor.

A report that says something else, or nothing, is of another run. It cannot be judged, however good
its outcomes are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch_backend_ci import untrusted
from torch_backend_ci.checkout import ROOT
from torch_backend_ci.errors import CiError
from torch_backend_ci.gate.policy import LanePolicy, Policy
from torch_backend_ci.pin import file
from torch_conformance.results.reader import Document
from torch_conformance.spec import strict

_MAX_DESCRIPTOR = 1 << 20  # bytes
_SHORT = 12  # digits of a commit or a digest that are shown


@dataclass(frozen=True)
class Asked:
    """What every report of a configuration has to say. None: anything will do."""

    torch: str | None = None
    """The version, without its local part (+cpu)."""
    commit: str | None = None
    """The commit of PyTorch that it was built from."""
    backend: str | None = None
    driver: str | None = None
    descriptor: str | None = None
    """SHA-256 of the file."""
    source: str = "the policy"
    """Who asks for this torch, for messages."""
    unknown: str | None = None
    """Why nobody knows which torch it has to be."""

    def problems(self, documents: Iterable[Document]) -> Iterator[str]:
        """What these reports say that they must not, each once."""
        if self.unknown:
            yield self.unknown
        yield from dict.fromkeys(said for one in documents for said in self._problems(one))

    def _problems(self, document: Document) -> Iterator[str]:
        run = document.run
        version = run.torch.version.partition("+")[0]
        if self.torch and version != self.torch:
            yield self._wrong("torch", run.torch.version, self.torch, self.source)
        elif self.commit and run.torch.git != self.commit:
            yield self._wrong("the commit of torch", run.torch.git, self.commit, self.source)
        if self.backend and run.backend != self.backend:
            yield self._wrong("backend", run.backend, self.backend)
        driver = (run.driver or {}).get("name")
        if self.driver and driver != self.driver:
            yield self._wrong("driver", driver, self.driver)
        descriptor = run.descriptor.sha256 if run.descriptor else None
        if self.descriptor and descriptor != self.descriptor:
            yield self._wrong("descriptor", descriptor, self.descriptor)

    @staticmethod
    def _wrong(what: str, found: object, wanted: str, source: str = "the policy") -> str:
        is_digest = len(wanted) in (40, 64)
        shown = str(found)[: _SHORT if is_digest else 80] if found else "unknown"
        return f"{what} is {shown}, {source} asks for {wanted[:_SHORT] if is_digest else wanted}"


def of(policy: Policy, words: Sequence[str] = (), root: Path = ROOT) -> Mapping[str, Asked]:
    """What each configuration of the policy is asked for.

    `words` are LANE.KEY=VALUE, and say more than the policy, or something else. The pins are those
    below `root`. CiError if a pin, a word or a descriptor is not usable.
    """
    asked = {lane: _of_policy(rules, root) for lane, rules in policy.lanes.items()}
    for word in words:
        place, _, value = word.partition("=")
        lane, _, key = place.rpartition(".")
        if lane not in asked or key not in _KEYS or not value:
            keys = ", ".join(_KEYS)
            raise CiError(
                f"--ask {word}: not LANE.KEY=VALUE with a lane of the policy and one of: {keys}"
            )
        asked[lane] = _with(asked[lane], key, value, root)
    return asked


_KEYS = ("pin", "backend", "driver", "descriptor")


def _of_policy(rules: LanePolicy, root: Path) -> Asked:
    asked = Asked(rules.torch or None, None, rules.backend or None, rules.driver or None)
    return _with(asked, "pin", rules.pin, root) if rules.pin else asked


def _with(asked: Asked, key: str, value: str, root: Path) -> Asked:
    if key == "pin":
        return _pinned(asked, value, root)
    if key == "descriptor":
        return replace(asked, descriptor=_digest(Path(value)))
    return replace(asked, **{key: value})


def _pinned(asked: Asked, name: str, root: Path) -> Asked:
    pin = file.read(name, root)
    if pin.torch is None:
        return replace(asked, unknown=f"pin {name} has no version: {pin.unresolved}")
    public, commit = str(pin.torch.public), pin.torch.git_version
    return replace(asked, torch=public, commit=commit, source=f"pin {name}", unknown=None)


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(untrusted.read(path, _MAX_DESCRIPTOR)).hexdigest()
    except strict.Malformed as error:
        raise CiError(f"the descriptor {untrusted.spoken(path.name)}: {error}") from None
