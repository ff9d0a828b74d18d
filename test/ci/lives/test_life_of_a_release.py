# SPDX-License-Identifier: BSD-3-Clause
"""A tag is built, attested and published; the card and the mutants get their turn."""

from __future__ import annotations

import io
import zipfile

import pytest

from lives.of_a_release import PLAYS, Life
from lives.steps import left

pytestmark = pytest.mark.nightly

PUBLISHED = {"torch-conformance", "puone-hal-conformance", "torch-backend-ci", "torch-puone"}


def test_a_tag_is_built_attested_and_published(release: Life) -> None:
    run = release.release["release"]
    assert run.conclusion == "success"
    assert set(release.release) == {"release"}
    legs = [leg.matrix["package"] for leg in run.jobs["publish"].legs]
    assert sorted(legs) == sorted(PUBLISHED)


def test_what_is_published_is_what_was_built(release: Life) -> None:
    run = release.release["release"]
    archive = release.stage.hub.artifacts(run.number)["dist"]
    with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
        folders = {name.partition("/")[0] for name in zipped.namelist()}
    assert folders == {*PUBLISHED, "wheels"}


def test_a_machine_without_a_card_says_so_and_nothing_is_green(release: Life) -> None:
    run = release.card["gpu"]
    assert run.conclusion == "failure"
    assert "no GPU: nvidia-smi finds none" in run.log


def test_every_night_has_mutants_of_its_own(release: Life) -> None:
    run = release.mutants["mutants"]
    assert f"-m mutants --seed {run.number} --summary" in run.log


def test_every_night_runs_each_claim_of_the_readme_with_a_new_seed(release: Life) -> None:
    run = release.claims["claims"]
    claims = {leg.matrix["claim"]: leg.log for leg in run.jobs["claim"].legs}
    assert set(claims) == {"liars", "subjects", "controls", "fuzz", "header-edits", "endurance"}
    assert "test/liars/judge.py" in claims["liars"]
    assert f"--hypothesis-seed={run.number}" in claims["fuzz"]
    assert f"FUZZ_SEED={run.number} " in claims["endurance"]
    assert "-DPUONE_CUDA=OFF" in claims["subjects"]
    assert "-DCMAKE_UNITY_BUILD=OFF" in claims["subjects"]
    assert all("git diff --exit-code" in log for log in claims.values())


def test_every_step_of_its_workflows_is_played(release: Life) -> None:
    assert left(PLAYS, release.stage) == set()
