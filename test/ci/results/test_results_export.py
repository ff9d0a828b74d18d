# SPDX-License-Identifier: BSD-3-Clause
"""What is exported is what is in the store, in a form that other programs take.

ClickHouse is asked for real (chdb), and has to say what DuckDB says of the store.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dashboard_sample
import duckdb
import pytest
import synthetic
from clickhouse_oracle import Rows, ask

from torch_backend_ci.cli import main
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.relay import callback
from torch_backend_ci.relay import results as relay
from torch_backend_ci.results.export import folder, tables
from torch_backend_ci.results.store import Store

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "ci" / "results-export.md"
REPOSITORY = "me/torch-mychip"
NIGHTS = dashboard_sample.NIGHTS

# pytorch/test-infra, clickhouse_db_schema/default.crcr_workflow_job/schema.sql at
# 4a960e0699ac5089cc2385972cceb158b80970fc: names, types, kinds of defaults, in order.
OF_PYTORCH = """
dynamoKey String; status String; downstream_repo String; upstream_repo String; pr_number UInt64;
pytorch_head_sha String; delivery_id String; workflow_run_url String; workflow_name String;
job_name String DEFAULT; check_run_id String DEFAULT; run_id String DEFAULT;
run_attempt UInt32 DEFAULT; conclusion String; queue_time Nullable(Float64);
execution_time Nullable(Float64); started_at DateTime64(9); completed_at DateTime64(9);
total_tests UInt64 DEFAULT; passed_tests UInt64 DEFAULT; failed_tests UInt64 DEFAULT;
skipped_tests UInt64 DEFAULT; failed_tests_json String DEFAULT; artifact_url String DEFAULT;
environment String DEFAULT; downstream_repo_level String DEFAULT; event_type String DEFAULT;
_inserted_at DateTime MATERIALIZED; repository_full_name String ALIAS;
duration_seconds Float64 ALIAS
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return dashboard_sample.write(tmp_path_factory.mktemp("reports"), dashboard_sample.sample())


