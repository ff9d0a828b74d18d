# SPDX-License-Identifier: BSD-3-Clause
"""A snapshot is taken whole or not at all, kept, written and read back."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small_torch
from installed import installed_snapshot
from schemas_of import valid

from torch_backend_ci.cli import main
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.surface import snapshot, snapshot_cache, snapshot_file
from torch_backend_ci.surface.catalogue import load
from torch_backend_ci.surface.model import Declaration, Domain, Snapshot, Torch
from torch_backend_ci.torch_tree import locate

COMMITTED = sorted(Path(snapshot.__file__).parent.glob("snapshots/*.json.gz"))


def declaration(name: str, **facts: Any) -> Declaration:
    return Declaration(Domain.CPP, "enumerator", name, "device", "A = 1", "torch/a.h", 1, facts)


def by_hand(*declarations: Declaration) -> Snapshot:
    return Snapshot(Torch("2.13.0", None), frozenset({Domain.CPP}), declarations)


ONE = by_hand(declaration("c10::A", value=1), declaration("c10::B", value=2))


def quiet(line: str) -> None:
    """No progress."""


def take(root: Path, cache: Path | None = None) -> Snapshot:
    return snapshot.take(locate(str(root), progress=quiet), cache, progress=quiet)


def never(*_: object) -> None:
    raise AssertionError("the torch is read again")


# Files


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_snapshot_is_read_back_as_it_was_written(tmp_path: Path, name: str) -> None:
    snapshot_file.write(ONE, tmp_path / name)
    assert snapshot_file.read(tmp_path / name) == ONE
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_has_one_line_per_declaration() -> None:
    lines = snapshot_file.dumps(ONE).splitlines()
    assert [json.loads(line.rstrip(","))["name"] for line in lines[1:-1]] == ["c10::A", "c10::B"]


def _without(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["declarations"][0].pop(key)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data.pop("format"), "is not a snapshot"),
        (lambda data: data.update(schema=2), "has version 2 of the format"),
        (lambda data: data.pop("torch"), "required key 'torch' is missing"),
        (lambda data: data.update(domains=["fortran"]), "'fortran' is not one of"),
        (lambda data: data["declarations"].append(7), r"declarations\[2\]: expected `object`"),
        (lambda data: data["declarations"][0].update(name=None), r"\[0\].name: expected `str`"),
        (lambda data: data["declarations"][0].update(facts=[]), r"\[0\].facts: expected `object`"),
        (_without("surface"), r"\[0\]: the required key 'surface' is missing"),
        (
            lambda data: data["declarations"][0]["facts"].update(bits=3),
            r"\[0\]: facts of c10::A: Object contains unknown field `bits`",
        ),
        (lambda data: data["declarations"][0].update(kind="verse"), "cpp has no kind 'verse'"),
    ],
)
def test_a_foreign_or_damaged_file_is_refused(
    tmp_path: Path, damage: Callable[[dict[str, Any]], object], message: str
) -> None:
    data = json.loads(snapshot_file.dumps(ONE))
    damage(data)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data))
    with pytest.raises(CiError, match=rf"a.json.*{message}"):
        snapshot_file.read(path)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe", b"\x1f\x8bxx"])
def test_what_is_no_snapshot_at_all_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(CiError, match=r"a\.json"):
        snapshot_file.read(path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    whole = pack(snapshot_file.dumps(ONE).encode())
    path = tmp_path / "a.json"
    for size in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:size])
        with pytest.raises(CiError, match=r"a\.json"):
            snapshot_file.read(path)


# Taking


def test_a_small_torch_is_read_in_every_domain_that_it_has(tmp_path: Path) -> None:
    taken = take(small_torch.unpacked(tmp_path))
    assert taken.torch == Torch("2.13.0", small_torch.COMMIT)
    assert taken.domains == set(Domain) - {Domain.SYMBOL}
    names = {(d.domain, d.name) for d in taken.declarations}
    assert names >= {
        (Domain.CPP, "c10::Allocator::allocate"),
        (Domain.HEADER, "c10/core/Device.h"),
        (Domain.PYTHON, "torch.accelerator.current_device_index"),
        (Domain.OPERATOR, "aten::add.Tensor"),
    }


def test_where_a_torch_lies_and_when_it_is_read_do_not_matter(tmp_path: Path) -> None:
    texts = [
        snapshot_file.dumps(take(small_torch.unpacked(tmp_path / folder)))
        for folder in ("here", "some/where else")
    ]
    assert texts[0] == texts[1]
    assert str(tmp_path) not in texts[0]


def test_a_header_that_does_not_compile_gives_a_message_and_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = small_torch.unpacked(tmp_path / "torch")
    header = root / "torch/include/c10/core/Allocator.h"
    header.write_text(header.read_text().replace("void* allocate", "Nothing allocate"))
    output = tmp_path / "out.json"
    command = ["surface", "snapshot", "--torch", str(root), "-o", str(output), "--no-cache"]
    assert main(command) == Exit.UNUSABLE
    assert "Allocator.h:12: unknown type name 'Nothing'" in capsys.readouterr().err
    assert not output.exists()


def test_the_verb_writes_what_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = small_torch.unpacked(tmp_path / "torch")
    cache = ["--cache", str(tmp_path / "cache")]
    command = ["surface", "snapshot", "--torch", str(root), *cache, "-o"]
    assert main([*command, str(tmp_path / "out.json")]) == Exit.OK
    assert "C++:" in capsys.readouterr().err
    assert main([*command, "-"]) == Exit.OK
    printed = capsys.readouterr()
    assert printed.out == (tmp_path / "out.json").read_text()
    assert "unchanged since it was last read" in printed.err


def test_an_output_in_no_folder_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "none" / "out.json")
    assert main(["surface", "snapshot", "--torch", "no-torch", "-o", output]) == Exit.UNUSABLE
    assert "there is no directory for" in capsys.readouterr().err


# The cache


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A small torch, and a cache that has its snapshot. Reading it again is a failure."""
    root = small_torch.unpacked(tmp_path / "torch")
    tree = locate(str(root), progress=quiet)
    cache = tmp_path / "cache"
    snapshot_cache.put(snapshot_cache.entry(cache, tree, load()), ONE, quiet)
    monkeypatch.setattr(snapshot, "read_tree", never)
    return root, cache


