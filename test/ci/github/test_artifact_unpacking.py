# SPDX-License-Identifier: BSD-3-Clause
"""Artifacts as strangers make them: nothing of one is believed before it was bounded."""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from torch_backend_ci.github.artifact import Limits, Unusable, unpack

SMALL = Limits(packed=1 << 20, unpacked=4 << 20, entries=20)


def zipped(
    *entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of names that are there twice
        with zipfile.ZipFile(stream, "w", method) as archive:
            for entry, content in entries:
                archive.writestr(entry, content)
    return stream.getvalue()


def with_mode(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def in_directory(data: bytes, offset: int, value: bytes) -> bytes:
    """The first entry of the directory at the end of the file, with other bytes."""
    start = data.index(b"PK\x01\x02") + offset
    return data[:start] + value + data[start + len(value) :]


def anything(name: str) -> bool:
    return True


def test_the_wanted_files_are_read_and_the_others_are_not() -> None:
    data = zipped(("verdict.json", b"{}"), ("folder/notes.txt", b"x"), ("folder/", b""))
    assert unpack(data, lambda name: name == "verdict.json", SMALL) == {"verdict.json": b"{}"}


def test_an_entry_that_was_stored_with_its_size_behind_it_is_read() -> None:
    # GitHub's uploader streams: sizes come after the data.
    class Unseekable(io.RawIOBase):
        def __init__(self) -> None:
            self.data = b""

        def writable(self) -> bool:
            return True

        def write(self, part: Any) -> int:
            self.data += bytes(part)
            return len(part)

    stream = Unseekable()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", b"[]" * 100)
    assert unpack(stream.data, anything, SMALL) == {"a.json": b"[]" * 100}


@pytest.mark.parametrize(
    "name",
    [
        "../verdict.json",
        "a/../../verdict.json",
        "a/..",
        "./verdict.json",
        "/etc/passwd",
        "//server/share",
        "C:/windows/x",
        "C:x",
        "..\\..\\verdict.json",
        "a\\b",
        "a//b",
        "",
        "verdict.json\n",
        "verdict\u202enosj.json",
    ],
)
def test_a_name_that_leads_elsewhere_refuses_the_whole_archive(name: str) -> None:
    data = zipped(("verdict.json", b"{}"), (zipfile.ZipInfo("x" * 7), b"evil"))
    evil = zipped(("verdict.json", b"{}"), (zipfile.ZipInfo(name or "x"), b"evil"))
    if not name:
        evil = zipped(("verdict.json", b"{}"), ("/", b""))
    assert unpack(data, anything, SMALL)
    with pytest.raises(Unusable, match="leads elsewhere"):
        unpack(evil, lambda name: name == "verdict.json", SMALL)


def test_a_name_with_a_nul_is_not_cut_there() -> None:
    data = zipped(("verdict.json_.txt", b"evil")).replace(b"json_.txt", b"json\0.txt")
    with pytest.raises(Unusable, match="leads elsewhere"):
        unpack(data, anything, SMALL)


@pytest.mark.parametrize("mode", [0o120777, 0o060660, 0o020660, 0o010644, 0o140777])
def test_links_and_devices_are_refused(mode: int) -> None:
    with pytest.raises(Unusable, match="link or a device"):
        unpack(zipped((with_mode("verdict.json", mode), b"/etc/passwd")), anything, SMALL)


@pytest.mark.parametrize(
    "names",
    [
        ("verdict.json", "verdict.json"),
        ("verdict.json", "Verdict.JSON"),
        ("\u00e9.json", "e\u0301.json"),
        ("stra\u00dfe.json", "STRASSE.json"),
    ],
)
def test_two_entries_that_some_file_system_takes_for_one_are_refused(
    names: tuple[str, str],
) -> None:
    data = zipped(*((name, name.encode()) for name in names))
    with pytest.raises(Unusable, match="there twice"):
        unpack(data, anything, SMALL)


@pytest.mark.parametrize("flag", [0x1, 0x40])
def test_an_encrypted_entry_is_refused(flag: int) -> None:
    data = in_directory(zipped(("verdict.json", b"{}")), 8, struct.pack("<H", flag))
    with pytest.raises(Unusable, match="is encrypted"):
        unpack(data, anything, SMALL)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unusual_compressions_are_refused(method: int) -> None:
    with pytest.raises(Unusable, match="unusual"):
        unpack(zipped(("verdict.json", b"{}"), method=method), anything, SMALL)


def test_a_bomb_is_refused_by_what_it_says() -> None:
    data = zipped(("verdict.json", b"\0" * (5 << 20)))
    assert len(data) < 10_000
    with pytest.raises(Unusable, match="holds more than"):
        unpack(data, anything, SMALL)


def test_many_small_entries_that_are_large_together_are_refused() -> None:
    data = zipped(*((f"{i}.json", b"\0" * (1 << 20)) for i in range(5)))
    with pytest.raises(Unusable, match="holds more than"):
        unpack(data, anything, SMALL)


def test_a_bomb_that_lies_about_its_size_is_read_no_further_than_it_says() -> None:
    data = zipped(("verdict.json", b"\0" * (5 << 20)))
    lie = in_directory(data, 24, struct.pack("<I", 100))
    with pytest.raises(Unusable, match="not a valid zip file"):
        unpack(lie, anything, SMALL)


def test_an_entry_that_is_shorter_than_it_says_is_refused() -> None:
    lie = in_directory(zipped(("verdict.json", b"{}")), 24, struct.pack("<I", 100))
    with pytest.raises(Unusable):
        unpack(lie, anything, SMALL)


def test_entries_that_overlap_are_bounded_by_their_sum() -> None:
    # Fifield's bomb: many names for the same compressed bytes.
    one = zipped(("a", b"\0" * (1 << 20)))
    start, end = one.index(b"PK\x01\x02"), one.index(b"PK\x05\x06")
    entry = one[start:end]
    names = "abcdefgh"
    directory = b"".join(entry.replace(b"a", name.encode()) for name in names)
    count = struct.pack("<HH", len(names), len(names))
    size = struct.pack("<I", len(directory))
    data = one[:start] + directory + one[end : end + 8] + count + size + one[end + 16 :]
    assert len(zipfile.ZipFile(io.BytesIO(data)).infolist()) == len(names)
    with pytest.raises(Unusable, match="holds more than"):
        unpack(data, anything, SMALL)


def test_more_entries_than_anybody_needs_are_refused() -> None:
    with pytest.raises(Unusable, match="more than 20 entries"):
        unpack(zipped(*((f"{i}.json", b"") for i in range(21))), anything, SMALL)


def test_a_directory_that_hides_its_number_of_entries_is_refused() -> None:
    data = zipped(*((f"{i}.json", b"") for i in range(2000)))
    end = data.index(b"PK\x05\x06")
    lie = data[: end + 8] + struct.pack("<HH", 1, 1) + data[end + 12 :]
    with pytest.raises(Unusable, match="more than 20 entries"):
        unpack(lie, anything, SMALL)


@pytest.mark.parametrize(
    "lie",
    [
        lambda end: b"PK\x06\x07" + b"\0" * 16 + end,
        lambda end: end[:8] + b"\xff\xff\xff\xff" + end[12:],
        lambda end: end[:10] + b"\xff\xff" + end[12:],
    ],
)
def test_zip64_is_refused_whatever_it_claims(lie: Callable[[bytes], bytes]) -> None:
    data = zipped(("verdict.json", b"{}"))
    with pytest.raises(Unusable, match="zip64"):
        unpack(data[:-22] + lie(data[-22:]), anything, SMALL)


def test_an_entry_with_sizes_of_zip64_is_refused() -> None:
    info = zipfile.ZipInfo("verdict.json")
    # Sizes of 64 bits in the extra field, claiming 2^62 bytes.
    info.extra = struct.pack("<HHQQ", 1, 16, 1 << 62, 1 << 62)
    data = zipped((info, b"{}"))
    lie = in_directory(data, 20, b"\xff\xff\xff\xff\xff\xff\xff\xff")
    with pytest.raises(Unusable):
        unpack(lie, anything, SMALL)


@pytest.mark.parametrize("kept", [0, 1, 21, 22, 60, -1, -23])
def test_a_truncated_archive_is_refused(kept: int) -> None:
    data = zipped(("verdict.json", b"{}" * 50))
    with pytest.raises(Unusable):
        unpack(data[:kept], anything, SMALL)


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"<html>404</html>", b"PK\x05\x06", b"PK\x05\x06" + b"\0" * 17, b"\x1f\x8b" * 50],
)
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    with pytest.raises(Unusable):
        unpack(data, anything, SMALL)


def test_two_archives_in_one_file_are_refused() -> None:
    data = zipped(("verdict.json", b'{"outcome": "regression"}'))
    other = zipped(("verdict.json", b'{"outcome": "ok"}'))
    comment = data[:-2] + struct.pack("<H", len(other)) + other
    for both in (comment, data + other, data + b"\0", b"\0" + data):
        with pytest.raises(Unusable):
            unpack(both, anything, SMALL)


def test_flipping_any_byte_never_ends_otherwise_than_with_a_refusal_or_the_content() -> None:
    data = zipped(("verdict.json", b'{"outcome": "regression"}'), ("findings.json", b"[1, 2, 3]"))
    sound = unpack(data, anything, SMALL)
    for at in range(len(data)):
        for bit in (0x01, 0x80, 0xFF):
            changed = bytearray(data)
            changed[at] ^= bit
            try:
                found = unpack(bytes(changed), anything, SMALL)
            except Unusable:
                continue
            assert set(found.values()) <= set(sound.values())
