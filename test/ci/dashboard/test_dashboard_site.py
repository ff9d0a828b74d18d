# SPDX-License-Identifier: BSD-3-Clause
"""A site is there whole, whatever happens while a new one is made."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import sys
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from dashboard_sample import report, store

from torch_backend_ci.dashboard import build, pages, site
from torch_backend_ci.dashboard.model import Check
from torch_backend_ci.dashboard.page import File, Page
from torch_backend_ci.dashboard.read import Model
from torch_backend_ci.dashboard.serve import HEADERS, HOST, server
from torch_backend_ci.dashboard.site import MARK, Site
from torch_backend_ci.errors import CiError

#: Audit events of what changes something on disk, besides opening a file to write.
CHANGES = ("os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir")
NIGHTS = ("2026-11-18", "2026-11-19")


def make(path: Path, content: str) -> None:
    """A site of some files, of which one never changes."""
    mine = Site(path)
    with mine.building():
        for name in ("index.html", "a/b.html", "a/c.html"):
            mine.put(File(name, f"{content} {name}".encode()))
        mine.put(File("same.txt", b"always"))


def contents(path: Path) -> dict[str, bytes]:
    """Of the files, but for the mark."""
    every = (file for file in path.rglob("*") if file.is_file() and file.name != MARK)
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in every}


@pytest.fixture
def few_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A site with little in it, so that it is made often."""

    def once(model: Model) -> Iterator[Page | File]:
        runs = [run.id for series in model.series.values() for run in series.runs]
        yield File("index.html", " ".join(runs).encode())

    def of_topic(topic: str, checks: Sequence[Check], model: Model) -> File:
        return File(f"check/{topic}.txt", " ".join(check.id for check in checks).encode())

    monkeypatch.setattr(pages, "makers", lambda: [once])
    monkeypatch.setattr(pages, "of_topics", lambda: [of_topic])
    monkeypatch.setattr(pages, "of_runs", list)


def grown(folder: Path, night: str) -> Path:
    """The store with a report of one more night."""
    return store(folder, {night: report(started=f"{night}T02:00:00+00:00")})


def killed(work: Callable[[], object], point: int) -> bool:
    """Run it in a process that is killed when it is about to change the disk for the `point`-th
    time, as are those that it starts; whether it came to that.
    """
    pid = os.fork()
    if pid == 0:
        _die_at(point)
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return status != 0


def _die_at(point: int) -> None:
    count = itertools.count(1)

    def hook(event: str, args: tuple[object, ...]) -> None:
        writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wxa")
        if (writes or event in CHANGES) and next(count) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def test_a_new_site_takes_the_place_of_the_old_one_and_shares_what_did_not_change(
    tmp_path: Path,
) -> None:
    make(tmp_path / "site", "old")
    before = (tmp_path / "site" / "same.txt").stat().st_ino
    make(tmp_path / "site", "new")
    assert contents(tmp_path / "site")["a/b.html"] == b"new a/b.html"
    assert (tmp_path / "site" / "same.txt").stat().st_ino == before
    assert not (tmp_path / ".site.dashboard" / "next").exists()


@pytest.mark.parametrize("can_exchange", [True, False])
def test_killed_at_any_point_of_publishing_the_site_is_the_old_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(site, "_exchanged", lambda one, other: False)
    seen = set()
    for point in itertools.count(1):
        path = tmp_path / str(point)
        make(path, "old")
        old = contents(path)
        if not killed(partial(make, path, "new"), point):
            break
        if can_exchange:
            seen.add(contents(path)["index.html"])
            assert contents(path) == old or contents(path)["a/c.html"] == b"new a/c.html"
        make(path, "next")
        assert contents(path)["a/c.html"] == b"next a/c.html"
    assert point > 15
    assert not can_exchange or seen == {b"old index.html", b"new index.html"}


@pytest.mark.usefixtures("few_pages")
def test_killed_at_any_point_of_a_build_the_site_is_whole_and_the_next_build_goes_through(
    tmp_path: Path,
) -> None:
    folder = grown(tmp_path / "store", NIGHTS[0])
    build.build(folder, tmp_path / "site", 1)
    old = contents(tmp_path / "site")
    grown(folder, NIGHTS[1])
    build.build(folder, tmp_path / "undisturbed", 1)
    new = contents(tmp_path / "undisturbed")
    assert old != new
    for point in itertools.count(1, 5):
        if not killed(lambda: build.build(folder, tmp_path / "site", 1), point):
            break
        assert contents(tmp_path / "site") in (old, new)
    assert point > 15
    build.build(folder, tmp_path / "site", 1)
    assert contents(tmp_path / "site") == new


