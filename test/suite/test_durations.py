# SPDX-License-Identifier: BSD-3-Clause
"""Shards cut by the durations of an earlier run: alike in time, disjoint, complete, repeatable."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import harness
import pytest
import synthetic

from torch_conformance.cli import main
from torch_conformance.selecting import durations
from torch_conformance.spec import strict


def load(folder: Path, content: Any, name: str = "before.json") -> durations.Durations:
    file = folder / name
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return durations.load(file)


@pytest.mark.parametrize("count", [1, 2, 4, 7, 500])
def test_parts_are_disjoint_complete_and_the_same_in_any_order(count: int) -> None:
    chance = random.Random(count)
    seconds = {f"a/c{i}": chance.expovariate(1) for i in range(300)}
    ids = [*seconds, *(f"b/new:{i}" for i in range(30))]
    parts = durations.parts(ids, count, seconds)
    assert len(parts) == count
    assert sorted(id for part in parts for id in part) == sorted(ids)
    chance.shuffle(ids)
    known = list(seconds.items())
    chance.shuffle(known)
    assert durations.parts(ids, count, dict(known)) == parts


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_no_part_takes_longer_than_the_even_share_and_the_longest_check(count: int) -> None:
    chance = random.Random(count)
    seconds = {f"a/c{i}": chance.paretovariate(1.2) for i in range(400)}
    parts = durations.parts(seconds, count, seconds)
    made = [sum(seconds[id] + durations.OVERHEAD for id in part) for part in parts]
    assert max(made) <= sum(made) / count + max(seconds.values())


def test_a_check_that_outlasts_all_others_has_a_part_almost_for_itself() -> None:
    seconds = {f"a/c{i}": 0.1 for i in range(100)} | {"a/long": 30.0}
    first, second = durations.parts(seconds, 2, seconds)
    assert first == ["a/long"]
    assert len(second) == 100


def test_a_small_topic_stays_together_and_a_large_one_does_not() -> None:
    small = [f"a/small:{i}" for i in range(durations.TOGETHER)]
    large = [f"a/large:{i}" for i in range(durations.TOGETHER + 1)]
    seconds = dict.fromkeys([*small, *large], 1.0)
    parts = durations.parts(seconds, 3, seconds)
    assert sum(not set(small).isdisjoint(part) for part in parts) == 1
    assert sum(not set(large).isdisjoint(part) for part in parts) > 1


def test_without_any_durations_the_parts_are_alike_in_number() -> None:
    parts = durations.parts([f"a/c{i}" for i in range(11)], 4, {})
    assert [len(part) for part in parts] == [3, 3, 3, 2]


def test_an_unknown_check_is_taken_to_be_like_the_median_of_its_kin() -> None:
    known = {"a/t:x": 1.0, "a/t:y": 2.0, "a/t:z": 9.0, "a/u": 20.0, "b/v": 100.0}
    asked = ["a/t:x", "a/t:new", "a/new", "c/new"]
    assert durations.estimates(asked, known) == {
        "a/t:x": 1.0,
        "a/t:new": 2.0,
        "a/new": 5.5,
        "c/new": 9.0,
    }


def test_any_report_serves_also_a_compressed_one_and_what_did_not_run_says_nothing(
    tmp_path: Path,
) -> None:
    records = [
        synthetic.record("COPY-001", duration_s=2.5),
        synthetic.record("COPY-002", "not_run", duration_s=0.0),
        synthetic.record("COPY-003", "timeout", duration_s=10**9),
    ]
    content = synthetic.content(records)
    plain = load(tmp_path, content)
    assert plain.seconds == {
        records[0]["id"]: 2.5,
        records[2]["id"]: durations.LONGEST,
    }
    packed = load(tmp_path, content, "before.json.gz")
    assert (packed.seconds, packed.sha256) == (plain.seconds, plain.sha256)


REFUSED: dict[str, tuple[Any, str]] = {
    "empty": (b"", "empty"),
    "no object": ([], "no list of checks"),
    "no checks": ({"checks": {}}, "no list of checks"),
    "no record": ({"checks": [1]}, r"checks\[0\] is not a record"),
    "no id": ({"checks": [{"duration_s": 1}]}, r"checks\[0\] has no id"),
    "true": ({"checks": [{"id": "a/b", "duration_s": True}]}, "duration_s"),
    "negative": ({"checks": [{"id": "a/b", "duration_s": -1}]}, "duration_s"),
    "infinite": (b'{"checks": [{"id": "a/b", "duration_s": 1e999}]}', "too large"),
    "not a number": (b'{"checks": [{"id": "a/b", "duration_s": NaN}]}', "NaN"),
    "deep": (b"[" * 100_000, "nested deeper"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_is_no_report_is_refused(tmp_path: Path, case: str) -> None:
    content, words = REFUSED[case]
    with pytest.raises(durations.DurationsError, match=words):
        load(tmp_path, content)


def test_what_is_called_compressed_and_is_not_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "before.json.gz"
    for content in (b"{}", gzip.compress(b"{}" * 9999)[:-9]):
        file.write_bytes(content)
        with pytest.raises(durations.DurationsError, match="invalid gzip data"):
            durations.load(file)


def test_a_compressed_bomb_is_not_unpacked_beyond_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strict, "MAX_BYTES", 1000)
    with pytest.raises(durations.DurationsError, match="larger than"):
        load(tmp_path, b"[" + b" " * 10_000_000 + b"]", "before.json.gz")


@pytest.mark.parametrize("distributed", [(), pytest.param(("-n1",), marks=pytest.mark.nightly)])
def test_a_run_in_shards_by_durations_is_merged_and_serves_the_next_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], distributed: tuple[str, ...]
) -> None:
    before = tmp_path / "before.json"
    records = [{"id": f"planted/good:before_{i}", "duration_s": 0.1} for i in range(1, 19)]
    records.append({"id": "planted/good:before_19", "duration_s": 9.0})
    before.write_text(json.dumps({"checks": records}))
    files, sizes = [], []
    for index in (1, 2):
        folder = tmp_path / str(index)
        folder.mkdir()
        options = ("--backend=cpu", "--check=planted/good*", f"--shard={index}/2")
        run = harness.run(folder, harness.PLANTED, *options, f"--shard-by={before}", *distributed)
        assert run.code == 0
        files.append(str(run.report_file))
        sizes.append(len(run.outcomes))
    assert sizes == [1, 19]
    merged = tmp_path / "merged.json"
    assert main(["merge", *files, "-o", str(merged)]) == 0
    assert "20 checks of 2 shards, each exactly once" in capsys.readouterr().out
    assert len(durations.load(merged).seconds) == 20


def test_durations_that_do_not_exist_yet_are_said_and_the_parts_are_alike_in_number(
    tmp_path: Path,
) -> None:
    options = ("--backend=cpu", "--check=planted/good*", "--shard=1/2", "--shard-by=absent.json")
    run = harness.run(tmp_path, harness.PLANTED, *options)
    assert len(run.outcomes) == 10
    assert "--shard-by absent.json: no such file yet; shards are alike in number" in run.text
    assert "durations" not in run.report["run"]["options"]