@pytest.fixture(scope="module")
def store(reports: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return added(tmp_path_factory.mktemp("store") / "D", *reports)


@pytest.fixture(scope="module")
def other(reports: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same runs, which came in three parts, the last ones first."""
    path = tmp_path_factory.mktemp("store") / "other"
    for part in (reports[20:], reports[7:21], reports[:7]):
        added(path, *part)
    return path


@pytest.fixture(scope="module")
def exported(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clickhouse(store, tmp_path_factory.mktemp("export") / "OUT")


def added(store: Path, *files: Path) -> Path:
    assert main(["results", "add", "--store", str(store), *map(str, files)]) == Exit.OK
    return store


def export(store: Path, out: Path, *words: str) -> Path:
    assert main(["results", "export", "--store", str(store), "-o", str(out), *words]) == Exit.OK
    return out


def clickhouse(store: Path, out: Path, *words: str) -> Path:
    return export(store, out, "--format", "clickhouse", "--repository", REPOSITORY, *words)


def of_store(store: Path, query: str) -> Rows:
    """What DuckDB says."""
    return Store(store).read(lambda db: [list(row) for row in db.execute(query).fetchall()])


def contents(out: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in out.iterdir()}


# ---- ClickHouse ----------------------------------------------------------------------------

# What is asked of both: of ClickHouse's tables, and of the store's.
ALIKE = {
    "runs": (
        "SELECT count() FROM crcr_workflow_job FINAL",
        "SELECT count(*) FROM runs",
    ),
    "runs by backend, line and level": (
        "SELECT backend, line, level, count() FROM conformance_run FINAL GROUP BY ALL ORDER BY ALL",
        "SELECT backend, line, coalesce(level, '') AS level, count(*) FROM runs "
        "GROUP BY ALL ORDER BY ALL",
    ),
    "results by backend, line, outcome and evidence": (
        "SELECT backend, line, outcome, evidence, count() "
        "FROM conformance_check FINAL GROUP BY ALL ORDER BY ALL",
        "SELECT backend, line, outcome, coalesce(r.evidence, '') AS evidence, count(*) "
        "FROM results r JOIN runs ON run = id GROUP BY ALL ORDER BY ALL",
    ),
    "seconds by surface": (
        "SELECT surface, round(sum(duration_s), 6) FROM conformance_check FINAL "
        "GROUP BY ALL ORDER BY ALL",
        "SELECT surface, round(sum(duration_s), 6) FROM results GROUP BY ALL ORDER BY ALL",
    ),
    "when a check was first bad": (
        "SELECT backend, line, check, toUnixTimestamp64Micro(min(started_at)::DateTime64(6)) "
        "FROM conformance_check FINAL WHERE outcome IN ('fail', 'crash') "
        "GROUP BY ALL ORDER BY ALL",
        "SELECT backend, line, check_id, epoch_us(min(started)) "
        "FROM results JOIN runs ON run = id WHERE outcome IN ('fail', 'crash') "
        "GROUP BY ALL ORDER BY ALL",
    ),
    "every text": (
        "SELECT check_run_id, check, message, reason, repro, fallbacks, waiver "
        "FROM conformance_check FINAL WHERE outcome != 'pass' ORDER BY ALL",
        "SELECT run, check_id, coalesce(message, ''), coalesce(reason, ''), coalesce(repro, ''), "
        "coalesce(fallbacks, []), coalesce(waiver_list || ': ' || waiver_id, '') "
        "FROM results WHERE outcome != 'pass' ORDER BY ALL",
    ),
    "checks by requirement": (
        "SELECT arrayJoin(requirements) AS id, uniqExact(check) FROM conformance_check FINAL "
        "GROUP BY id ORDER BY id",
        "SELECT id, count(DISTINCT check_id) FROM "
        "(SELECT unnest(requirements) AS id, check_id FROM results) GROUP BY id ORDER BY id",
    ),
    "totals": (
        "SELECT check_run_id, totals['pass'], totals['crash'], bad, evidence['native'] "
        "FROM conformance_run FINAL ORDER BY check_run_id",
        "SELECT id, totals['pass'], totals['crash'], bad, evidence['native'] FROM runs ORDER BY id",
    ),
    "what runs say of themselves": (
        "SELECT check_run_id, backend, torch, torch_git, platform, devices, toInt64(seed), "
        "complete, cannot_load, why_not, capabilities['streams'], standings['MEM-003'] "
        "FROM conformance_run FINAL ORDER BY check_run_id",
        "SELECT id, backend, torch, coalesce(torch_git, ''), platform, devices, seed, complete, "
        "coalesce(cannot_load, ''), coalesce(why_not, ''), capabilities['streams'].value, "
        "coalesce(standings['MEM-003'], '') FROM runs ORDER BY id",
    ),
}


@pytest.fixture(scope="module")
def answers(exported: Path) -> dict[str, Rows]:
    """What ClickHouse says of an export that was loaded twice."""
    return dict(zip(ALIKE, ask([q for q, _ in ALIKE.values()], exported, exported), strict=True))


@pytest.mark.parametrize("name", ALIKE)
def test_clickhouse_says_what_duckdb_says_of_the_store(
    name: str, answers: dict[str, Rows], store: Path
) -> None:
    expected = of_store(store, ALIKE[name][1])
    assert expected
    assert answers[name] == expected


def test_a_server_in_another_time_zone_has_the_same_times(exported: Path, store: Path) -> None:
    query = (
        "SELECT toUnixTimestamp(min(started_at)), toUnixTimestamp(max(completed_at)), "
        "sum(duration_seconds) FROM crcr_workflow_job FINAL"
    )
    expected = of_store(
        store, "SELECT epoch(min(started))::BIGINT, epoch(max(started))::BIGINT + 1 FROM runs"
    )
    for zone in ("UTC", "Asia/Tokyo"):
        ((answer,),) = ask([query], exported, zone=zone)
        assert answer[:2] == expected[0]
        assert answer[2] > 0


def test_the_relays_table_has_the_columns_that_pytorchs_has(exported: Path) -> None:
    query = (
        "SELECT name, type, default_kind FROM system.columns "
        "WHERE database = 'default' AND table = 'crcr_workflow_job' ORDER BY position"
    )
    (columns,) = ask([query], exported)
    there = "; ".join(" ".join(filter(None, column)) for column in columns)
    assert there == " ".join(OF_PYTORCH.split())


def test_a_job_is_counted_as_the_relay_counts(
    exported: Path, reports: list[Path], tmp_path: Path
) -> None:
    query = (
        "SELECT passed_tests, failed_tests, skipped_tests, total_tests, conclusion "
        "FROM crcr_workflow_job FINAL WHERE job_name = {job} AND toDate(started_at) = {day}"
    )
    named = {
        "cpu-2.13.0-2026-11-17": "cpu 2.13",
        "puone-2.13.0-2026-11-19": "puone-sim 2.13",
        "puone-2.14.0.dev20261101-2026-11-18": "puone-sim nightly",
        "hostile-2.13.0-2026-11-20": "hostile 2.13",
        "hostile-2.14.0.dev20261101-2026-11-20": "hostile nightly",
    }
    asked = [query.format(job=f"'{job}'", day=f"'{name[-10:]}'") for name, job in named.items()]
    for name, rows in zip(named, ask(asked, exported), strict=True):
        (packed,) = (report for report in reports if report.name == f"{name}.json.gz")
        file = tmp_path / f"{name}.json"
        file.write_bytes(gzip.decompress(packed.read_bytes()))
        told = relay.read([file])
        total = told.passed + told.failed + told.skipped
        counts = [told.passed, told.failed, told.skipped, total]
        assert rows == [[*counts, callback.conclusion(None, told)]], name


def test_a_job_has_the_key_that_the_dashboard_of_pytorch_makes(exported: Path) -> None:
    query = (
        "SELECT dynamoKey, downstream_repo, delivery_id, workflow_name, job_name, check_run_id, "
        "pytorch_head_sha, event_type, status FROM crcr_workflow_job FINAL"
    )
    (rows,) = ask([query], exported)
    for key, repository, delivery, workflow, job, check, sha, event, status in rows:
        assert key == "/".join((repository, delivery, workflow, job, check))
        assert repository == REPOSITORY and sha == delivery and len(sha) == 40
        assert event == ("nightly" if job.endswith(" nightly") else "periodic")
        assert status == "completed"


def test_queries_in_the_form_of_pytorchs_dashboard_are_answered(exported: Path) -> None:
    """One row for each repository, and the jobs of nights by the commit of PyTorch."""
    summary = (
        "SELECT downstream_repo AS repo, countIf(conclusion = 'success') AS good, "
        "count() AS total, if(total > 0, good / total, 0) AS rate, avg(duration_seconds) > 0, "
        "anyLast(downstream_repo_level) FROM default.crcr_workflow_job FINAL "
        "WHERE status = 'completed' AND started_at > toDateTime('2026-11-01') GROUP BY repo"
    )
    nights = (
        "SELECT pytorch_head_sha, uniqExact(job_name), max(run_attempt) "
        "FROM default.crcr_workflow_job FINAL WHERE downstream_repo = 'me/torch-mychip' "
        "AND event_type = 'nightly' AND match(pytorch_head_sha, '^[0-9a-f]{40}$') "
        "GROUP BY pytorch_head_sha"
    )
    (((repo, good, total, rate, *_),), nightly) = ask([summary, nights], exported)
    assert (repo, rate) == (REPOSITORY, good / total)
    assert 0 < good < total
    assert [row[1:] for row in nightly] == [[3, 1]]


def test_the_documented_query_tells_since_when_a_check_fails(exported: Path) -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    (query,) = re.findall(r"^```sql\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    assert "'memory/empty_cache:c0'" in query
    (rows,) = ask([query.replace("memory/empty_cache:c0", dashboard_sample.BROKEN)], exported)
    told = {(backend, line): since for backend, line, since, _ in rows}
    assert told["puone-sim", "2.13"] == f"{NIGHTS[2]} 03:00:00.000"


def test_failures_are_in_the_row_of_their_job_within_the_limits_of_the_rfc(
    tmp_path: Path,
) -> None:
    bad = [synthetic.record("MEM-001", "fail", n, message="é" * 3000) for n in range(1005)]
    file = tmp_path / "report.json"
    file.write_bytes(synthetic.encode(synthetic.content(bad)))
    out = clickhouse(added(tmp_path / "D", file), tmp_path / "OUT")
    (((text, failed),),) = ask(
        ["SELECT failed_tests_json, failed_tests FROM crcr_workflow_job FINAL"], out
    )
    told = json.loads(text)
    assert (len(told), failed) == (1000, 1005)
    assert told[0].keys() == {"name", "classname", "message", "duration_s"}
    assert all(one["message"] == "é" * 1000 for one in told)


def test_what_a_hostile_report_says_is_a_row_like_any_other(tmp_path: Path) -> None:
    strange = "\0\ufeff'; DROP TABLE conformance_run; --\\\t\r\n\U0001f980\u202e"
    record = synthetic.record("MEM-001", "fail", message=strange, samples=2**62, duration_s=3e7)
    made = synthetic.content([record], seed=2**63 - 1, platform=strange, devices=[strange])
    file = tmp_path / "report.json"
    file.write_bytes(synthetic.encode(made))
    out = clickhouse(added(tmp_path / "D", file), tmp_path / "OUT")
    answers = ask(
        [
            "SELECT message, toString(samples), duration_s FROM conformance_check FINAL",
            "SELECT platform, devices, toString(seed) FROM conformance_run FINAL",
            "SELECT JSONExtractString(failed_tests_json, 1, 'message') FROM crcr_workflow_job",
        ],
        out,
    )
    assert answers[0] == [[strange, str(2**62), 3e7]]
    assert answers[1] == [[strange, [strange], str(2**63 - 1)]]
    assert answers[2] == [[strange]]


def test_nights_that_are_loaded_one_by_one_are_all_there_once(
    exported: Path, store: Path, tmp_path: Path
) -> None:
    """Each export reaches back to the night before, as one that is made by a clock would."""
    parts = [clickhouse(store, tmp_path / day, "--since", day) for day in reversed(NIGHTS)]
    query = (
        "SELECT backend, line, check, outcome, started_at FROM conformance_check FINAL ORDER BY ALL"
    )
    jobs = "SELECT dynamoKey FROM crcr_workflow_job FINAL ORDER BY dynamoKey"
    assert ask([query, jobs], *parts) == ask([query, jobs], exported)


# ---- files ---------------------------------------------------------------------------------


def test_only_runs_since_a_day_are_exported(store: Path, tmp_path: Path) -> None:
    out = export(store, tmp_path / "OUT", "--since", NIGHTS[2])
    rows = duckdb.sql(
        f"SELECT DISTINCT started::DATE::VARCHAR FROM '{out}/runs.parquet' ORDER BY 1"
    )
    assert [day for (day,) in rows.fetchall()] == list(NIGHTS[2:])
    (results,) = duckdb.sql(f"SELECT count(*) FROM '{out}/results.parquet'").fetchall()[0]
    expected = f"SELECT count(*) FROM results JOIN runs ON run = id WHERE started >= '{NIGHTS[2]}'"
    assert [[results]] == of_store(store, expected)


@pytest.mark.parametrize("name", ["runs", "results"])
def test_parquet_has_the_rows_of_the_store(name: str, store: Path, tmp_path: Path) -> None:
    out = export(store, tmp_path / "OUT", "--format", "parquet")
    rows = duckdb.sql(f"SELECT * FROM '{out}/{name}.parquet' ORDER BY ALL").fetchall()
    assert [list(row) for row in rows] == of_store(store, f"SELECT * FROM {name} ORDER BY ALL")


def of_csv(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def of_ndjson(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("kind", "read"), [("csv", of_csv), ("ndjson", of_ndjson)])
def test_what_is_nested_is_json_for_those_who_read_text(
    kind: str, read: Callable[[Path], list[dict[str, Any]]], store: Path, tmp_path: Path
) -> None:
    out = export(store, tmp_path / "OUT", "--format", kind)
    runs, results = read(out / f"runs.{kind}"), read(out / f"results.{kind}")
    query = "SELECT id, totals['pass'], steps[1].must FROM runs ORDER BY started, id"
    seen = []
    for row in runs:
        totals, steps = (
            json.loads(row[key]) if kind == "csv" else row[key] for key in ("totals", "steps")
        )
        seen.append([row["id"], totals["pass"], steps[0]["must"] if steps else None])
    assert seen == of_store(store, query)
    query = (
        "SELECT check_id, message FROM results JOIN runs ON run = id ORDER BY started, id, check_id"
    )
    told = [[row["check_id"], row["message"] or None] for row in results]
    assert told == of_store(store, query)


@pytest.mark.parametrize("kind", ["parquet", "csv", "ndjson", "clickhouse"])
def test_equal_stores_give_equal_bytes(kind: str, store: Path, other: Path, tmp_path: Path) -> None:
    words = ("--format", kind, *(("--repository", REPOSITORY) if kind == "clickhouse" else ()))
    first, second = (export(one, tmp_path / one.name, *words) for one in (store, other))
    assert contents(first) == contents(second)


def test_an_empty_store_has_files_without_rows(tmp_path: Path) -> None:
    (tmp_path / "D").mkdir()
    (tmp_path / "D/store.json").write_text('{"schema": "urn:torch-conformance:results:1"}')
    out = clickhouse(tmp_path / "D", tmp_path / "OUT")
    assert ask([f"SELECT count() FROM {table}" for table in tables.CLICKHOUSE], out) == [[[0]]] * 3


# ---- what can go wrong ---------------------------------------------------------------------


def refused(store: Path, out: Path, *words: str) -> None:
    status = main(["results", "export", "--store", str(store), "-o", str(out), *words])
    assert status == Exit.UNUSABLE


def test_a_folder_with_files_is_left_as_it_is(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("precious")
    refused(store, tmp_path)
    assert "exists: remove it, or choose a new directory" in capsys.readouterr().err
    assert contents(tmp_path) == {"mine": b"precious"}


def test_an_export_that_fails_on_its_way_leaves_nothing(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [*tables.plain("csv"), tables.Table("no/such/folder.csv", "SELECT 1", "FORMAT csv")]
    monkeypatch.setattr(tables, "plain", lambda kind: iter(made))
    refused(store, tmp_path / "OUT", "--format", "csv")
    assert "cannot write" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from torch_backend_ci.cli import main
from torch_backend_ci.results.export import folder
folder.os.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""


def test_an_export_that_is_killed_has_no_name_yet(store: Path, tmp_path: Path) -> None:
    words = ["results", "export", "--store", str(store), "-o", str(tmp_path / "OUT")]
    done = subprocess.run([sys.executable, "-c", KILLED, *words], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "OUT").exists()
    assert len(contents(export(store, tmp_path / "OUT"))) == 2


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(CiError, match=r"cannot write .*file/OUT"),
        folder.new(tmp_path / "file/OUT"),
    ):
        pass


def test_clickhouse_needs_to_know_the_repository(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(store, tmp_path / "OUT", "--format", "clickhouse")
    assert "needs --repository OWNER/NAME" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["--since", "yesterday"], ["--repository", "a'b/c"], ["--format", "xml"]],
    ids=" ".join,
)
def test_options_that_make_no_sense_are_refused(
    words: list[str], store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["results", "export", "--store", str(store), "-o", str(tmp_path / "OUT"), *words])
    assert words[1] in capsys.readouterr().err.replace('"', "")
    assert not (tmp_path / "OUT").exists()


def test_a_store_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(tmp_path / "D", tmp_path / "OUT")
    assert "there is no store" in capsys.readouterr().err
