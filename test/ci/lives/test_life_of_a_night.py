# SPDX-License-Identifier: BSD-3-Clause
"""Every night each torch is tried, the nightly of the day too, and compared with last night."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lives.of_a_night import NIGHTLY, PLAYS, Files, Life
from lives.steps import left
from torch_backend_ci.results.store import Store

pytestmark = pytest.mark.nightly


def runs(kept: Files, folder: Path) -> frozenset[str]:
    """The ids of the runs in the store of a branch, which is unpacked here."""
    for path, data in kept.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return Store(folder / "store").known()


def test_the_first_night_has_nothing_to_compare_with_and_is_kept(night: Life) -> None:
    assert night.first["nightly"].failures == {}
    assert night.first["nightly"].conclusion == "success"
    assert "there is no run to compare with" in night.first["nightly"].log


def test_the_suite_has_the_nightly_that_was_found_once(night: Life) -> None:
    run = night.first["nightly"]
    assert NIGHTLY in run.leg("pin").log
    (leg,) = (leg for leg in run.jobs["suite"].legs if leg.matrix["pin"] == "nightly")
    assert "install the torch of ci/pins/nightly.yaml" in leg.log


def test_the_last_reports_are_kept_to_be_compared_with(night: Life) -> None:
    latest = {path for path in night.kept if not path.startswith("store/")}
    ours = {f"nightly/latest/{lane}-sim.json.gz" for lane in ("oldest", "nightly")}
    assert latest == {*ours, "nightly/foreign/cpu.json.gz"}


def test_the_store_grows_by_the_runs_of_each_night(night: Life, tmp_path: Path) -> None:
    first = runs(night.kept_of_first, tmp_path / "first")
    both = runs(night.kept, tmp_path / "second")
    assert (len(first), len(both)) == (3, 6)
    assert first < both


def test_what_is_in_the_store_is_never_changed(night: Life) -> None:
    before, after = (
        {path: data for path, data in kept.items() if path.startswith("store/")}
        for kept in (night.kept_of_first, night.kept)
    )
    assert before.items() < after.items()


def test_the_dashboard_of_a_night_has_all_nights_so_far(night: Life, tmp_path: Path) -> None:
    for number, (done, kept) in enumerate(
        ((night.first, night.kept_of_first), (night.second, night.kept))
    ):
        site = night.site(done)
        pages = "".join(
            site[f"backend/{name}/index.html"].decode() for name in ("puone-sim", "cpu")
        )
        linked = set(re.findall(r"run/([0-9a-f]{12})\.html", pages))
        assert linked == {id[:12] for id in runs(kept, tmp_path / str(number))}


def test_the_dashboard_tells_what_changes_in_pytorch_up_to_the_nightly(night: Life) -> None:
    steps = {name for name in night.site(night.second) if name.startswith("upstream/")}
    nightly, _, _ = NIGHTLY.partition("+")
    assert {"upstream/2.11.0-2.13.0.html", f"upstream/2.15.0-{nightly}.html"} <= steps


def test_the_dashboard_is_deployed_though_the_night_is_red(night: Life) -> None:
    run = night.second["nightly"]
    assert run.jobs["store"].result == "failure"
    assert run.jobs["deploy"].result == "success"
    assert run.leg("deploy").url.startswith("https://")


def test_the_second_night_tells_what_got_worse_and_is_red(night: Life) -> None:
    store = night.second["nightly"].leg("store")
    assert night.second["nightly"].conclusion == "failure"
    assert "new failure: memory/" in store.log
    assert "regression" in store.summary


def test_a_red_night_is_kept_all_the_same(night: Life) -> None:
    published = night.second["nightly"].leg("store").steps[-1]
    assert published.outcome == "success"
    assert "branch results" in published.log


def test_the_second_night_is_cut_by_the_durations_of_the_first(night: Life) -> None:
    assert "no such file yet" in night.first["nightly"].leg("suite").log
    assert "no such file yet" not in night.second["nightly"].leg("suite").log


def test_every_step_of_its_workflows_is_played(night: Life) -> None:
    assert left(PLAYS, night.stage) == set()