def test_a_full_disk_leaves_the_site_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "site", "old")
    old = contents(tmp_path / "site")
    mine = Site(tmp_path / "site")

    def put(file: File) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Site, "put", lambda self, file: put(file))
    with pytest.raises(CiError, match=r"No space left.*it is as it was"):
        make(tmp_path / "site", "new")
    assert contents(tmp_path / "site") == old
    assert not mine.next.exists()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(CiError, match="is not a site"):
        make(tmp_path / "home", "new")
    assert (tmp_path / "home" / "letter.txt").read_text() == "dear"
    (tmp_path / "file").write_text("dear")
    with pytest.raises(CiError, match="is not a directory"):
        make(tmp_path / "file", "new")


def test_a_file_that_somebody_put_into_the_site_is_not_lost(tmp_path: Path) -> None:
    make(tmp_path / "site", "old")
    (tmp_path / "site" / "CNAME").write_text("example.org")
    with pytest.raises(CiError, match=r"CNAME was not made by the dashboard"):
        make(tmp_path / "site", "new")
    assert (tmp_path / "site" / "CNAME").read_text() == "example.org"


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    make(tmp_path / "site", "new")
    assert contents(tmp_path / "site")["index.html"] == b"new index.html"


@pytest.mark.usefixtures("few_pages")
def test_two_pages_at_one_address_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = [lambda model: [File("a.html", b"one")], lambda model: [File("a.html", b"other")]]
    monkeypatch.setattr(pages, "makers", lambda: twice)
    with pytest.raises(ValueError, match=r"two pages want to be a\.html"):
        build.build(grown(tmp_path / "store", NIGHTS[0]), tmp_path / "site", 1)
    assert not (tmp_path / "site").exists()


@pytest.mark.usefixtures("few_pages")
def test_builds_at_once_wait_for_each_other(tmp_path: Path) -> None:
    folder = grown(tmp_path / "store", NIGHTS[0])
    children = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                build.build(folder, tmp_path / "site", 1)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    build.build(folder, tmp_path / "alone", 1)
    assert contents(tmp_path / "site") == contents(tmp_path / "alone")


@pytest.mark.usefixtures("few_pages")
def test_a_process_that_is_killed_for_want_of_memory_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = grown(tmp_path / "store", NIGHTS[0])

    def greedy(model: Model) -> Iterator[File]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield File("index.html", b"")

    monkeypatch.setattr(pages, "makers", lambda: [greedy])
    with pytest.raises(CiError, match="was killed, probably for want of memory"):
        build.build(folder, tmp_path / "site", 2)
    assert not (tmp_path / "site").exists()


@pytest.mark.usefixtures("few_pages")
def test_ctrl_c_ends_a_build_and_its_processes_and_leaves_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = grown(tmp_path / "store", NIGHTS[0])
    build.build(folder, tmp_path / "site", 2)
    old = contents(tmp_path / "site")
    begun = tmp_path / "begun"

    def endless(model: Model) -> Iterator[File]:
        begun.write_text(str(os.getpid()))
        time.sleep(600)
        yield File("index.html", b"")

    monkeypatch.setattr(pages, "makers", lambda: [endless])
    pid = os.fork()
    if pid == 0:
        # Where the tests run in the background of a shell, it is ignored from the start.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            build.build(folder, tmp_path / "site", 2)
        except KeyboardInterrupt:
            os._exit(130)
        os._exit(1)
    while not (begun.exists() and begun.read_text()):
        time.sleep(0.01)
    os.kill(pid, signal.SIGINT)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)
    assert contents(tmp_path / "site") == old


def test_a_damaged_store_is_named_and_the_site_stays(tmp_path: Path) -> None:
    folder = grown(tmp_path / "store", NIGHTS[0])
    make(tmp_path / "site", "old")
    (results,) = folder.rglob("*.results.parquet")
    results.write_bytes(results.read_bytes()[:100])
    with pytest.raises(CiError, match=r"results\.parquet is damaged"):
        build.build(folder, tmp_path / "site", 1)
    assert contents(tmp_path / "site")["index.html"] == b"old index.html"


def test_a_site_is_served_with_strict_headers_and_nothing_besides_it(tmp_path: Path) -> None:
    make(tmp_path / "site", "old")
    (tmp_path / "secret.txt").write_text("secret")
    with server(tmp_path / "site", 0) as listening:
        Thread(target=listening.serve_forever, daemon=True).start()
        root = f"http://{HOST}:{listening.server_port}"
        with urllib.request.urlopen(f"{root}/") as answer:
            assert answer.read() == b"old index.html"
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        for path in ("/a/", "/../secret.txt", "/%2e%2e/secret.txt", "/missing"):
            with pytest.raises(urllib.error.HTTPError) as error:
                urllib.request.urlopen(root + path)
            assert error.value.code == 404
        make(tmp_path / "site", "new")
        with urllib.request.urlopen(f"{root}/") as answer:
            assert answer.read() == b"new index.html"
        listening.shutdown()


def test_a_folder_that_is_no_site_is_not_served(tmp_path: Path) -> None:
    with pytest.raises(CiError, match="is not a site"):
        server(tmp_path, 0)
