# SPDX-License-Identifier: BSD-3-Clause
"""The site of a store: made at once or night by night it is the same, byte for byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dashboard_oracle
import pytest
from dashboard_sample import BROKEN, HOSTILE, report, sample, sample_store, store
from synthetic import Content

from torch_backend_ci.cli import main
from torch_backend_ci.dashboard import build, code
from torch_backend_ci.dashboard.model import Key
from torch_backend_ci.dashboard.read import Model
from torch_backend_ci.dashboard.workers import Workers
from torch_backend_ci.errors import Exit
from torch_backend_ci.results.store import Store


def model(folder: Path, state: Path) -> Model:
    return build.read(Store(folder), state, Workers(1))[0]


def files(site: Path) -> dict[str, bytes]:
    return {
        file.relative_to(site).as_posix(): file.read_bytes()
        for file in site.rglob("*")
        if file.is_file()
    }


def assert_alike(made: Model, expected: Model) -> None:
    """Everything that pages may ask for; what is told of a run is compared as far as it is kept."""
    assert list(made.series) == list(expected.series)
    assert list(made.checks()) == list(expected.checks())
    assert dict(made.check_ids()) == dict(expected.check_ids())
    assert made.newest == expected.newest
    for key, series in made.series.items():
        other = expected.series[key]
        assert [run.id for run in series.runs] == [run.id for run in other.runs]
        assert [run.id for run in series.others] == [run.id for run in other.others]
        assert list(made.changes(key)) == list(expected.changes(key))
        assert dict(made.latest(key)) == dict(expected.latest(key))
        for run in (*series.runs[-1:], *series.others[-1:]):
            assert dict(made.bad(run)) == dict(expected.bad(run))


def test_the_model_of_a_store_is_what_its_reports_say(tmp_path: Path) -> None:
    made = model(sample_store(tmp_path / "store"), tmp_path / "state")
    assert_alike(made, dashboard_oracle.model(sample().values()))


@pytest.mark.nightly
def test_a_site_that_is_made_night_by_night_is_the_one_made_at_once(tmp_path: Path) -> None:
    nights: dict[str, dict[str, Content]] = {}
    for name, made in sample().items():
        nights.setdefault(made["run"]["started"][:10], {})[name] = made
    for night in nights.values():
        store(tmp_path / "store", night)
        build.build(tmp_path / "store", tmp_path / "by-night", 1)
    build.build(tmp_path / "store", tmp_path / "at-once", 1)
    assert files(tmp_path / "by-night") == files(tmp_path / "at-once")


def test_a_report_that_comes_late_gets_its_place(tmp_path: Path) -> None:
    reports = sample()
    late = reports.pop("puone-2.13.0-2026-11-19")
    folder = store(tmp_path / "store", reports)
    before = model(folder, tmp_path / "state")
    assert before.changes(Key("puone-sim", "2.13"))[0].kind != "improvement"
    store(folder, {"late": late})
    assert_alike(model(folder, tmp_path / "state"), dashboard_oracle.model(sample().values()))


def test_the_verb_makes_a_site_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = store(
        tmp_path / "store",
        {"one": report(outcomes={BROKEN: {"outcome": "fail", "message": HOSTILE}})},
    )
    site = tmp_path / "site"
    assert main(["dashboard", "build", "--store", str(folder), "-o", str(site)]) == Exit.OK
    assert str(site) in capsys.readouterr().err
    assert (site / "index.html").is_file()
    shown = [content for name, content in files(site).items() if not name.endswith(".json")]
    assert not any(b"<script>alert" in content for content in shown)


def test_every_module_that_a_build_imports_is_in_the_digest_of_its_code() -> None:
    script = (
        "import sys\n"
        "from torch_backend_ci.dashboard import build, pages\n"
        "import torch_backend_ci.dashboard.pages.run, torch_backend_ci.dashboard.pages.check\n"
        "ours = [m for n, m in sys.modules.items() if n.partition('.')[0] == 'torch_backend_ci']\n"
        "print(*(m.__file__ for m in ours))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    imported = {Path(name).resolve() for name in done.stdout.split()}
    hashed = set(code.files())
    assert len(imported) > 20
    assert imported <= hashed
    assert {
        code.ROOT / "dashboard/templates/run.html",
        code.ROOT / "dashboard/glyphs.svg",
    } <= hashed
