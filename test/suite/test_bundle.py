# SPDX-License-Identifier: BSD-3-Clause
"""A bundle is verified only if everything in it is what the rest of it gives."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import pytest
import synthetic
from synthetic import needs, record, replaced

from torch_conformance.authoring import discovery
from torch_conformance.authoring.check import Check
from torch_conformance.cli import main
from torch_conformance.judging import verification
from torch_conformance.results import bundle, reader, source
from torch_conformance.spec.catalogue import LEVELS, TIERS
from torch_conformance.spec.ids import BREADTHS, STANDARD

Members = dict[str, bytes]

DESCRIPTOR = b"device_type: mychip\ncapabilities: {streams: true}\n"
EXPECTATIONS = b"""xfail:
- id: copy/copy_001:*
  reason: the last byte is lost
  link: https://example.org/1
  status: fail
  expires: 2027-01-31
flaky:
- id: event/event_001:c0
  reason: events are late
  link: https://example.org/2
"""


def attached(name: str, content: bytes) -> dict[str, str]:
    """How a run names a file that took part."""
    return {"file": name, "sha256": hashlib.sha256(content).hexdigest()}


def content(*records: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A report of a run that used a descriptor and expectations."""
    waived = [
        record(
            "COPY-001",
            "xfail",
            reason="the last byte is lost",
            excused={"list": "xfail", "entry": "copy/copy_001:*"},
        ),
        record(
            "EVENT-001",
            "flaky",
            reason={
                "kind": "excused",
                "list": "flaky",
                "entry": "event/event_001:c0",
                "text": "events are late",
                "link": "https://example.org/2",
                "observed": "pass",
            },
        ),
    ]
    made = replaced(*waived, *records)
    made["run"] |= {
        "descriptor": attached("mychip.yaml", DESCRIPTOR),
        "expectations": attached("known.yaml", EXPECTATIONS),
    } | changes
    made["run"]["capabilities"]["streams"] = {"value": True, "source": "declared"}
    return made


OTHERS = {
    bundle.DESCRIPTOR: DESCRIPTOR,
    bundle.EXPECTATIONS: EXPECTATIONS,
    bundle.LOG: b"42 passed\n",
}


def members(made: dict[str, Any], others: Members = OTHERS) -> Members:
    """What `submit` packs for a report."""
    data = synthetic.encode(made)
    return bundle.unpack(bundle.pack(synthetic.document(made), data, others))


def known(made: dict[str, Any]) -> verification.Own:
    """A suite that has the checks of a report."""

    def body(dev: Any) -> None:
        """Nothing."""

    checks = [Check(r["id"], tuple(r["requirements"]), body) for r in made["checks"]]
    return verification.Own(checks, "2.13.0", synthetic.requirements(), source.digest())


def refused(found: Members, suite: verification.Own | None = None) -> str:
    return "\n".join(verification.findings(found, suite)[1])


def test_an_honest_bundle_is_what_it_says() -> None:
    made = content()
    assert refused(members(made), known(made)) == ""


def test_the_same_inputs_give_the_same_bytes() -> None:
    made = content()
    packed = [
        bundle.pack(synthetic.document(made), synthetic.encode(made), dict(order))
        for order in (OTHERS.items(), reversed(OTHERS.items()))
    ]
    assert packed[0] == packed[1]


@pytest.mark.parametrize("name", [bundle.MANIFEST, bundle.REPORT, bundle.JUNIT, *OTHERS])
def test_a_file_that_was_changed_is_noticed(name: str) -> None:
    found = members(content())
    found[name] = found[name].replace(b"pass", b"pazz").replace(b"i", b"I", 1)
    assert refused(found)


def test_a_report_that_was_made_greener_is_noticed_by_its_digests() -> None:
    honest, green = content(record("STREAM-004", "fail")), content()
    found = members(honest) | {bundle.REPORT: synthetic.encode(green)}
    text = refused(found)
    assert "report.xml is not what the report gives" in text
    assert "manifest.json: files is not what the other files give" in text
    assert "manifest.json: totals is not" in text