def test_what_was_read_once_is_not_read_again(kept: tuple[Path, Path]) -> None:
    assert take(*kept) == ONE


@pytest.mark.parametrize(
    "file",
    [
        "torch/include/c10/core/Device.h",
        "torch/accelerator/__init__.py",
        "torchgen/packaged/ATen/native/native_functions.yaml",
    ],
)
def test_a_changed_file_is_noticed(kept: tuple[Path, Path], file: str) -> None:
    (kept[0] / file).write_text("")
    with pytest.raises(AssertionError, match="read again"):
        take(*kept)


def test_a_file_changed_within_its_size_is_noticed(kept: tuple[Path, Path]) -> None:
    os.utime(kept[0] / "torch/include/c10/core/Device.h", ns=(1, 1))
    with pytest.raises(AssertionError, match="read again"):
        take(*kept)


def test_another_catalogue_is_another_snapshot(kept: tuple[Path, Path]) -> None:
    known = load()
    fewer = replace(known, surfaces=known.surfaces[1:])
    tree = locate(str(kept[0]), progress=quiet)
    with pytest.raises(AssertionError, match="read again"):
        snapshot.take(tree, kept[1], catalogue=fewer, progress=quiet)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-3],
        lambda data: b"",
        lambda data: data.replace(b"c10::B", b"c10::C"),
        lambda data: data.replace(b'"schema": 1', b'"schema": 0'),
    ],
    ids=["cut off", "empty", "one letter", "older"],
)
def test_a_damaged_entry_is_not_believed(
    kept: tuple[Path, Path], damage: Callable[[bytes], bytes]
) -> None:
    (entry,) = (kept[1] / "snapshots").iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    with pytest.raises(AssertionError, match="read again"):
        take(*kept)


