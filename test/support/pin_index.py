# SPDX-License-Identifier: BSD-3-Clause
"""An index of small torches for pins, and a repository with pins in it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import small_torch
from wheel_server import Behaviour, serving

from torch_backend_ci.pin import file
from torch_backend_ci.pin.model import PYTHONS, Pin, Source, Torch, Wheel
from torch_backend_ci.torch_tree import remote

FILE = "torch-{}-cp{}-cp{}-manylinux_2_28_x86_64.whl"
REQUIREMENTS = "# ours\ntorch==2.13.0\nnumpy==2.4.6\n"


def files(version: str, pythons: Sequence[str] = PYTHONS) -> list[str]:
    """The names of the wheels of a version."""
    return [FILE.format(version, *[python.replace(".", "")] * 2) for python in pythons]


def entries(version: str) -> dict[str, str]:
    """What is in a wheel, and pip asks for."""
    about = f"torch-{version}.dist-info"
    return small_torch.files(version) | {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: false\n",
    }


@dataclass
class PinIndex:
    """The index, which also knows the hash of each of its wheels."""

    behaviour: Behaviour

    def add(self, version: str, pythons: Sequence[str] = PYTHONS) -> Torch:
        """Publish a version; what a pin of it says."""
        wheels = []
        for name in files(version, pythons):
            made = self.behaviour.folder / name
            digest = small_torch.wheel(made, entries(version))
            self.behaviour.hashes[name] = digest
            wheels.append(Wheel(name, digest))
        return Torch(version, small_torch.COMMIT, tuple(wheels))

    def remove(self, version: str) -> None:
        """Take a version away."""
        for name in files(version):
            (self.behaviour.folder / name).unlink()

    def yank(self, version: str, reason: str) -> None:
        """Withdraw it, as PEP 592 has it: it stays on the list."""
        self.behaviour.yanked |= dict.fromkeys(files(version), reason)


@contextlib.contextmanager
def serving_pins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PinIndex]:
    """Pip's only index for as long as the context lasts."""
    folder.mkdir()
    for name in [n for n in os.environ if n.startswith(("PIP_", "PIN_INDEX_"))]:
        monkeypatch.delenv(name)
    with serving(Behaviour(folder)) as running:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", running.index())
        monkeypatch.setenv("PIN_INDEX_NIGHTLY_CPU", running.index())
        monkeypatch.setenv("PIP_RETRIES", "0")
        monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "5")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(remote, "PAUSE", 0.0)
        yield PinIndex(running.behaviour)


def pin(torch: Torch | None, name: str = "newest", source: Source = Source.RELEASE) -> Pin:
    """A pin of a version on the index."""
    unresolved = None if torch else "nobody looked"
    index = "nightly-cpu" if source is Source.NIGHTLY else "pypi"
    return Pin(name, torch, unresolved, index, source, "It is needed.")


def put(root: Path, *pins: Pin) -> None:
    """Write pins, and a requirements/torch.txt, into a repository."""
    for one in pins:
        path = root / file.place(one.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.render(one))
    (root / "requirements").mkdir(exist_ok=True)
    (root / "requirements/torch.txt").write_text(REQUIREMENTS)
