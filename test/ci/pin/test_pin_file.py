# SPDX-License-Identifier: BSD-3-Clause
"""A pin is read as if an enemy had written it, and written in one form only."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from schemas_of import schema, valid

from torch_backend_ci import document
from torch_backend_ci.checkout import ROOT
from torch_backend_ci.cli import main, parser
from torch_backend_ci.errors import CiError
from torch_backend_ci.pin import changes, check, file
from torch_backend_ci.pin.cli import SUBVERBS
from torch_backend_ci.pin.model import INDEXES, Pin, Source, Torch, Wheel, check_wheel, version

WHEEL = "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl"
TORCH = Torch("2.13.0", "c" * 40, (Wheel(WHEEL, "a" * 64),))
PIN = Pin("newest", TORCH, None, "pypi", Source.RELEASE, "The newest release.")


def fields(**changes: object) -> dict[str, object]:
    written = document.plain(file.as_file(PIN))
    return {k: v for k, v in (written | changes).items() if v is not None}


def parse(text: str | bytes) -> Pin:
    data = text if isinstance(text, bytes) else text.encode()
    return file.parse("newest", data, "ci/pins/newest.yaml")


def put(root: Path, pin: Pin) -> None:
    path = root / file.place(pin.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.render(pin))


@pytest.mark.parametrize("name", file.names())
def test_each_pin_of_the_repository_is_as_the_writer_writes_it(name: str) -> None:
    pin = file.read(name)
    assert (ROOT / file.place(name)).read_bytes() == file.render(pin)
    assert pin.torch is not None or pin.unresolved


def test_the_requirements_ask_for_the_torch_of_the_development_pin() -> None:
    assert check.of_mirror(file.read("development"), changes.reader(ROOT)) == []


def test_a_pin_comes_back_as_it_was_written() -> None:
    unresolved = replace(PIN, torch=None, unresolved="nobody has looked: é")
    unhashed = replace(PIN, torch=replace(TORCH, wheels=(Wheel(WHEEL, None),)))
    for pin in (PIN, unresolved, unhashed, replace(PIN, reason="no: 'quotes' # \"here\"")):
        assert parse(file.render(pin)) == pin


HOSTILE_TEXT = {
    "a tag that runs code": b"!!python/object/apply:os.system ['touch pwned']",
    "a tag inside": b"name: !!python/name:os.system newest",
    "an own tag": b"name: !newest newest",
    "a tag that does not fit": b"name: !!bool maybe",
    "a date that is none by its tag": b"name: !!timestamp newest",
    "a small file that is huge": b"a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]\n",
    "a merge key": b"x: &x {name: newest}\n<<: *x\n",
    "two documents": b"name: newest\n---\nname: other\n",
    "nesting without end": b"[" * 60_000,
    "more than a pin holds": b"# " + b"x" * file.SIZE_LIMIT,
    "no UTF-8": b"name: \xff\xfe\xfd",
    "control characters": b"name: new\x07est",
    "a list": b"- name: newest",
    "nothing": b"",
    "a number as key": b"1: newest",
    "a list as key": b"[a]: newest",
    "a date that is none": b"name: 2026-99-99",
}


@pytest.mark.parametrize("text", HOSTILE_TEXT.values(), ids=HOSTILE_TEXT)
def test_a_file_that_is_no_plain_yaml_is_refused(text: bytes) -> None:
    with pytest.raises(CiError, match=r"ci/pins/newest\.yaml:"):
        parse(text)


def test_a_key_that_is_there_twice_is_refused() -> None:
    with pytest.raises(CiError, match="twice"):
        parse(file.render(PIN) + b"index: nightly-cpu\n")


FRAGMENTS = (
    *(f"!!{tag} ".encode() for tag in ("bool", "int", "float", "null", "set", "omap", "binary")),
    *(b"!!python/name:os.system ", b"&a ", b"*a", b"? ", b"<<: ", b"{", b"[", b"|\n", b"...\n"),
    *(b"\x00", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xae", b"%YAML 1.1\n---\n", b"1e999", b"0x"),
    *(b"2026-13-45", b"9" * 5000, b"=", b"~", b"\t", b"\r", b"'", b'"', b"-", b": "),
)
FUZZ_CASES = int(os.environ.get("PUONE_FUZZ_CASES", "60"))  # `make fuzz` takes more


@pytest.mark.fuzz
def test_a_damaged_pin_is_refused_or_a_pin_like_any_other() -> None:
    dice = random.Random(7)
    whole = file.render(PIN)
    for _ in range(5 * FUZZ_CASES):
        data = bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(data))
            data[at : at + dice.choice((0, 0, 1, 20))] = dice.choice((b"", *FRAGMENTS))
        try:
            found = parse(bytes(data))
        except CiError:
            continue
        assert parse(file.render(found)) == found


HOSTILE_FIELDS = {
    "another name than the file's": {"name": "oldest"},
    "shell in the version": {"version": "2.13.0; rm -rf ~"},
    "substitution in the version": {"version": "2.13.0+$(id)"},
    "an option as version": {"version": "--index-url=http://evil"},
    "a second line in the version": {"version": "2.13.0\n--index-url http://evil"},
    "a blank before the version": {"version": " 2.13.0"},
    "a version not in its one form": {"version": "v2.13.0"},
    "an epoch": {"version": "1!2.13.0"},
    "a version without end": {"version": "9" * 5000},
    "a wildcard": {"version": "2.13.*"},
    "a version that is a number": {"version": 2.13},
    "a commit in capitals": {"git_version": "C" * 40},
    "a short commit": {"git_version": "c" * 39},
    "a commit with a line behind it": {"git_version": "c" * 40 + "\n"},
    "a commit that is a number": {"git_version": 10**39},
    "no wheel": {"wheels": []},
    "a wheel of another version": {
        "wheels": [{"file": WHEEL.replace("13", "12"), "unhashed": True}]
    },
    "a wheel of another project": {
        "wheels": [{"file": WHEEL.replace("torch", "torhc"), "unhashed": True}]
    },
    "a wheel in another folder": {"wheels": [{"file": f"../{WHEEL}", "unhashed": True}]},
    "an archive of sources": {"wheels": [{"file": "torch-2.13.0.tar.gz", "unhashed": True}]},
    "a hash that is short": {"wheels": [{"file": WHEEL, "sha256": "a" * 63}]},
    "a hash that is empty": {"wheels": [{"file": WHEEL, "sha256": ""}]},
    "a hash that is nothing": {"wheels": [{"file": WHEEL, "sha256": None}]},
    "a hash with an option behind it": {"wheels": [{"file": WHEEL, "sha256": "a" * 64 + " --pre"}]},
    "hashed and unhashed": {"wheels": [{"file": WHEEL, "sha256": "a" * 64, "unhashed": True}]},
    "hashed in no way": {"wheels": [{"file": WHEEL}]},
    "a wheel that is there twice": {"wheels": [{"file": WHEEL, "unhashed": True}] * 2},
    "an index of its own": {"index": "https://evil.example/simple"},
    "a source there is not": {"source": "evil"},
    "an escape sequence in the reason": {"reason": "\x1b[2Jnothing to see"},
    "a reason of two lines": {"reason": "fine\n::add-mask::x"},
    "a reason that turns the direction of writing": {"reason": "ok \u202e evil"},
    "a reason without end": {"reason": "x" * 1001},
    "no reason": {"reason": ""},
    "a field there is not": {"url": "https://evil.example"},
    "a version and none": {"unresolved": "both"},
}


@pytest.mark.parametrize("changes", HOSTILE_FIELDS.values(), ids=HOSTILE_FIELDS)
def test_a_field_that_is_not_right_is_refused(changes: dict[str, object]) -> None:
    text = yaml.safe_dump(fields(**changes))
    with pytest.raises(CiError, match=r"ci/pins/newest\.yaml:") as caught:
        parse(text)
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


ODD_NAMES = ["../newest", "/etc/passwd", ".hidden", "a/b", "-x", "x" * 41, "Newest", "a\n", "é"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_leads_nowhere_else(name: str, tmp_path: Path) -> None:
    put(tmp_path, PIN)
    (tmp_path / "ci/newest.yaml").write_bytes(file.render(PIN))
    with pytest.raises(CiError, match="cannot name a pin"):
        file.read(name, tmp_path)


def test_a_file_with_an_odd_name_is_not_passed_over(tmp_path: Path) -> None:
    put(tmp_path, PIN)
    (tmp_path / "ci/pins/$(id).yaml").write_bytes(file.render(PIN))
    with pytest.raises(CiError, match="cannot name a pin"):
        file.read_all(root=tmp_path)


def test_an_unknown_pin_names_those_that_are_there() -> None:
    with pytest.raises(CiError, match=r"no pin 'newer'.*development, newest, nightly, oldest"):
        file.read("newer")


@pytest.mark.parametrize("text", ["2.13.0", "2.14.0rc1", "2.16.0.dev20261120+cpu", "2.13.0.post1"])
def test_versions_of_torch_are_taken_as_they_are_written(text: str) -> None:
    assert str(version(text)) == text
    assert check_wheel(f"torch-{text}-cp311-cp311-linux_x86_64.whl", version(text))


def test_the_schema_knows_the_indexes_and_the_sources() -> None:
    described = schema("pin")
    assert all(index in described["properties"]["index"]["pattern"] for index in INDEXES)
    assert described["$defs"]["Source"]["enum"] == sorted(source.value for source in Source)


def test_pins_are_shown_as_the_schema_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pin", "show", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    valid(shown, "pins")
    assert [pin["name"] for pin in shown["pins"]] == file.names()


def test_pins_are_shown_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pin", "show", "newest", "nightly"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("newest: torch 2.15.0\n  commit  d0f2af8b66b20da4")
    assert "\nnightly: no version: " in out or "\nnightly: torch 2." in out


def test_requirements_are_one_line_with_a_hash_for_each_wheel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, PIN)
    options = ["--format", "requirements", "--root", str(tmp_path)]
    assert main(["pin", "show", "newest", *options]) == 0
    assert capsys.readouterr().out == f"torch==2.13.0 --hash=sha256:{'a' * 64}\n"


def test_requirements_name_the_index_that_is_not_pips_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = "torch-2.16.0.dev20261120+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
    nightly = Torch("2.16.0.dev20261120+cpu", "c" * 40, (Wheel(wheel, None),))
    pin = replace(PIN, name="nightly", torch=nightly, index="nightly-cpu")
    put(tmp_path, pin)
    assert main(["pin", "show", "--format", "requirements", "--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (
        "--index-url https://download.pytorch.org/whl/nightly/cpu\ntorch==2.16.0.dev20261120+cpu"
        "  # not hashed: the index publishes no hash of some of its wheels\n"
    )


def test_the_build_for_cpus_has_the_version_of_the_pin_and_an_index_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, PIN)
    options = ["--format", "requirements", "--build", "cpu", "--root", str(tmp_path)]
    assert main(["pin", "show", "newest", *options]) == 0
    assert capsys.readouterr().out == (
        "--index-url https://download.pytorch.org/whl/cpu\ntorch==2.13.0+cpu\n"
    )


def test_a_pin_that_is_a_build_for_cpus_is_shown_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
    cpu = Torch("2.13.0+cpu", "c" * 40, (Wheel(wheel, "a" * 64),))
    put(tmp_path, replace(PIN, torch=cpu, index="pytorch-cpu"))
    options = ["--format", "requirements", "--build", "cpu", "--root", str(tmp_path)]
    assert main(["pin", "show", "newest", *options]) == 0
    assert f"torch==2.13.0+cpu --hash=sha256:{'a' * 64}" in capsys.readouterr().out


def test_a_build_is_of_requirements_and_of_a_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pin", "show", "newest", "--build", "cpu"]) == 2
    wheel = "torch-2.16.0.dev20261120-cp311-cp311-manylinux_2_28_x86_64.whl"
    nightly = Torch("2.16.0.dev20261120", "c" * 40, (Wheel(wheel, "a" * 64),))
    put(tmp_path, replace(PIN, torch=nightly))
    options = ["--format", "requirements", "--build", "cpu", "--root", str(tmp_path)]
    assert main(["pin", "show", "newest", *options]) == 2
    assert "no index of builds 'cpu' of torch 2.16.0.dev20261120" in capsys.readouterr().err


def test_there_are_no_requirements_without_a_version_nor_of_two_pins(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    unresolved = replace(PIN, torch=None, unresolved="nobody looked")
    put(tmp_path, unresolved)
    options = ["--format", "requirements"]
    assert main(["pin", "show", *options, "--root", str(tmp_path)]) == 2
    assert "pin newest has no version: nobody looked" in capsys.readouterr().err
    assert main(["pin", "show", "newest", "oldest", *options]) == 2
    assert "of one pin" in capsys.readouterr().err


def test_the_matrix_has_a_job_for_each_pin_driver_and_shard(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    put(tmp_path, PIN)
    later = replace(PIN, name="later", torch=None, unresolved="nobody looked")
    put(tmp_path, later)
    words = ["--driver", "sim", "--driver", "cuda", "--shards", "2", "--root", str(tmp_path)]
    assert main(["pin", "matrix", *words]) == 0
    captured = capsys.readouterr()
    made = json.loads(captured.out)
    valid(made, "matrix")
    assert captured.out.count("\n") == 1
    assert [(job["lane"], job["torch"], job["shard"]) for job in made["include"]] == [
        (lane, "2.13.0", n) for lane in ("newest-sim", "newest-cuda") for n in (1, 2)
    ]
    assert "pin later has no job: nobody looked" in captured.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--shards", "0"], "at least 1"),
        (["--shards", "1000"], "GitHub takes 256"),
        (["--driver", "a b"], "cannot name"),
        (["../pins/newest"], "cannot name a pin"),
    ],
)
def test_a_matrix_that_cannot_be_is_refused(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pin", "matrix", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert reason in captured.err


def test_pins_without_a_version_make_no_matrix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unresolved = replace(PIN, torch=None, unresolved="nobody looked")
    put(tmp_path, unresolved)
    assert main(["pin", "matrix", "--root", str(tmp_path)]) == 2
    assert "nothing to run" in capsys.readouterr().err


def test_a_folder_without_pins_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pin", "show", "--root", str(tmp_path)]) == 2
    assert "there is no pin" in capsys.readouterr().err


PAGE = (ROOT / "docs/ci/pins.md").read_text()


def test_the_pin_in_the_documents_is_one() -> None:
    found = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found
    pin = parse(found[1])
    assert found[1] in file.render(pin).decode()


@pytest.mark.parametrize("line", re.findall(r"^torch-backend-ci (pin .*)$", PAGE, re.MULTILINE))
def test_each_command_in_the_documents_can_be_given(line: str) -> None:
    words = shlex.split(line, comments=True)
    assert parser(["pin"]).parse_args(words).run


def test_the_documents_show_every_verb() -> None:
    assert set(re.findall(r"^torch-backend-ci pin ([a-z-]+)", PAGE, re.MULTILINE)) == set(SUBVERBS)
