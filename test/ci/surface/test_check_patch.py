# SPDX-License-Identifier: BSD-3-Clause
"""A patch is applied as git applies it; a hostile or mangled one is refused with its reason."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.check.apply import Conflict, applied
from torch_backend_ci.surface.check.patch import BYTES_LIMIT, FilePatch, parse

HEADER = "c10/core/Allocator.h"
OLD = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def git(folder: Path, *words: str) -> bytes:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
    return subprocess.check_output(["git", *who, "-C", str(folder), *words])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "c10/core").mkdir(parents=True)
    git(folder.parent, "init", "-q", str(folder))
    (folder / HEADER).write_bytes(OLD)
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x", "--allow-empty")


def only(data: bytes) -> FilePatch:
    (file,) = parse(data)
    return file


def patch_of(body: str, path: str = HEADER) -> bytes:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n{body}".encode()


CHANGE = patch_of("@@ -2,3 +2,3 @@\n two\n-three\n+3\n four\n")


# --- what git makes, is read back -------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD, OLD.replace(b"four", b"4")),
        (OLD, b"zero\n" + OLD + b"eight\n"),
        (OLD, b""),
        (b"", OLD),
        (OLD, OLD[:-1]),
        (OLD[:-1], OLD),
        (OLD[:-1], OLD[:-1] + b"!"),
        (OLD.replace(b"\n", b"\r\n"), OLD.replace(b"\n", b"\r\n").replace(b"two", b"2")),
        (OLD, OLD.replace(b"\n", b"\r\n")),
        (b"a\rb\nc\n", b"a\rB\nc\n"),
        (b"caf\xe9\n", b"caf\xe8\n"),
        (b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n", b"--- a/y\n+++ b/y\n"),
        (b"\\ No newline\n", b"\\ No newline at end of file"),
        (b"form\x0cfeed\x0b\n1\n", b"form\x0cfeed\x0b\n2\n"),
    ],
)
def test_a_change_of_contents_is_what_git_made_it_from(
    old: bytes, new: bytes, repository: Path
) -> None:
    (repository / HEADER).write_bytes(old)
    commit(repository)
    (repository / HEADER).write_bytes(new)
    diff = git(repository, "diff", "--text")
    assert applied(old, only(diff)) == new


@pytest.mark.parametrize("seed", range(40))
def test_random_edits_land_where_git_puts_them(seed: int, repository: Path) -> None:
    """Also on a file that has moved on meanwhile: the same result, or both refuse."""
    choice = random.Random(seed)
    words = [f"line {choice.randrange(40)}\n".encode() for _ in range(120)]
    mine, theirs = list(words), list(words)
    for lines, count in ((mine, 4), (theirs, 2)):
        for _ in range(count):
            at = choice.randrange(len(lines))
            lines[at : at + choice.randrange(3)] = [f"new {choice.random()}\n".encode()]
    path = repository / HEADER
    path.write_bytes(b"".join(words))
    commit(repository)
    path.write_bytes(b"".join(mine))
    diff = git(repository, "diff")
    path.write_bytes(b"".join(theirs))
    done = subprocess.run(
        ["git", "-C", str(repository), "apply", "-"], input=diff, capture_output=True, check=False
    )
    try:
        ours = applied(b"".join(theirs), only(diff))
    except Conflict:
        assert done.returncode != 0
    else:
        assert done.returncode == 0 and ours == path.read_bytes()


@pytest.mark.parametrize("name", ["a b.h", 'quo"te.h', "tab\there.h", "ümläut.h", "b/b.h", "c.h"])
def test_a_path_is_read_however_git_quotes_it(name: str, repository: Path) -> None:
    path = repository / "c10" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(OLD)
    commit(repository)
    path.write_bytes(OLD + b"x\n")
    assert only(git(repository, "diff")).new == f"c10/{name}"
    assert only(git(repository, "diff", "--no-prefix")).new == f"c10/{name}"
    assert only(git(repository, "-c", "diff.mnemonicPrefix=true", "diff")).new == f"c10/{name}"


def test_renames_copies_deletions_additions_and_modes_are_told_apart(repository: Path) -> None:
    for name in ("renamed.h", "copied.h", "deleted.h", "mode.h"):
        (repository / name).write_text("".join(f"{name} {n}\n" for n in range(50)))
    commit(repository)
    (repository / "renamed.h").rename(repository / "new name.h")
    (repository / "copy.h").write_bytes((repository / "copied.h").read_bytes() + b"more\n")
    (repository / "deleted.h").unlink()
    (repository / "mode.h").chmod(0o755)
    (repository / "empty.h").write_bytes(b"")
    git(repository, "add", "-A")
    files = parse(git(repository, "diff", "--cached", "-C", "--find-copies-harder"))
    assert {(f.old, f.new, f.copied, len(f.hunks)) for f in files} == {
        ("renamed.h", "new name.h", False, 0),
        ("copied.h", "copy.h", True, 1),
        ("deleted.h", None, False, 1),
        ("mode.h", "mode.h", False, 0),
        (None, "empty.h", False, 0),
    }


@pytest.mark.parametrize("how", [["--binary"], []])
def test_a_binary_file_is_named_and_the_next_file_is_not_lost(
    how: list[str], repository: Path
) -> None:
    (repository / "c10/a.h").write_bytes(bytes(range(256)) * 8)
    (repository / HEADER).write_bytes(OLD + b"x\n")
    git(repository, "add", "-A")
    first, second = parse(git(repository, "diff", "--cached", *how))
    assert (first.path, first.binary, first.hunks) == ("c10/a.h", True, [])
    assert (second.path, second.binary, len(second.hunks)) == (HEADER, False, 1)


def test_a_mail_of_format_patch_is_read_and_its_text_is_no_patch(repository: Path) -> None:
    for number in (1, 2):
        (repository / HEADER).write_bytes(OLD + b"more\n" * number)
        git(repository, "commit", "-qam", "Say more\n\n--- no file\n+ no line\n- none\n")
    mails = git(repository, "format-patch", "--stdout", "HEAD~2")
    first, second = parse(mails)
    assert applied(applied(OLD, first), second) == OLD + b"more\nmore\n"


def test_a_symbolic_link_and_a_submodule_are_known_by_their_mode(repository: Path) -> None:
    os.symlink("/etc/passwd", repository / "c10/link.h")
    git(repository, "add", "-A")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},third_party/kineto")
    files = parse(git(repository, "diff", "--cached"))
    assert {f.path: f.mode for f in files} == {
        "c10/link.h": "120000",
        "third_party/kineto": "160000",
    }


def test_a_submodule_is_known_in_the_short_form_too() -> None:
    file = only(b"Submodule third_party/kineto 0123456..89abcde:\n  > a commit\n")
    assert (file.path, file.mode) == ("third_party/kineto", "160000")


def test_a_plain_diff_with_time_stamps_is_read() -> None:
    file = only(b"--- a/x.h\t2026-01-01 00:00:00\n+++ b/x.h\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n")
    assert (file.old, file.new, applied(b"a\n", file)) == ("x.h", "x.h", b"b\n")


def test_a_patch_that_was_given_windows_newlines_fits_files_of_both_kinds() -> None:
    file = only(CHANGE.replace(b"\n", b"\r\n"))
    assert applied(OLD, file) == OLD.replace(b"three", b"3")
    windows = OLD.replace(b"\n", b"\r\n")
    assert applied(windows, file) == windows.replace(b"three", b"3")


def test_blank_context_lines_that_lost_their_blank_still_count() -> None:
    file = only(patch_of("@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n"))
    assert applied(b"a\n\nb\n", file) == b"a\n\nc\n"


# --- where it goes ---------------------------------------------------------------------------


def test_a_hunk_is_found_at_an_offset() -> None:
    before = b"new\n" * 30
    assert applied(before + OLD, only(CHANGE)) == before + OLD.replace(b"three", b"3")


def test_of_two_equal_places_the_nearer_one_is_taken() -> None:
    assert applied(OLD * 3, only(CHANGE)) == OLD.replace(b"three", b"3") + OLD * 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (OLD.replace(b"two", b"2"), "hunk 1 does not fit"),
        (OLD.replace(b"three", b"3"), "hunk 1 is in it already"),
        (b"", "hunk 1 does not fit"),
    ],
)
def test_a_hunk_that_does_not_fit_is_named(content: bytes, reason: str) -> None:
    with pytest.raises(Conflict, match=reason):
        applied(content, only(CHANGE))


def test_an_insertion_without_context_fits_nowhere_for_certain() -> None:
    with pytest.raises(Conflict, match="hunk 1 does not fit"):
        applied(OLD, only(patch_of("@@ -3,0 +4 @@\n+x\n")))


def test_hunks_do_not_overtake_each_other() -> None:
    body = "@@ -6 +6 @@\n-six\n+6\n@@ -1 +1 @@\n-one\n+1\n"
    with pytest.raises(Conflict, match="hunk 2 does not fit"):
        applied(OLD, only(patch_of(body)))


# --- hostile and damaged ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd",
        "c10/../../x.h",
        "/etc/passwd",
        "c10//x.h",
        ".git/hooks/post-checkout",
        "c10/./x.h",
        "c10\\\\x.h",
        "/dev/zero",
    ],
)
def test_a_path_out_of_the_repository_is_refused(path: str) -> None:
    lines = (f'"a/{path}"', f'"b/{path}"') if "\\" in path else (f"a/{path}", f"b/{path}")
    old, new = lines if not path.startswith("/") else (path, path)
    with pytest.raises(CiError, match="leads out of the repository"):
        parse(f"--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n".encode())


@pytest.mark.parametrize("word", ["rename", "copy"])
def test_a_rename_out_of_the_repository_is_refused(word: str) -> None:
    data = f"diff --git a/x b/y\nsimilarity index 100%\n{word} from x\n{word} to ../../y\n"
    with pytest.raises(CiError, match="leads out of the repository"):
        parse(data.encode())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "holds no change"),
        (b"\n\n", "holds no change"),
        (b"<html>404 not found</html>\n", "holds no change"),
        (bytes(range(256)) * 100, "holds no change"),
        (CHANGE[:-12], "ends in the middle of c10/core/Allocator.h hunk 1"),
        (CHANGE[:-6], "ends in the middle of c10/core/Allocator.h hunk 1|damaged"),
        (CHANGE + b"+stray\n", "belongs to no hunk"),
        (CHANGE.replace(b"-three", b"*three"), "damaged in c10/core/Allocator.h hunk 1, line 6"),
        (CHANGE.replace(b"-2,3 +2,3", b"-2,3 +2,2"), "damaged|belongs to no hunk"),
        (CHANGE.replace(b"-2,3", b"-two,3"), "belongs to no hunk"),
        (b"@@ -1 +1 @@\n-a\n+b\n", "starts a hunk of no file"),
        (b"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "no file is named"),
        (b"diff --cc c10/x.h\nindex 1,2..3\n@@@ -1,1 -1,1 +1,1 @@@\n", "combined diff of a merge"),
        (b"Only in b/c10: new.h\n" + CHANGE, "leaves out new files"),
        (b"diff --git a/x b/y\nindex 1..2\n", "no file is named"),
    ],
)
def test_what_cannot_be_read_exactly_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(CiError, match=reason):
        parse(data)


def test_a_patch_cut_off_anywhere_within_its_last_hunk_is_refused() -> None:
    body = CHANGE.index(b"@@ -2,3") + len(b"@@ -2,3 +2,3 @@\n")
    for end in range(body, len(CHANGE) - len(b" four\n") + 1):
        with pytest.raises(CiError):
            parse(CHANGE[:end])


def test_a_patch_of_100_megabytes_is_refused_at_once() -> None:
    with pytest.raises(CiError, match="more than 64"):
        parse(b"\0" * (BYTES_LIMIT + 1))


def test_a_million_hunks_are_refused_where_they_matter() -> None:
    data = patch_of("@@ -1 +1 @@\n-a\n+b\n" * 1_000_000)
    start = time.process_time()
    with pytest.raises(CiError, match="more than 20000 hunks"):
        parse(data)
    assert time.process_time() - start < 5


def test_hunks_of_files_that_do_not_matter_are_not_kept() -> None:
    data = patch_of("@@ -1 +1 @@\n-a\n+b\n" * 30_000)
    assert parse(data, wanted=lambda path: False)[0].hunks == []


def test_hunks_that_fit_nowhere_do_not_take_for_ever() -> None:
    hunks = "".join(f"@@ -{n} +{n} @@\n-a\n+b\n" for n in range(1, 10_001))
    start = time.process_time()
    with pytest.raises(Conflict):
        applied(b"a\n" * 5_000, only(patch_of(hunks)))
    assert time.process_time() - start < 5


def test_a_hunk_with_an_absurd_length_or_place_is_refused() -> None:
    with pytest.raises(CiError, match="ends in the middle"):
        parse(patch_of(f"@@ -1,{10**18} +1,{10**18} @@\n a\n"))
    with pytest.raises(Conflict):
        applied(OLD, only(patch_of(f"@@ -{10**18} +1 @@\n-one\n+1\n")))


@pytest.mark.fuzz
def test_a_mangled_patch_is_read_or_refused_and_nothing_else() -> None:
    choice = random.Random(0)
    whole = CHANGE * 2 + b"diff --git a/x b/y\nrename from x\nrename to y\n"
    outcomes = {_outcome(_mangled(whole, choice)) for _ in range(2000)}
    assert outcomes == {"applied", CiError, Conflict}


def _mangled(data: bytes, choice: random.Random) -> bytes:
    mangled = bytearray(data)
    for _ in range(choice.randrange(1, 6)):
        at = choice.randrange(len(mangled))
        mangled[at : at + choice.randrange(4)] = choice.randbytes(choice.randrange(4))
    return bytes(mangled)


def _outcome(data: bytes) -> object:
    try:
        for file in parse(data):
            applied(OLD, file)
    except (CiError, Conflict) as error:
        return type(error)
    return "applied"
