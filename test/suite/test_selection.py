# SPDX-License-Identifier: BSD-3-Clause
"""A report says which checks were selected, and whether anybody chose among them."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import harness
import msgspec
import pytest

from torch_conformance.cli import main
from torch_conformance.pytest_plugin import selected
from torch_conformance.results import source
from torch_conformance.selecting import selection


def test_parts_of_a_selection_are_disjoint_complete_and_of_the_size_foretold() -> None:
    ids = [f"a/c{i}" for i in range(11)]
    parts = [selection.part(ids, i, 4) for i in (1, 2, 3, 4)]
    assert sorted(id for part in parts for id in part) == sorted(ids)
    assert [len(part) for part in parts] == [selection.part_size(11, i, 4) for i in (1, 2, 3, 4)]


def test_the_digest_does_not_depend_on_the_order() -> None:
    assert selection.digest(["a/b", "a/a"]) == hashlib.sha256(b"a/a\na/b").hexdigest()


def test_the_digest_of_the_suite_is_that_of_its_files() -> None:
    assert source.digest() == source.digest.__wrapped__()
    assert len(source.digest()) == 64


def test_a_checkout_names_its_commit() -> None:
    commit = source.commit()
    assert commit is not None
    assert len(commit.removesuffix("-dirty")) == 40


def test_only_a_change_of_the_suite_makes_its_commit_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "conformance/src/torch_conformance/a.py"
    pin = tmp_path / "ci/pins/nightly.yaml"
    for file in (suite, pin):
        file.parent.mkdir(parents=True)
        file.write_text("before\n")
    who = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    for words in (("init",), ("add", "."), (*who, "commit", "--message", "x")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setattr(source, "PACKAGE", suite.parent)
    clean = source.commit.__wrapped__()
    pin.write_text("after\n")
    assert source.commit.__wrapped__() == clean
    suite.write_text("after\n")
    assert source.commit.__wrapped__() == f"{clean}-dirty"


@pytest.mark.parametrize("distributed", [(), ("-n1",)])
def test_a_run_says_what_was_chosen_and_which_files_took_part(
    tmp_path: Path, distributed: tuple[str, ...]
) -> None:
    listed = tmp_path / "known.yaml"
    listed.write_text("")
    options = ("--check=planted/good*", "-k", "before_1 and not before_19", "--shard=2/3")
    run = harness.run(
        tmp_path,
        harness.PLANTED,
        "--backend=cpu",
        f"--expectations={listed}",
        *options,
        *distributed,
    )
    ids = ["planted/good:before_1", *(f"planted/good:before_{i}" for i in range(10, 19))]
    assert run.report["run"]["selection"] == {
        "checks": 10,
        "digest": selection.digest(ids),
        "differs_by": ["--check=planted/good*", "--checks-dir", selected.PYTEST],
        "part": {"checks": 3, "digest": selection.digest(run.outcomes)},
    }
    assert sorted(run.outcomes) == selection.part(ids, 2, 3)
    assert run.report["complete"] is True
    assert run.report["run"]["expectations"] == msgspec.to_builtins(source.fingerprint(listed))
    assert run.report["run"]["descriptor"]["file"] == "cpu.yaml"
    assert run.report["run"]["source"] == {"commit": source.commit(), "digest": source.digest()}
    assert "level: not assessed: this is shard 2/3 of a run; merge the shards first" in run.text
    assert main(["report", str(run.report_file)]) == 0
    assert "before_10 before_13 before_16" in run.report_file.with_suffix(".html").read_text()
    assert run.report["requirements"]["PLANT-001"] == {"level": "must", "tier": "smoke"}