@pytest.mark.parametrize(
    ("key", "value"),
    [("level", "compile"), ("seed", 1), ("state", "red"), ("totals", {}), ("without", ["x"])],
)
def test_every_fact_of_the_manifest_is_recomputed(key: str, value: Any) -> None:
    found = members(content())
    said = json.loads(found[bundle.MANIFEST]) | {key: value}
    found[bundle.MANIFEST] = json.dumps(said).encode()
    assert f"manifest.json: {key} is not" in refused(found)


def test_a_bundle_without_a_log_is_refused() -> None:
    assert "run.log is empty" in refused(members(content(), OTHERS | {bundle.LOG: b"\n"}))
    absent = {name: data for name, data in OTHERS.items() if name != bundle.LOG}
    with pytest.raises(bundle.BundleError, match=r"run\.log is missing"):
        members(content(), absent)


def test_missing_shards_and_parts_of_the_suite_are_refused() -> None:
    whole = content()
    shard = synthetic.shards(whole, 2)[0]
    assert "shard 1 of 2 alone" in refused(members(shard))
    part = copy.deepcopy(whole)
    part["run"]["selection"]["differs_by"] = ["--tier=core"]
    assert "not the standard selection" in refused(members(part))
    unfinished = content(record("STREAM-004", "not_run"))
    assert "the run is no result: incomplete" in refused(members(unfinished))


@pytest.mark.parametrize("name", [bundle.DESCRIPTOR, bundle.EXPECTATIONS])
def test_the_files_of_the_run_belong_into_the_bundle(name: str) -> None:
    made = content()
    absent = {key: value for key, value in OTHERS.items() if key != name}
    assert f"{name} is missing" in refused(members(made, absent))
    other = OTHERS | {name: OTHERS[name] + b"\n"}
    assert f"{name} is not the" in refused(members(made, other))
    unused = content(**{name.removesuffix(".yaml"): None})
    assert f"{name} took no part in the run" in refused(members(unused))


def with_expectations(text: bytes, *records: dict[str, Any]) -> str:
    made = content(*records, expectations=attached("known.yaml", text))
    return refused(members(made, OTHERS | {bundle.EXPECTATIONS: text}), known(made))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"copy/copy_001:*", b"copy/copy_002:*", "no entry of the expectations excuses it"),
        (b"flaky:", b"unsupported:", "no entry of the expectations excuses it"),
        (b"the last", b"the first", "its reason is not that of its entry"),
        (b"2027-01-31", b"2026-01-31", "its entry expired on 2026-01-31"),
        (b"status: fail", b"status: good", "expectations.yaml:5: key 'status' must be one of"),
        (b"event/event_001:c0", b"event/nothing", "'event/nothing' matches no check"),
        (b"xfail:", b"xfale:", "'xfale' is not one of the lists"),
        (b"xfail:\n", b"xfail:\n}", "expectations.yaml"),
    ],
)
def test_an_excuse_without_its_entry_is_refused(old: bytes, new: bytes, words: str) -> None:
    assert words in with_expectations(EXPECTATIONS.replace(old, new))


def test_a_pass_that_the_expectations_deny_is_refused() -> None:
    assert "passes, although it is listed under xfail" in refused(
        members(content(record("COPY-001", "pass")))
    )


@pytest.mark.parametrize(
    ("outcome", "reason", "words"),
    [
        ("unsupported", needs("sparse"), "nothing that it needs is absent"),
        (
            "unsupported",
            {"kind": "declared_unsupported", "dtype": "float64"},
            "nothing that it needs is absent",
        ),
        ("blocked_upstream", "https://example.org/3; no", "PyTorch prevents it"),
        ("unsupported", "this torch has no such call", ""),
    ],
)
def test_an_excuse_needs_something_absent(outcome: str, reason: Any, words: str) -> None:
    made = content(record("STREAM-004", outcome, reason=reason))
    text = refused(members(made), known(made))
    assert words in text if words else text == ""


