# SPDX-License-Identifier: BSD-3-Clause
"""Stores that were never run: the one of 60 nights that shows the dashboard, and the large one."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from bench.dashboard_store import Size, make
from torch_backend_ci.dashboard import runs
from torch_backend_ci.dashboard.build import build
from torch_backend_ci.results import layout
from torch_backend_ci.results.store import Store
from torch_conformance.results import reader

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "docs" / "dashboard" / "synthetic.py"


@pytest.fixture(scope="module")
def synthetic() -> ModuleType:
    spec = importlib.util.spec_from_file_location("synthetic_store", SCRIPT)
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_a_night_is_drawn_alike_again_and_is_a_valid_report(synthetic: ModuleType) -> None:
    nights = list(synthetic.nights())
    last = max(night.number for night in nights)
    for night in (nights[0], *(one for one in nights if one.number == last)):
        made = json.dumps(synthetic.content(night)).encode()
        synthetic.drawn.cache_clear()
        assert made == json.dumps(synthetic.content(night)).encode()
        assert reader.parse(made, "report.json").run.backend.startswith("synthetic-")


def test_what_the_nights_are_said_to_show_is_in_them(synthetic: ModuleType) -> None:
    def outcomes(backend: str, torch: str, number: int) -> Counter[str]:
        made = synthetic.content(synthetic.Night(backend, torch, number))
        return Counter(check["outcome"] for check in made["checks"])

    assert [outcomes("alder", "2.14.0", n)["fail"] > 0 for n in (40, 41, 47, 48)] == [
        False,
        True,
        True,
        False,
    ]
    assert outcomes("alder", "2.15.0.dev20261126", 59)["fail"] > 0
    growing = [outcomes("birch", "2.13.0", n)["pass"] for n in (0, 20, 40, 59)]
    assert growing == sorted(set(growing))
    assert outcomes("cedar", "2.13.0", 55)["not_run"] > 0


def test_every_page_of_a_synthetic_store_says_so(
    synthetic: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(synthetic, "NIGHTS", 2)
    count = synthetic.make(tmp_path / "store")
    assert len(Store(tmp_path / "store").read(runs.read)) == count
    build(tmp_path / "store", tmp_path / "site", 1)
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 100
    assert all("Synthetic: no backend was run." in page.read_text() for page in pages)


def test_the_notice_of_a_store_is_kept_and_most_have_none(tmp_path: Path) -> None:
    layout.create(tmp_path / "plain")
    layout.create(tmp_path / "told", "made up")
    assert layout.notice(tmp_path / "plain") is None
    assert layout.notice(tmp_path / "told") == "made up"


def test_the_store_of_the_benchmark_has_the_runs_that_its_size_says(tmp_path: Path) -> None:
    make(tmp_path / "store", Size(backends=3, nights=2, checks=40), range(2))
    found = Store(tmp_path / "store").read(runs.read)
    assert {run.key.backend for run in found} <= {"chip00", "chip01", "chip02"}
    assert len(found) > 2
    assert all(sum(run.totals.values()) == 40 for run in found)