def test_a_cache_that_cannot_be_written_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = small_torch.unpacked(tmp_path / "torch")
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setattr(snapshot, "read_tree", lambda *_: ONE)
    said: list[str] = []
    tree = locate(str(root), progress=quiet)
    assert snapshot.take(tree, blocked, progress=said.append) == ONE
    assert [line for line in said if line.startswith("the snapshot is not kept")]


def test_a_full_disk_leaves_no_half_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    said: list[str] = []
    snapshot_cache.put(tmp_path / "snapshots" / "a.json", ONE, said.append)
    assert said == [
        "the snapshot is not kept for the next time: cannot write "
        f"{tmp_path}/snapshots/a.json: No space left on device"
    ]
    assert not list((tmp_path / "snapshots").iterdir())


def test_only_the_newest_entries_are_kept(tmp_path: Path) -> None:
    for number in range(snapshot_cache.KEPT + 5):
        path = tmp_path / f"{number}.json"
        snapshot_cache.put(path, ONE, quiet)
        os.utime(path, (number, number))
    snapshot_cache.put(tmp_path / "newest.json", ONE, quiet)
    names = {path.stem for path in tmp_path.iterdir()}
    assert len(names) == snapshot_cache.KEPT
    assert "newest" in names
    assert "5" not in names


# What comes with the tool


def test_the_pinned_torches_have_a_snapshot() -> None:
    versions = [path.name.removesuffix(".json.gz") for path in COMMITTED]
    assert versions == ["2.11.0", "2.13.0", "2.15.0", "2.9.1"]


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_a_committed_snapshot_follows_the_schema(path: Path) -> None:
    data = json.loads(gzip.decompress(path.read_bytes()))
    # One of each kind with each set of facts stands for the others.
    kinds = {(d["domain"], d["kind"], *d["facts"]): d for d in data["declarations"]}
    data["declarations"] = list(kinds.values())
    valid(data, "snapshot")
    assert data["torch"]["version"] == path.name.removesuffix(".json.gz")


@pytest.mark.nightly
def test_the_committed_snapshot_of_2_13_is_what_the_installed_torch_gives() -> None:
    committed = snapshot_file.read(next(path for path in COMMITTED if "2.13.0" in path.name))
    installed = installed_snapshot()
    assert installed.torch.version == "2.13.0"
    assert committed.domains == installed.domains
    here = installed.declarations
    assert _facts(here) == _facts(committed.declarations)


def _facts(declarations: Any) -> list[str]:
    return [
        f"{d.domain.value} {d.kind} {d.name} {d.surface} {json.dumps(d.facts, sort_keys=True)}"
        for d in declarations
    ]


@pytest.mark.nightly
def test_every_surface_with_headers_has_declarations_and_all_headers_stand_alone() -> None:
    declarations = installed_snapshot().declarations
    found = {d.surface for d in declarations if d.domain is Domain.CPP}
    assert {s.name for s in load().surfaces if s.symbols or s.macros} <= found
    tried = [d for d in declarations if d.kind == "header" and not d.facts.get("unread")]
    assert {d.name for d in tried} == load().chosen
    assert [d.name for d in tried if not d.facts.get("alone")] == []


@pytest.mark.nightly
def test_what_a_torch_exports_of_the_surface_is_what_its_headers_declare() -> None:
    declarations = installed_snapshot().declarations
    names = {d.name for d in declarations if d.domain is Domain.SYMBOL}
    assert {
        "c10::SetAllocator(c10::DeviceType, c10::Allocator*, unsigned char)",
        "c10::impl::cow::materialize_cow(c10::StorageImpl*)",
    } <= names


def test_the_compiler_is_needed_and_its_absence_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = small_torch.unpacked(tmp_path / "torch")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tools))
    command = ["surface", "snapshot", "--torch", str(root), "--no-cache", "-o"]
    assert main([*command, str(tmp_path / "out.json")]) == Exit.UNUSABLE
    assert "apt-get install g++" in capsys.readouterr().err