def test_a_check_that_needs_what_is_absent_cannot_have_passed() -> None:
    made = content()
    made["run"]["capabilities"]["events"] = {"value": False, "source": "probed"}
    assert "and should be unsupported: needs capability 'events'" in refused(
        members(made), known(made)
    )


def test_declared_capabilities_are_those_of_the_descriptor() -> None:
    made = content()
    made["run"]["capabilities"]["sparse"] = {"value": False, "source": "declared"}
    assert "declared capabilities are not those of descriptor.yaml" in refused(members(made))
    assert "device type 'mychip'" in refused(members(content(device_type="other")))


def test_the_checks_are_those_of_the_suite() -> None:
    made = content()
    suite = known(made)
    fewer = verification.Own(suite.checks[1:], suite.torch, suite.requirements, suite.digest)
    assert f"{suite.checks[0].id} is no check of the suite" in refused(members(made), fewer)
    assert f"{suite.checks[0].id} has no record" in refused(members(without_first(made)), suite)
    other = verification.Own(suite.checks, "2.15.0", suite.requirements, suite.digest)
    assert "verify with those" in refused(members(made), other)
    easier = copy.deepcopy(made)
    first = easier["checks"][0]
    assert first["level"] != "may"
    first["level"] = easier["requirements"][first["requirements"][0]]["level"] = "may"
    assert "requirements are not the suite's" in refused(members(easier), suite)


def without_first(made: dict[str, Any]) -> dict[str, Any]:
    """The report of a run that had one check less."""
    fewer = copy.deepcopy(made)
    gone = fewer["checks"].pop(0)
    fewer["totals"][gone["outcome"]] -= 1
    fewer["run"]["selection"] = synthetic.select(fewer["checks"])
    return fewer


