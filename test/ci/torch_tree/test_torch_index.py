# SPDX-License-Identifier: BSD-3-Clause
"""A version is fetched from pip's indexes, in parts, whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import small_torch
from wheel_server import Behaviour, Server, serving

from torch_backend_ci.errors import CiError
from torch_backend_ci.torch_tree import TorchTree, folders, locate, remote

NAME = "torch-{}-cp311-cp311-manylinux_2_28_x86_64.whl"
BALLAST = 9 << 20  # much more than is read at the end of the file


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    small_torch.wheel(folder / NAME.format("2.13.0"), ballast=BALLAST)
    for version in ("2.11.0", "2.12.1", "2.14.0", "2.15.0+cpu"):
        small_torch.wheel(folder / NAME.format(version), small_torch.files(version))
    return folder


# Until pip 24, finding packages imports what setuptools calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:pkg_resources:DeprecationWarning")


@pytest.fixture
def server(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in [n for n in os.environ if n.startswith("PIP_")]:
        monkeypatch.delenv(name)
    with serving(Behaviour(wheels)) as running:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", running.index())
        monkeypatch.setenv("PIP_RETRIES", "0")
        monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "5")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(remote, "PAUSE", 0.0)
        yield running


def find(version: str, tmp_path: Path) -> TorchTree:
    return locate(version, tmp_path, said.append)


said: list[str] = []


@pytest.fixture(autouse=True)
def silence() -> None:
    said.clear()


def left_behind(cache: Path) -> list[str]:
    return [p.name for p in cache.glob("torch/*") if p.suffix != ".lock"] + [
        p.name for p in cache.glob("torch/.*.part")
    ]


def test_only_what_is_read_is_fetched_where_the_server_knows_ranges(
    server: Server, tmp_path: Path
) -> None:
    tree = find("2.13.0", tmp_path)
    assert sorted(folders.files(tree.root)) == sorted(small_torch.files())
    assert server.behaviour.sent < BALLAST / 1.8
    assert len(server.behaviour.asked) == 2  # the end of the file, and what lies before the library


def test_a_version_is_fetched_once(server: Server, tmp_path: Path) -> None:
    assert find("2.13.0", tmp_path) == find("2.13.0", tmp_path)
    assert len(server.behaviour.asked) == 2


def test_a_local_version_can_be_meant(server: Server, tmp_path: Path) -> None:
    assert find("2.15.0+cpu", tmp_path).version == "2.15.0"
    assert find("2.15.0", tmp_path).version == "2.15.0"
    with pytest.raises(CiError, match=r"no torch 2\.15\.0\+cu130"):
        find("2.15.0+cu130", tmp_path)


def test_all_of_it_is_fetched_where_the_server_knows_no_ranges(
    server: Server, tmp_path: Path
) -> None:
    server.behaviour.ranges = False
    tree = find("2.13.0", tmp_path)
    assert sorted(folders.files(tree.root)) == sorted(small_torch.files())
    assert len(server.behaviour.asked) == 1
    assert any("the server gives no parts" in line for line in said)


def test_the_whole_wheel_must_have_the_digest_of_the_index(server: Server, tmp_path: Path) -> None:
    server.behaviour.ranges = False
    server.behaviour.hashes[NAME.format("2.13.0")] = "0" * 64
    with pytest.raises(CiError, match="does not have the SHA-256"):
        find("2.13.0", tmp_path)
    assert left_behind(tmp_path) == []


def test_a_transfer_that_breaks_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.behaviour.break_tail = False
    server.behaviour.break_after, server.behaviour.breaks = 300, 2
    tree = find("2.13.0", tmp_path)
    assert sorted(folders.files(tree.root)) == sorted(small_torch.files())
    starts = [a.removeprefix("bytes=").split("-")[0] for a in server.behaviour.asked]
    assert starts == ["", "0", "300", "600"]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_transfer_that_always_breaks_ends_with_a_reason(
    ranges: bool, server: Server, tmp_path: Path
) -> None:
    server.behaviour.ranges = ranges
    server.behaviour.break_after, server.behaviour.breaks = 10, 1000
    with pytest.raises(CiError, match="keeps breaking off"):
        find("2.13.0", tmp_path)
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("status", "reason"),
    [(404, "answers 404"), (403, "answers 403"), (500, "answers only with server errors")],
)
def test_an_answer_that_is_an_error_is_told(
    status: int, reason: str, server: Server, tmp_path: Path
) -> None:
    server.behaviour.status = status
    with pytest.raises(CiError, match=rf"127\.0\.0\.1/\.\.\./torch-2\.13\.0.*{reason}"):
        find("2.13.0", tmp_path)
    assert left_behind(tmp_path) == []


def test_a_server_that_falls_silent_is_given_up(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "0.2")
    server.behaviour.pause = 1.0
    with pytest.raises(CiError, match="keeps breaking off"):
        find("2.13.0", tmp_path)


def test_an_unknown_version_names_the_near_ones(server: Server, tmp_path: Path) -> None:
    with pytest.raises(CiError, match=r"no torch 2\.12\.0; near are 2\.11\.0, 2\.12\.1, 2\.13\.0"):
        find("2.12.0", tmp_path)
    assert left_behind(tmp_path) == []


def test_without_a_network_the_index_is_named(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://me:s3cret@127.0.0.1:1/simple/")
    with pytest.raises(
        CiError, match=r"no torch .* at all.*; 127\.0\.0\.1 could not be read"
    ) as caught:
        find("2.13.0", tmp_path)
    assert "s3cret" not in str(caught.value)


def test_the_users_credentials_are_used_and_never_shown(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    server.behaviour.password = "s3cret"
    monkeypatch.setenv("PIP_INDEX_URL", server.index("me:s3cret@"))
    find("2.13.0", tmp_path)
    server.behaviour.status = 404
    with pytest.raises(CiError) as caught:
        find("2.11.0", tmp_path)
    captured = capfd.readouterr()
    for text in (*said, str(caught.value), captured.out, captured.err):
        assert "s3cret" not in text


def test_a_wheel_of_find_links_is_read_in_place(
    server: Server, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert find("2.14.0", tmp_path).version == "2.14.0"
    assert server.behaviour.asked == []


def test_an_unbuilt_checkout_takes_generated_headers_of_the_release_before_it(
    server: Server, tmp_path: Path
) -> None:
    repository = small_torch.checkout(tmp_path / "pytorch", {"version.txt": "2.13.1a0\n"})
    tree = locate(str(repository), tmp_path / "cache", said.append)
    assert tree.version == "2.13.1a0"
    assert (tree.root / "torch/include/ATen/core/TensorBody.h").is_file()
    assert (
        "is not built: generated headers (ATen/ops and the like) are those of torch 2.13.0"
        in (said[-1])
    )


COMMAND = [
    sys.executable,
    "-c",
    "import sys, pathlib; from torch_backend_ci.torch_tree import locate; "
    "print(locate('2.13.0', pathlib.Path(sys.argv[1])).version)",
]


def _start(cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, str(cache)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def test_one_who_is_killed_leaves_no_tree_and_does_not_hinder_the_next(
    server: Server, tmp_path: Path
) -> None:
    server.behaviour.chunk_pause = 0.02
    process = _start(tmp_path)
    while server.behaviour.sent < 1 << 20:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "torch/2.13.0").exists()
    server.behaviour.chunk_pause = 0.0
    assert find("2.13.0", tmp_path).version == "2.13.0"
    assert left_behind(tmp_path) == ["2.13.0"]


def test_of_two_at_once_one_fetches_and_both_have_it(server: Server, tmp_path: Path) -> None:
    server.behaviour.chunk_pause = 0.01
    both = [_start(tmp_path), _start(tmp_path)]
    assert [process.communicate(timeout=60)[0].strip() for process in both] == ["2.13.0"] * 2
    assert len(server.behaviour.asked) == 2
    assert left_behind(tmp_path) == ["2.13.0"]
