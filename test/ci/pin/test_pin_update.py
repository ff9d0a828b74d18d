# SPDX-License-Identifier: BSD-3-Clause
"""A pin moves to the newest good torch, never back, and never without somebody being told."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import small_torch
from pin_index import PinIndex, entries, files, pin, put, serving_pins
from wheel_server import Behaviour

from torch_backend_ci.cli import main
from torch_backend_ci.pin import file
from torch_backend_ci.pin.model import Pin, Source, Wheel
from torch_backend_ci.pin.show import resolved

# Until pip 24, finding packages imports what setuptools calls deprecated.
pytestmark = [
    pytest.mark.filterwarnings("ignore:pkg_resources:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Creating a LegacyVersion:DeprecationWarning"),
]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PinIndex]:
    with serving_pins(tmp_path / "index", monkeypatch) as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "checkout"


def update(root: Path, *words: str) -> int:
    return main(["pin", "update", *words, "--root", str(root)])


def contents(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(p.relative_to(root)): (p.stat().st_mtime_ns, p.read_bytes())
        for p in root.rglob("*")
        if p.is_file()
    }


Capture = pytest.CaptureFixture[str]


def test_a_pin_moves_to_the_newest_release(index: PinIndex, root: Path) -> None:
    put(root, pin(index.add("2.13.0")))
    index.add("2.14.0")
    newest = index.add("2.15.0")
    assert update(root) == 0
    assert file.read("newest", root) == pin(newest)


def test_versions_are_ordered_as_versions(index: PinIndex, root: Path) -> None:
    put(root, pin(index.add("2.9.1")))
    newest = index.add("2.10.0")
    assert update(root) == 0
    assert file.read("newest", root).torch == newest


def test_a_pin_that_needs_nothing_is_not_touched(index: PinIndex, root: Path) -> None:
    put(root, pin(index.add("2.13.0")), pin(index.add("2.13.0"), "oldest", Source.PEOPLE))
    before = contents(root)
    assert update(root) == 0
    assert update(root) == 0
    assert contents(root) == before


@pytest.mark.parametrize("later", ["2.14.0rc1", "2.14.0.dev20260101", "2.14.0a0"])
def test_a_release_is_not_followed_by_what_is_none(later: str, index: PinIndex, root: Path) -> None:
    put(root, pin(index.add("2.13.0")))
    index.add(later)
    assert update(root) == 0
    assert resolved(file.read("newest", root)).version == "2.13.0"


def test_builds_with_a_local_version_are_another_index_s_business(
    index: PinIndex, root: Path
) -> None:
    put(root, pin(index.add("2.13.0")))
    index.add("2.14.0+cpu")
    index.add("2.13.0+cpu")
    assert update(root) == 0
    assert file.read("newest", root) == pin(index.add("2.13.0"))


def test_a_nightly_pin_gets_its_first_version_and_then_the_next(
    index: PinIndex, root: Path
) -> None:
    put(root, pin(None, "nightly", Source.NIGHTLY))
    for version in ("2.16.0.dev20261119+cpu", "2.16.0.dev20261120+cpu"):
        found = index.add(version)
        index.add("2.15.0+cpu")  # no nightly
        assert update(root, "nightly") == 0
        assert file.read("nightly", root) == pin(found, "nightly", Source.NIGHTLY)


def test_a_version_that_is_still_being_uploaded_waits(
    index: PinIndex, root: Path, capsys: Capture
) -> None:
    put(root, pin(index.add("2.13.0")))
    index.add("2.14.0", ["3.11", "3.13"])
    assert update(root) == 0
    assert resolved(file.read("newest", root)).version == "2.13.0"
    assert "torch 2.14.0 has no wheel for Python 3.12" in capsys.readouterr().err


def test_a_yanked_version_is_passed_over_and_the_reason_is_told(
    index: PinIndex, root: Path, capsys: Capture
) -> None:
    put(root, pin(index.add("2.13.0")))
    middle = index.add("2.14.0")
    index.add("2.15.0")
    index.yank("2.15.0", "wrong results on <b>AVX-512</b>\n::error::x\x1b[2J")
    assert update(root) == 0
    assert file.read("newest", root).torch == middle
    said = capsys.readouterr().err
    assert "torch 2.15.0 was yanked: wrong results on <b>AVX-512</b>" in said
    assert "\n::" not in said
    assert "\x1b" not in said


def test_from_a_yanked_version_a_pin_goes_back_only_with_a_reason(
    index: PinIndex, root: Path, capsys: Capture
) -> None:
    older = index.add("2.13.0")
    put(root, pin(index.add("2.14.0")))
    index.yank("2.14.0", "it hangs")
    before = contents(root)
    assert update(root) == 1
    assert contents(root) == before
    assert "torch 2.14.0 was yanked: it hangs; nothing is newer, to go back to 2.13.0 give a" in (
        capsys.readouterr().err
    )
    assert update(root, "newest", "--reason", "2.14.0 hangs.") == 0
    assert file.read("newest", root) == replace(pin(older), reason="2.14.0 hangs.")


def test_from_a_yanked_version_a_pin_moves_on_by_itself(index: PinIndex, root: Path) -> None:
    put(root, pin(index.add("2.14.0")))
    index.yank("2.14.0", "")
    mended = index.add("2.14.0.post1")
    assert update(root) == 0
    assert file.read("newest", root).torch == mended


def test_a_version_that_is_gone_is_told_and_kept(
    index: PinIndex, root: Path, capsys: Capture
) -> None:
    index.add("2.13.0")
    put(root, pin(index.add("2.14.0")))
    index.remove("2.14.0")
    before = contents(root)
    assert update(root) == 1
    assert contents(root) == before
    assert "torch 2.14.0 is no longer on the index pypi" in capsys.readouterr().err


def test_a_pin_does_not_go_back_because_somebody_would_like_it(
    index: PinIndex, root: Path, capsys: Capture
) -> None:
    index.add("2.13.0")
    put(root, pin(index.add("2.14.0")))
    before = contents(root)
    assert update(root, "newest", "--to", "2.13.0", "--reason", "I like it more") == 2
    assert contents(root) == before
    assert "as good as ever" in capsys.readouterr().err


def test_people_s_pins_move_when_they_say_so_and_the_requirements_with_them(
    index: PinIndex, root: Path
) -> None:
    put(root, pin(index.add("2.13.0"), "development", Source.PEOPLE))
    later = index.add("2.14.0rc1")
    assert update(root) == 0
    assert resolved(file.read("development", root)).version == "2.13.0"
    assert update(root, "development", "--to", "2.14.0rc1") == 0
    assert file.read("development", root).torch == later
    dev = (root / "requirements/torch.txt").read_text()
    assert dev == "# ours\ntorch==2.14.0rc1\nnumpy==2.4.6\n"


def test_one_who_was_killed_between_the_two_files_is_caught_up_with(
    index: PinIndex, root: Path
) -> None:
    put(root, pin(index.add("2.14.0"), "development", Source.PEOPLE))
    assert "torch==2.13.0" in (root / "requirements/torch.txt").read_text()
    assert update(root) == 0
    assert "torch==2.14.0\n" in (root / "requirements/torch.txt").read_text()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["newest", "--to", "2.20.0"], "has no torch 2.20.0"),
        (["newest", "--to", "2.14.0"], "was yanked: broken"),
        (["newest", "--to", "2.14.1"], "no wheel for Python 3.12, 3.13"),
        (["newest", "--to", "$(id)"], "is not a version"),
        (["newest", "--to", "--pre"], None),
        (["newest", "--to", "2.14.0 --pre"], "is not a version"),
        (["newest", "--reason", "two\nlines"], "one line of printable text"),
        (["newest", "--reason", ""], "one line of printable text"),
        (["--to", "2.14.0"], "for one pin"),
        (["../../etc"], "cannot name a pin"),
        (["newer"], "there is no pin 'newer'"),
    ],
)
def test_a_wish_that_cannot_be_granted_changes_nothing(
    words: list[str], reason: str | None, index: PinIndex, root: Path, capsys: Capture
) -> None:
    put(root, pin(index.add("2.13.0")), pin(index.add("2.13.0"), "oldest", Source.PEOPLE))
    index.add("2.14.0")
    index.add("2.14.1", ["3.11"])
    index.yank("2.14.0", "broken")
    before = contents(root)
    if reason is None:
        with pytest.raises(SystemExit, match="2"):
            update(root, *words)
    else:
        assert update(root, *words) == 2
        assert reason in capsys.readouterr().err
    assert contents(root) == before


def test_a_dry_run_prints_a_diff_that_git_can_apply(
    index: PinIndex, root: Path, capsys: Capture
) -> None:
    put(root, pin(index.add("2.13.0"), "development", Source.PEOPLE))
    index.add("2.14.0")
    before = contents(root)
    assert update(root, "development", "--to", "2.14.0", "--dry-run") == 0
    assert contents(root) == before
    patch = capsys.readouterr().out
    assert "-torch==2.13.0\n+torch==2.14.0\n" in patch
    assert "-version: 2.13.0\n+version: 2.14.0\n" in patch
    subprocess.run(["git", "apply", "-"], input=patch, text=True, cwd=root, check=True)
    after = contents(root)
    assert update(root) == 0
    assert contents(root) == after


# The index misbehaves


def exchanged(index: PinIndex, name: str) -> None:
    index.behaviour.hashes[name] = "f" * 64


def test_a_wheel_that_was_exchanged_is_never_taken(
    index: PinIndex, root: Path, capsys: Capture
) -> None:
    put(root, pin(index.add("2.13.0")))
    before = contents(root)
    exchanged(index, files("2.13.0")[1])
    for words in ([], ["newest", "--to", "2.13.0"]):
        assert update(root, *words) == 2
        assert "is not what was pinned" in capsys.readouterr().err
    del index.behaviour.hashes[files("2.13.0")[1]]
    assert update(root) == 2
    assert "the index says no hash" in capsys.readouterr().err
    assert contents(root) == before


def test_a_wheel_without_a_hash_is_pinned_as_such_and_gets_its_hash_later(
    index: PinIndex, root: Path
) -> None:
    put(root, pin(None))
    torch = index.add("2.13.0")
    hashes = dict(index.behaviour.hashes)
    index.behaviour.hashes.clear()
    assert update(root) == 0
    assert "unhashed: true" in (root / file.place("newest")).read_text()
    index.behaviour.hashes |= hashes
    assert update(root) == 0
    assert file.read("newest", root) == pin(torch)


@pytest.mark.parametrize("digest", ["abc", "F" * 63 + "0", "0" * 65])
def test_a_hash_that_is_none_is_refused(
    digest: str, index: PinIndex, root: Path, capsys: Capture
) -> None:
    put(root, pin(None))
    index.add("2.13.0")
    index.behaviour.hashes[files("2.13.0")[0]] = digest.lower()[: 63 if "F" in digest else None]
    assert update(root) == 2
    assert "as its SHA-256" in capsys.readouterr().err


def test_two_indexes_that_contradict_each_other_are_refused(
    index: PinIndex, root: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(root, pin(None))
    index.add("2.13.0")
    other = tmp_path / "other"
    other.mkdir()
    links = "".join(f'<a href="{n}#sha256={"e" * 64}">{n}</a>' for n in files("2.13.0"))
    (other / "links.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
    monkeypatch.setenv("PIP_FIND_LINKS", (other / "links.html").as_uri())
    assert update(root) == 2
    assert "has several hashes" in capsys.readouterr().err


OUTAGES = {
    "an error": (500, b""),
    "not there": (404, b""),
    "garbage": (200, bytes(range(256)) * 8),
    "another page": (200, b"<!DOCTYPE html><html><body><a href='/login'>log in</a></body></html>"),
    "nothing": (200, b""),
    "a version that is none": (200, b"<!DOCTYPE html><a href='torch-9;rm-py3-none-any.whl'>x</a>"),
    "a version without end": (
        200,
        b"<!DOCTYPE html><a href='torch-%s-py3-none-any.whl'>x</a>" % (b"9" * 5000),
    ),
}


@pytest.mark.parametrize("verb", ["update", "check"])
@pytest.mark.parametrize("listing", OUTAGES.values(), ids=OUTAGES)
def test_an_index_that_is_down_says_nothing_about_a_pin(
    listing: tuple[int, bytes], verb: str, index: PinIndex, root: Path, capsys: Capture
) -> None:
    put(root, pin(index.add("2.13.0")))
    before = contents(root)
    index.behaviour.listing = listing
    words = ["--no-upstream"] if verb == "check" else []
    assert main(["pin", verb, *words, "--root", str(root)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.search("the index pypi offers no torch at all|that pip cannot read", captured.err)
    assert contents(root) == before


def test_one_of_two_indexes_that_is_down_stops_the_pin_too(
    index: PinIndex, root: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, pin(index.add("2.13.0")))
    index.add("2.14.0")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://me:s3cret@127.0.0.1:1/simple/")
    assert update(root) == 2
    said = capsys.readouterr().err
    assert "127.0.0.1 did not answer" in said
    assert "s3cret" not in said


def test_a_pin_whose_index_is_down_does_not_hinder_the_others(
    index: PinIndex, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, pin(None, "a-nightly", Source.NIGHTLY), pin(index.add("2.13.0")))
    newest = index.add("2.14.0")
    monkeypatch.setenv("PIN_INDEX_NIGHTLY_CPU", "http://127.0.0.1:1/simple/")
    assert update(root) == 2
    assert file.read("newest", root).torch == newest


def _bad_wheel(behaviour: Behaviour, version_py: str | None) -> None:
    entries = small_torch.files("2.14.0")
    if version_py is None:
        del entries["torch/version.py"]
    else:
        entries["torch/version.py"] = version_py
    for name in files("2.14.0"):
        behaviour.hashes[name] = small_torch.wheel(behaviour.folder / name, entries)


BAD_WHEELS = {
    "another version inside": (small_torch.version_py("2.13.0"), "calls itself '2.13.0'"),
    "no commit": ("__version__ = '2.14.0'\n", "does not say the commit"),
    "a commit that is none": ("__version__ = '2.14.0'\ngit_version = 'HEAD'\n", "does not say"),
    "a commit that is code": ("__version__ = '2.14.0'\ngit_version = input()\n", "does not say"),
    "no Python": ("<html>", "cannot read"),
    "nesting without end": ("(" * 100_000, "cannot read"),
    "no version at all": (None, "is not a wheel of torch"),
    "more than it can be": ("#" * (1 << 21), "larger than it can be"),
}


@pytest.mark.parametrize(("version_py", "reason"), BAD_WHEELS.values(), ids=BAD_WHEELS)
def test_a_wheel_that_does_not_say_what_it_is_is_not_pinned(
    version_py: str | None, reason: str, index: PinIndex, root: Path, capsys: Capture
) -> None:
    put(root, pin(index.add("2.13.0")))
    before = contents(root)
    _bad_wheel(index.behaviour, version_py)
    assert update(root) == 2
    assert reason in capsys.readouterr().err
    assert contents(root) == before


@pytest.mark.parametrize("text", ["numpy==1\n", "torch==1\ntorch==2\n", "torch>=2.13\n"])
def test_requirements_that_do_not_say_the_version_once_are_refused(
    text: str, index: PinIndex, root: Path, capsys: Capture
) -> None:
    put(root, pin(index.add("2.13.0"), "development", Source.PEOPLE))
    (root / "requirements/torch.txt").write_text(text)
    assert update(root) == 2
    assert "torch==VERSION" in capsys.readouterr().err


# What pip makes of it


def test_pip_takes_the_pinned_wheel_and_no_other(
    index: PinIndex, root: Path, capsys: Capture, tmp_path: Path
) -> None:
    put(root, pin(index.add("2.13.0")))
    index.add("2.14.0")
    assert main(["pin", "show", "newest", "--format", "requirements", "--root", str(root)]) == 0
    requirements = tmp_path / "torch.txt"
    requirements.write_text(capsys.readouterr().out)
    assert download(requirements, tmp_path / "taken") == 0
    assert [p.name for p in (tmp_path / "taken").iterdir()] == files("2.13.0", ["3.11"])
    wheel = index.behaviour.folder / files("2.13.0")[0]
    index.behaviour.hashes[wheel.name] = small_torch.wheel(wheel, entries("2.13.0"), ballast=1)
    assert download(requirements, tmp_path / "refused") != 0


def download(requirements: Path, into: Path) -> int:
    into.mkdir()
    fixed = ["--no-deps", "--only-binary=:all:", "--python-version", "3.11"]
    fixed += ["--platform", "manylinux_2_28_x86_64", "--disable-pip-version-check"]
    where = ["--dest", str(into), "--requirement", str(requirements)]
    command = [sys.executable, "-m", "pip", "download", *fixed, *where]
    return subprocess.run(command, check=False, capture_output=True).returncode


# What `pin check` sees


def check(root: Path, *words: str) -> int:
    return main(["pin", "check", *words, "--no-upstream", "--root", str(root)])


def test_a_pin_that_is_right_is_found_right(index: PinIndex, root: Path, capsys: Capture) -> None:
    put(root, pin(index.add("2.13.0"), "development", Source.PEOPLE), pin(None, "later"))
    assert check(root) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "development: torch 2.13.0 is as pinned" in captured.err
    assert "later: no version to check: nobody looked" in captured.err


def _wheels(found: Pin, *wheels: Wheel) -> Pin:
    assert found.torch
    return replace(found, torch=replace(found.torch, wheels=wheels))


@pytest.mark.parametrize("kind", ["removed", "yanked", "wheel_removed", "no_hash", "unhashed",
                                  "hash", "commit", "requirements"])  # fmt: skip
def test_each_way_to_be_wrong_is_told(
    kind: str, index: PinIndex, root: Path, capsys: Capture
) -> None:
    index.add("2.12.0")
    good = pin(index.add("2.13.0"), "development", Source.PEOPLE)
    assert good.torch
    first = files("2.13.0")[0]
    put(root, good)
    match kind:
        case "removed":
            index.remove("2.13.0")
        case "yanked":
            index.yank("2.13.0", "it hangs")
        case "wheel_removed":
            (index.behaviour.folder / first).unlink()
        case "no_hash":
            del index.behaviour.hashes[first]
        case "unhashed":
            put(root, _wheels(good, Wheel(first, None), *good.torch.wheels[1:]))
        case "hash":
            exchanged(index, first)
        case "commit":
            put(root, replace(good, torch=replace(good.torch, git_version="d" * 40)))
        case "requirements":
            (root / "requirements/torch.txt").write_text("torch==2.12.0\n")
    assert check(root) == 1
    assert capsys.readouterr().out.startswith(f"development: {kind}: ")
