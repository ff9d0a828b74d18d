# SPDX-License-Identifier: BSD-3-Clause
"""The probe is not asked twice about the same torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small_torch

from torch_backend_ci.surface import probe
from torch_backend_ci.surface.probe import Covered, Place, ProbeError, ProbeResult, Use, cache
from torch_backend_ci.torch_tree import TorchTree
from torch_backend_ci.torch_tree.locate import locate

RESULT = ProbeResult(
    torch="2.13.0",
    written_for="2.11.0",
    errors=(ProbeError(Place("a.h", 3), "no", notes=("b",), unimplemented=("c10::X::f",)),),
    uses=(Covered("c10::X", Use.DERIVES, Place("x.h", 1), Place("a.h", 2), 2, 9, by="Own"),),
)


@pytest.fixture
def tree(tmp_path: Path) -> TorchTree:
    return locate(str(small_torch.unpacked(tmp_path)), progress=lambda *_: None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The versions that the probe was written for, of each time it was asked."""
    said: list[str] = []

    def run(tree: TorchTree, *, written_for: str) -> ProbeResult:
        said.append(written_for)
        return RESULT

    monkeypatch.setattr(probe, "run", run)
    return said


def test_what_is_kept_is_what_was_said() -> None:
    assert cache.loads(cache.dumps(RESULT)) == RESULT


def test_the_second_time_the_probe_is_not_asked(
    tree: TorchTree, asked: list[str], tmp_path: Path
) -> None:
    told = [cache.run(tree, "2.11.0", tmp_path / "cache", print) for _ in range(2)]
    assert told == [RESULT, RESULT]
    assert asked == ["2.11.0"]


def test_another_version_and_another_header_are_asked_about(
    tree: TorchTree, asked: list[str], tmp_path: Path
) -> None:
    def ask(version: str) -> Any:
        return cache.run(tree, version, tmp_path / "cache", print)

    ask("2.11.0")
    ask("2.13.0")
    header = next(tree.include[0].rglob("*.h"))
    header.write_text(header.read_text() + "\n")
    ask("2.13.0")
    assert asked == ["2.11.0", "2.13.0", "2.13.0"]


def test_a_damaged_entry_is_asked_about_again(
    tree: TorchTree, asked: list[str], tmp_path: Path
) -> None:
    cache.run(tree, "2.11.0", tmp_path / "cache", print)
    (entry,) = (tmp_path / "cache").rglob("*.json")
    entry.write_bytes(entry.read_bytes()[:-1])
    assert cache.run(tree, "2.11.0", tmp_path / "cache", print) == RESULT
    assert len(asked) == 2


def test_a_folder_that_refuses_costs_only_time(
    tree: TorchTree, asked: list[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    assert cache.run(tree, "2.11.0", tmp_path / "file", said.append) == RESULT
    assert said[0].startswith("what the probe said is not kept for the next time: ")
