# SPDX-License-Identifier: BSD-3-Clause
"""A torch is found wherever it lies, and nothing half is ever taken for one."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import small_torch

from torch_backend_ci.errors import CiError
from torch_backend_ci.torch_tree import TorchTree, folders, layout, linked, locate, wheel


def quiet(line: str) -> None:
    """Show no progress."""


def find(where: Path | str, tmp_path: Path) -> TorchTree:
    return locate(str(where), tmp_path / "cache", quiet)


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    return small_torch.unpacked(tmp_path / "site-packages")


# --- directories -----------------------------------------------------------------------------


@pytest.mark.parametrize("inside", ["", "torch"])
def test_an_unpacked_torch_is_found_by_its_folder_and_by_its_torch_folder(
    inside: str, packages: Path, tmp_path: Path
) -> None:
    tree = find(packages / inside, tmp_path)
    assert (tree.root, tree.version, tree.git_version) == (packages, "2.13.0", small_torch.COMMIT)
    assert tree.include == (packages / "torch/include",)
    assert tree.libraries is None


def test_an_installed_torch_is_found_by_its_interpreter_without_importing_it(
    tmp_path: Path,
) -> None:
    by_python = find(sys.executable, tmp_path)
    by_folder = find(by_python.root / "torch", tmp_path)
    assert by_python == by_folder
    assert by_python.libraries is not None and by_python.include[0].is_dir()


def test_a_virtual_environment_is_one_too(tmp_path: Path) -> None:
    small_torch.unpacked(tmp_path / "venv/lib/python3.12/site-packages")
    assert find(tmp_path / "venv", tmp_path).version == "2.13.0"


def test_the_local_part_of_a_version_is_dropped(tmp_path: Path) -> None:
    contents = small_torch.files() | {"torch/version.py": small_torch.version_py("2.13.0+cu130")}
    assert find(small_torch.unpacked(tmp_path / "t", contents), tmp_path).version == "2.13.0"


def test_version_py_is_read_and_not_run(tmp_path: Path) -> None:
    trap = "import pathlib\npathlib.Path('ran').touch()\n__version__ = '2.13.0'\n"
    root = small_torch.unpacked(
        tmp_path / "t", small_torch.files() | {"torch/version.py": trap + "git_version = None\n"}
    )
    assert find(root, tmp_path).git_version is None
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"torch/version.py": None}, "there is no torch in"),
        ({"torch/version.py": "def"}, "cannot read"),
        ({"torch/version.py": "x = 1\n"}, "does not say __version__"),
        ({"torch/version.py": "__version__ = 'soon'\n"}, "is not a version"),
        ({"torch/include/c10/core/Device.h": None}, "has no headers"),
        ({"torchgen/packaged/ATen/native/native_functions.yaml": None}, "has no torchgen"),
    ],
)
def test_a_folder_that_lacks_something_is_refused_by_name(
    broken: dict[str, str | None], reason: str, tmp_path: Path
) -> None:
    contents = {k: v for k, v in (small_torch.files() | broken).items() if v is not None}
    root = small_torch.unpacked(tmp_path / "t", contents)
    with pytest.raises(CiError, match=reason):
        find(root, tmp_path)


@pytest.mark.parametrize("where", ["nowhere", "torch", "2"])
def test_what_is_neither_path_nor_version_is_refused(where: str, tmp_path: Path) -> None:
    with pytest.raises(CiError, match="no such file or directory, and not a version"):
        find(where, tmp_path)


def test_an_interpreter_without_torch_says_so(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho\n")
    python.chmod(0o755)
    with pytest.raises(CiError, match="has no torch installed"):
        find(python, tmp_path)


# --- wheels ----------------------------------------------------------------------------------


def test_a_wheel_is_unpacked_once_and_only_what_is_read_of_it(tmp_path: Path) -> None:
    path = tmp_path / "torch-2.13.0-cp311-cp311-linux_x86_64.whl"
    small_torch.wheel(path, ballast=1000)
    tree = find(path, tmp_path)
    assert sorted(folders.files(tree.root)) == sorted(small_torch.files())
    assert not (tree.root / "torch/lib").exists()
    before = tree.root.stat().st_mtime_ns
    assert find(path, tmp_path).root.stat().st_mtime_ns == before


def test_another_wheel_of_the_same_name_is_another_torch(tmp_path: Path) -> None:
    path = tmp_path / "torch.whl"
    small_torch.wheel(path)
    first = find(path, tmp_path)
    small_torch.wheel(path, small_torch.files() | {"torch/extra.py": "x = 1\n"})
    assert find(path, tmp_path).root != first.root


def _with_member(name: str, mode: int = 0o100644, text: str = "x") -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for file, content in small_torch.files().items():
            archive.writestr(file, content)
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        archive.writestr(info, text)
    return data.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"not an archive", "not a whole wheel"),
        (_with_member("torch/x.py")[:-100], "not a whole wheel"),
        (_with_member("torch/include/../../../evil.h"), "leads out of the archive"),
        (_with_member("torch/include//etc/evil.h"), "leads out of the archive"),
        (_with_member("torch/include/..\\evil.h"), "leads out of the archive"),
        (_with_member("torch/include/link.h", stat.S_IFLNK | 0o777, "/etc"), "not a plain file"),
        (_with_member("torch/include/pipe.h", stat.S_IFIFO | 0o644), "not a plain file"),
        (_with_member("torch/include/c10/core/Device.h/x.h"), "cannot unpack|damaged"),
    ],
)
def test_a_hostile_or_truncated_wheel_leaves_nothing_behind(
    data: bytes, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "torch.whl"
    path.write_bytes(data)
    with pytest.raises(CiError, match=reason):
        find(path, tmp_path)
    left = [p for p in (tmp_path / "cache").rglob("*") if p.is_file() and p.suffix != ".lock"]
    assert left == [] and not (tmp_path / "evil.h").exists()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "torch.whl"
    path.write_bytes(_with_member("torch/version.py"))
    with pytest.raises(CiError, match="a member twice"):
        find(path, tmp_path)


def test_a_bomb_is_refused_before_anything_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel, "BYTES_LIMIT", 5000)
    path = tmp_path / "torch.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("torch/include/zeros.h", b"\0" * 100_000)
    with pytest.raises(CiError, match="unpacks to more than any torch"):
        find(path, tmp_path)
    assert not (tmp_path / "cache").exists()


def test_a_flipped_bit_is_found_by_the_checksum(tmp_path: Path) -> None:
    path = tmp_path / "torch.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, text in small_torch.files().items():
            archive.writestr(name, text)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"struct Device", b"struct Devise", 1))
    with pytest.raises(CiError, match=r"damaged at torch/include/c10/core/Device\.h"):
        find(path, tmp_path)
    assert not list((tmp_path / "cache/torch").glob("wheel-*"))


def test_a_wheel_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "numpy.whl"
    small_torch.wheel(path, {"numpy/__init__.py": ""})
    with pytest.raises(CiError, match="is not a wheel of torch"):
        find(path, tmp_path)


# --- the cache -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSPC, "no space left for a torch"),
        (errno.EROFS, "cannot keep a torch in .*set XDG_CACHE_HOME"),
    ],
)
def test_a_full_or_read_only_disk_is_told_and_leaves_nothing(
    code: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: object, out: object) -> None:
        raise OSError(code, os.strerror(code))

    path = tmp_path / "torch.whl"
    small_torch.wheel(path)
    monkeypatch.setattr(shutil, "copyfileobj", fail)
    with pytest.raises(CiError, match=reason):
        find(path, tmp_path)
    assert [p.name for p in (tmp_path / "cache/torch").iterdir() if p.suffix != ".lock"] == []


def test_a_cache_that_is_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "torch.whl"
    small_torch.wheel(path)
    (tmp_path / "cache").write_text("")
    with pytest.raises(CiError, match="cannot keep a torch in"):
        find(path, tmp_path)


# --- checkouts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("repository", "place"),
    [
        ("c10/core/Allocator.h", "torch/include/c10/core/Allocator.h"),
        ("aten/src/ATen/Context.h", "torch/include/ATen/Context.h"),
        ("aten/src/ATen/cuda/Atomic.cuh", "torch/include/ATen/cuda/Atomic.cuh"),
        ("torch/csrc/Stream.h", "torch/include/torch/csrc/Stream.h"),
        (
            "torch/csrc/api/include/torch/all.h",
            "torch/include/torch/csrc/api/include/torch/all.h",
        ),
        ("torch/headeronly/util/Half.h", "torch/include/torch/headeronly/util/Half.h"),
        ("torch/library.h", "torch/include/torch/library.h"),
        ("caffe2/serialize/versions.h", "torch/include/caffe2/serialize/versions.h"),
        ("torch/accelerator/__init__.py", "torch/accelerator/__init__.py"),
        ("torch/_C/_distributed_c10d.pyi", "torch/_C/_distributed_c10d.pyi"),
        ("torchgen/model.py", "torchgen/model.py"),
        (
            "aten/src/ATen/native/native_functions.yaml",
            "torchgen/packaged/ATen/native/native_functions.yaml",
        ),
        ("tools/autograd/derivatives.yaml", "torchgen/packaged/autograd/derivatives.yaml"),
        (
            "aten/src/ATen/templates/TensorBody.h",
            "torchgen/packaged/ATen/templates/TensorBody.h",
        ),
        (
            "third_party/kineto/libkineto/include/libkineto.h",
            "torch/include/kineto/libkineto.h",
        ),
    ],
)
def test_a_file_of_the_repository_has_one_place_in_the_wheel_and_back(
    repository: str, place: str
) -> None:
    assert layout.to_wheel(repository) == place
    assert layout.to_repository(place) == repository


@pytest.mark.parametrize(
    ("place", "generated"),
    [
        ("torch/include/ATen/ops/add.h", True),
        ("torch/include/ATen/ops/from_blob.h", False),
        ("torch/include/ATen/core/TensorBody.h", True),
        ("torch/include/ATen/core/TensorBase.h", False),
        ("torch/include/ATen/CPUFunctions_inl.h", True),
        ("torch/include/c10/macros/cmake_macros.h", True),
        ("torch/version.py", True),
        ("torch/_C/__init__.pyi", True),
        ("torch/_C/_distributed_c10d.pyi", False),
    ],
)
def test_what_a_build_writes_is_told_from_what_the_repository_has(
    place: str, generated: bool
) -> None:
    assert layout.is_generated(place) is generated
    assert (layout.to_repository(place) is None) is generated


@pytest.mark.parametrize("path", ["c10/core/Allocator.cpp", "docs/index.md", "test/test_ops.py"])
def test_what_no_wheel_carries_has_no_place(path: str) -> None:
    assert layout.to_wheel(path) is None


def test_every_header_and_python_file_of_the_installed_torch_is_accounted_for() -> None:
    """From the repository, generated, or of a library that PyTorch brings along."""
    root = locate(sys.executable, progress=quiet).root
    strangers = {
        path.removeprefix("torch/include/").split("/")[0]
        for path in folders.files(root)
        if not layout.is_generated(path)
        and layout.to_repository(path) is None
        and path.endswith((*layout.HEADERS, *layout.PYTHON))
    }
    assert strangers.isdisjoint({"ATen", "c10", "torch", "caffe2", "torchgen"})
    assert any(layout.is_generated(path) for path in folders.files(root))


def test_a_built_checkout_is_read_with_the_generated_files_of_its_build(tmp_path: Path) -> None:
    repository = small_torch.checkout(
        tmp_path / "pytorch", {"c10/core/Device.h": "// mine\n", "c10/core/New.h": "// new\n"}
    )
    small_torch.unpacked(repository, small_torch.files("2.14.0a0"))
    said: list[str] = []
    tree = locate(str(repository), tmp_path / "cache", said.append)
    assert tree.version == "2.14.0a0"
    headers = tree.root / "torch/include/c10/core"
    assert (headers / "Device.h").read_text() == "// mine\n"
    assert (headers / "New.h").read_text() == "// new\n"
    assert (tree.root / "torch/include/ATen/core/TensorBody.h").is_file()
    assert said == [f"{repository}: generated headers are those of its build"]


def test_a_header_that_the_checkout_no_longer_has_is_gone(tmp_path: Path) -> None:
    repository = small_torch.checkout(tmp_path / "pytorch")
    (repository / "c10/core/Allocator.h").unlink()
    small_torch.unpacked(repository, small_torch.files("2.14.0a0"))
    tree = find(repository, tmp_path)
    assert not (tree.root / "torch/include/c10/core/Allocator.h").exists()
    assert (tree.root / "torch/include/c10/macros/cmake_macros.h").is_file()


def test_the_commit_of_a_checkout_is_that_of_git(tmp_path: Path) -> None:
    repository = small_torch.checkout(tmp_path / "pytorch")
    small_torch.unpacked(repository, small_torch.files("2.14.0a0"))
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    assert find(repository, tmp_path).git_version == head


def test_a_checkout_inside_another_repository_has_no_commit(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    repository = small_torch.checkout(tmp_path / "pytorch")
    small_torch.unpacked(repository, small_torch.files("2.14.0a0"))
    assert find(repository, tmp_path).git_version is None


# --- a tree with changes ---------------------------------------------------------------------


def test_a_changed_tree_leaves_the_original_alone(packages: Path, tmp_path: Path) -> None:
    tree = find(packages, tmp_path)
    header = "torch/include/c10/core/Device.h"
    before = (packages / header).read_bytes()
    changed = linked(
        tree, {header: b"// changed\n", "torch/__init__.py": None, "torch/a/b.py": b""}
    )
    assert (changed.root / header).read_bytes() == b"// changed\n"
    assert not (changed.root / "torch/__init__.py").exists()
    assert (changed.root / "torch/a/b.py").is_file()
    assert (packages / header).read_bytes() == before and (packages / "torch/__init__.py").exists()
    assert changed.include == (changed.root / "torch/include",)
    assert (changed.root / "torch/version.py").read_bytes() == (
        packages / "torch/version.py"
    ).read_bytes()


@pytest.mark.parametrize("hard", [True, False])
def test_files_are_linked_however_the_disk_allows(
    hard: bool, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: str, link: str) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    if not hard:
        monkeypatch.setattr(os, "link", refuse)
    (packages / "torch/there.py").write_text("x = 1\n")
    (packages / "torch/link.py").symlink_to("there.py")
    tree = linked(find(packages, tmp_path), {})
    assert (tree.root / "torch/there.py").is_symlink() is not hard
    assert (tree.root / "torch/link.py").read_text() == "x = 1\n"
    assert sorted(folders.files(tree.root)) == sorted(folders.files(packages))


def test_a_folder_that_is_a_link_is_not_written_through(packages: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (packages / "torch/include/linked").symlink_to(outside)
    tree = linked(find(packages, tmp_path), {"torch/include/linked/x.h": b"kept inside"})
    assert (tree.root / "torch/include/linked/x.h").read_bytes() == b"kept inside"
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("path", ["torch/../../x.py", "/tmp/x.py", "torch//x.py"])
def test_a_change_outside_of_the_tree_is_refused(path: str, packages: Path, tmp_path: Path) -> None:
    with pytest.raises(CiError, match="leads out of the tree"):
        linked(find(packages, tmp_path), {path: b""})


def test_a_file_where_a_folder_should_be_is_told(packages: Path, tmp_path: Path) -> None:
    with pytest.raises(CiError, match="there is a file in the place of its directory"):
        linked(find(packages, tmp_path), {"torch/version.py/x.py": b""})


def test_the_wheels_of_these_tests_have_the_same_bytes_whenever_they_are_made(
    tmp_path: Path,
) -> None:
    small_torch.wheel(tmp_path / "torch.whl", ballast=8)
    with zipfile.ZipFile(tmp_path / "torch.whl") as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