def archive(change: Callable[[zipfile.ZipFile, Members], Any]) -> bytes:
    """A bundle that was not made by `submit`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        found = members(content())
        change(target, found)
        for name, data in found.items():
            target.writestr(entry(name), data)
    return buffer.getvalue()


def entry(name: str, mode: int = bundle.REGULAR) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr, made.compress_type = mode << 16, zipfile.ZIP_DEFLATED
    return made


LINK = stat.S_IFLNK | 0o777
BOMB = b"\0" * (bundle.LIMITS[bundle.DESCRIPTOR] + 1)
ARCHIVES: dict[str, tuple[Callable[[zipfile.ZipFile, Members], Any], str]] = {
    "path": (lambda z, m: z.writestr(entry("../../etc/passwd"), "x"), "does not belong"),
    "absolute": (lambda z, m: z.writestr(entry("/run.log"), "x"), "does not belong"),
    "folder": (lambda z, m: z.writestr(entry("run.log/"), ""), "does not belong"),
    "more": (lambda z, m: z.writestr(entry("setup.py"), "x"), "does not belong"),
    "link": (
        lambda z, m: z.writestr(entry(bundle.LOG, LINK), m.pop(bundle.LOG)),
        "not a regular file",
    ),
    "twice": (lambda z, m: z.writestr(entry(bundle.LOG), "x"), "is there twice"),
    "missing": (lambda z, m: m.pop(bundle.JUNIT), "report.xml is missing"),
    "many": (lambda z, m: m.update({f"a{i}": b"" for i in range(80)}), "more than 64"),
    "bomb": (lambda z, m: m.update({bundle.DESCRIPTOR: BOMB}), "is larger than 1 MiB"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_that_submit_would_not_make_is_refused(kind: str) -> None:
    change, words = ARCHIVES[kind]
    with pytest.raises(bundle.BundleError, match=words):
        bundle.unpack(archive(change))


def test_a_size_that_is_a_lie_does_not_get_more_memory() -> None:
    packed = archive(ARCHIVES["bomb"][0])
    size = len(BOMB).to_bytes(4, "little")
    assert packed.count(size) == 2
    with pytest.raises(bundle.BundleError):
        bundle.unpack(packed.replace(size, (9).to_bytes(4, "little")))


SUBJECTS = ("event", "stream", "copy")


@pytest.fixture(scope="module")
def chapters() -> list[Check]:
    """The real checks of a few chapters: importing all of them takes seconds."""
    every = discovery.chapter_files(None)
    files = [file for file in every if discovery.chapter_of(file) in SUBJECTS]
    return [check for file in files for check in discovery.import_checks(file)]


def test_the_excuses_of_a_real_run_are_the_ones_that_the_verifier_works_out(
    tmp_path: Path, chapters: list[Check]
) -> None:
    file = tmp_path / "cpu.json"
    patterns = ("--check=event/*", "--check=stream/*")
    options = ("--backend=cpu", f"--report={file}", *patterns)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "conformance", *options],
        cwd=harness.ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 65), done.stdout
    document = reader.load(file)
    described = (
        harness.ROOT / "conformance/src/torch_conformance/spec/backends/cpu.yaml"
    ).read_bytes()
    others = {bundle.DESCRIPTOR: described, bundle.LOG: b"done"}
    packed = bundle.unpack(bundle.pack(document, file.read_bytes(), others))
    checks = [check for check in chapters if check.surface != "copy"]
    torch = document.run.torch.version
    suite = verification.Own(checks, torch, synthetic.requirements(), source.digest())
    assert sum(r.outcome == "unsupported" for r in document.checks) > 100
    chosen = f"not the standard selection, but {', '.join(patterns)}"
    found = refused(packed, suite).splitlines()
    assert [line for line in found if "nothing executed" not in line] == [chosen]


def test_a_bundle_is_submitted_and_verified_against_the_list_of_checks(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    chapters: list[Check],
) -> None:
    monkeypatch.setattr(discovery, "all_checks", lambda: chapters)
    suite = verification.own()
    passing = [
        record(check.requirements[0])
        | {"id": check.id, "requirements": list(check.requirements)}
        | {key: first(check, key, order) for key, order in (("tier", TIERS), ("level", LEVELS))}
        for check in chapters
        if BREADTHS.index(check.breadth) <= BREADTHS.index(STANDARD)
    ]
    made = synthetic.content(passing, torch={"version": suite.torch, "git": None})
    report = synthetic.write(tmp_path / "mychip.json", made)
    (tmp_path / "run.log").write_text("done")
    arguments = [str(report), "--log", str(tmp_path / "run.log")]
    assert main(["submit", *arguments]) == 0, capsys.readouterr().out
    assert main(["verify", str(tmp_path / "mychip.zip")]) == 0
    assert f"{len(passing)} checks, the run is green, level: none" in capsys.readouterr().out
    monkeypatch.setattr(discovery, "all_checks", lambda: chapters[1:])
    assert main(["verify", str(tmp_path / "mychip.zip")]) == 1
    assert f"{chapters[0].id} is no check of the suite" in capsys.readouterr().out


def first(check: Check, key: str, order: tuple[str, ...]) -> str:
    """The tier or level of a check: the first of its requirements'."""
    values = (getattr(synthetic.requirements()[id], key) for id in check.requirements)
    return min(values, key=order.index)


def test_the_commands_say_why_they_refuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = str(synthetic.write(tmp_path / "mychip.json", synthetic.content()))
    (tmp_path / "run.log").write_text("done")
    arguments = ["submit", report, "--without-list", "--log", str(tmp_path / "run.log")]
    assert main([*arguments, "--expectations", report]) == 1
    assert "expectations.yaml took no part in the run" in capsys.readouterr().out
    assert not (tmp_path / "mychip.zip").exists()
    assert main(arguments) == 0
    assert main(["verify", str(tmp_path / "mychip.zip"), "--without-list"]) == 0
    assert "not compared with the suite's own list" in capsys.readouterr().out
    assert main(["verify", report]) == 1
    assert "is refused:" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "none.zip")]) == 4
    assert main([*arguments[:-1], str(tmp_path / "none.log")]) == 4
    assert "none.log: no such file" in capsys.readouterr().err
