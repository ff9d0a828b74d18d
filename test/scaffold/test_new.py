# SPDX-License-Identifier: BSD-3-Clause
"""`python -m torch_puone.new` writes a whole repository under another name, or nothing."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from scaffolding import ROOT, TOOL, contents, new, written

from torch_puone.new import edits, license, sources
from torch_puone.new import names as names_of_a_backend
from torch_puone.new.names import BadName, check_name

OPTIONS = [
    (),
    ("--without-distributed",),
    ("--without-compile",),
    ("--without-distributed", "--without-compile"),
]
PARTS = {
    "--without-distributed": ["csrc/distributed", "python/torch_mychip/distributed.py"],
    "--without-compile": ["csrc/extension", "python/torch_mychip/_inductor"],
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("scaffold") / "mychip")


@pytest.fixture(scope="module", params=OPTIONS, ids=lambda options: " ".join(options) or "all")
def variant(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, tuple[str, ...]]:
    """A repository, and the options that it was made with."""
    directory = tmp_path_factory.mktemp("variant") / "mychip"
    return written(directory, *request.param), request.param


# ---- what is written ----


def test_it_has_what_a_repository_needs(repository: Path) -> None:
    needed = """
        README.md LICENSE PROVENANCE.md CMakeLists.txt Makefile pyproject.toml .gitignore
        .github/workflows/conformance.yml ci/mychip.yaml ci/expectations.yaml test/test_backend.py
        cmake/torch.cmake cmake/mychip-config.cmake csrc/hal/hal.h csrc/drivers/host/driver.h
        csrc/runtime/guard.cpp csrc/aten/core/fallback.cpp csrc/aten/pointwise/relu.cpp
        csrc/bindings/module.cpp python/torch_mychip/__init__.py python/torch-stubs/mychip.pyi
        python/build_backend.py
    """
    assert [path for path in needed.split() if not (repository / path).is_file()] == []


def test_only_the_note_of_provenance_has_the_old_name(
    variant: tuple[Path, tuple[str, ...]],
) -> None:
    directory, _ = variant
    named = [
        path
        for path, content in contents(directory).items()
        if re.search(rb"puone|pccl", content, re.IGNORECASE) or "puone" in path.lower()
    ]
    assert named == ["PROVENANCE.md"]


def test_no_mark_of_a_quotation_is_left(repository: Path) -> None:
    marked = [p for p, c in contents(repository).items() if re.search(rb"\[(quote|end): ", c)]
    assert marked == []


def test_a_file_that_a_text_names_is_there_or_is_of_the_other_project(repository: Path) -> None:
    """The note of provenance says of two directories where they are."""
    made = {"python/torch_mychip/_build.py"}
    path = re.compile(r"(?<![\w/])(?:csrc|python|cmake|ci|docs|test)/[\w./]*\w\.\w+")
    named = {
        name
        for file, content in contents(repository).items()
        if file != "PROVENANCE.md"
        for name in path.findall(content.decode())
        if not (repository / name).exists()
    }
    assert {name for name in named if not name.startswith(("csrc/kernels/", "docs/"))} == made
    note = (repository / "PROVENANCE.md").read_text()
    assert "`csrc/kernels/`" in note and "`docs/`" in note


def test_every_module_that_is_imported_is_there(variant: tuple[Path, tuple[str, ...]]) -> None:
    directory, _ = variant
    missing = set()
    for file in (directory / "python/torch_mychip").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level and node.module:
                module = file.parents[node.level - 1] / node.module.replace(".", "/")
                if not module.is_dir() and not any(
                    module.with_suffix(suffix).is_file() for suffix in (".py", ".pyi")
                ):
                    missing.add((file.name, node.module))
    assert missing == set()


def test_every_package_and_entry_point_of_the_distribution_is_there(
    variant: tuple[Path, tuple[str, ...]],
) -> None:
    """One that is missing ends every run of pytest, or every `import torch`, with an error."""
    directory, _ = variant
    text = (directory / "pyproject.toml").read_text()
    packages = re.findall(r'^  "(python/[\w-]+)",$', text, re.MULTILINE)
    assert "python/torch_mychip" in packages
    assert [path for path in packages if not (directory / path).is_dir()] == []
    entries = re.findall(r'^\w+ = "([\w.]+)(?::\w+)?"$', text, re.MULTILINE)
    points = [module for module in entries if "mychip" in module]
    assert "torch_mychip" in points
    assert [point for point in points if not _is_module(directory / "python", point)] == []


def _is_module(directory: Path, name: str) -> bool:
    path = directory / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_no_name_is_left_without_a_use_or_a_definition(
    variant: tuple[Path, tuple[str, ...]],
) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--quiet", "--select=F"]
    # The stub for type checkers takes all names of the package.
    folders = [str(variant[0] / "python"), str(variant[0] / "test"), "--ignore=F403"]
    done = subprocess.run(
        [*command, *folders],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_every_header_that_is_included_is_there(variant: tuple[Path, tuple[str, ...]]) -> None:
    directory, _ = variant
    # The last one is for compilers of devices: csrc/kernels/target.h.
    generated = re.compile(
        r"kernels/args(/\w+)?\.h|runtime/kernels\.h|aten/\w+/\w+_ops\.h|simt_dialect\.h"
    )
    missing = {
        (path, header)
        for path, content in contents(directory).items()
        if path.endswith((".h", ".cpp"))
        for header in re.findall(r'^#include "([^"]+\.h)"', content.decode(), re.MULTILINE)
        if not generated.fullmatch(header) and not (directory / "csrc" / header).is_file()
    }
    assert missing == set()


def test_a_part_that_is_not_wanted_is_not_there(variant: tuple[Path, tuple[str, ...]]) -> None:
    directory, options = variant
    for option, paths in PARTS.items():
        for path in paths:
            assert (directory / path).exists() is (option not in options), path


def test_the_name_is_everywhere_in_its_form(tmp_path: Path) -> None:
    directory = written(tmp_path / "x", name="my_chip")
    read = {path: content.decode() for path, content in contents(directory).items()}
    assert "namespace my_chip {" in read["csrc/runtime/guard.cpp"]
    assert 'register_privateuse1_backend("my_chip")' in read["csrc/runtime/registration.cpp"]
    assert "MY_CHIP_CHECK(" in read["csrc/runtime/event.cpp"]
    assert "class MyChipScheduling" in read["python/torch_my_chip/_inductor/scheduling.py"]
    assert 'my_chip_ccl = "torch_my_chip._registration' in read["pyproject.toml"]
    assert yaml.safe_load(read["ci/my_chip.yaml"])["device_type"] == "my_chip"


def test_the_licence_of_what_is_added_stands_beside_that_of_the_sources(tmp_path: Path) -> None:
    directory = written(tmp_path / "x", "--license", "Apache-2.0")
    assert 'license = "Apache-2.0 AND BSD-3-Clause"' in (directory / "pyproject.toml").read_text()
    text = (directory / "LICENSE").read_text()
    assert "under Apache-2.0" in text and "Redistribution and use in source" in text
    assert "the torch-puone contributors" in (directory / "PROVENANCE.md").read_text()


def test_the_same_command_writes_the_same_files(repository: Path, tmp_path: Path) -> None:
    assert contents(written(tmp_path / "again")) == contents(repository)


# ---- names ----

GOOD = ["mychip", "zz", "my_chip", "acme_npu"]
BAD = {
    "chip2": "no digits",
    "MyChip": "lower-case letters",
    "my-chip": "lower-case letters",
    "_chip": "lower-case letters",
    "my__chip": "lower-case letters",
    "x": "2 to 32 letters",
    "x" * 33: "2 to 32 letters",
    "cuda": "PyTorch has a device of this name",
    "privateuseone": "PyTorch has a device of this name",
    "meta": "PyTorch has a device of this name",
    "class": "keyword",
    "lambda": "keyword",
    "torch": "library or namespace",
    "puone": "made from",
    "stream": "the sources that yours are made from use stream",
    "sanitizer": "the sources that yours are made from use sanitizer",
    "host": "sources that yours are made from use host for something else",
    "": "no letters",
    " ": "no letters",
    "my chip": "white space",
    "nn": "PyTorch has torch.nn for something else",
    "train": "has an attribute of this name",
}


@pytest.fixture(scope="module")
def identifiers() -> set[str]:
    return sources.identifiers(ROOT)


@pytest.mark.parametrize("name", GOOD)
def test_a_name_that_can_be_a_device_is_taken(name: str, identifiers: set[str]) -> None:
    check_name(name, identifiers)


@pytest.mark.parametrize("name", BAD)
def test_another_name_is_refused_with_the_reason(name: str, identifiers: set[str]) -> None:
    with pytest.raises(BadName, match=BAD[name]):
        check_name(name, identifiers)


@pytest.mark.parametrize("owner", [torch, torch.Tensor, torch.nn.Module, torch.UntypedStorage])
def test_what_the_installed_torch_has_is_refused_without_torch(owner: object) -> None:
    """`torch._register_device_module` and the methods of a device would raise for these."""
    names = {name for name in dir(owner) if re.fullmatch("[a-z]+(_[a-z]+)*", name)}
    free = {name for name in names if not names_of_a_backend._reason_against(name)}
    assert len(names) > 30 and free == set()


def test_what_a_newer_torch_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "mychip", object(), raising=False)
    with pytest.raises(BadName, match=re.escape(f"PyTorch {torch.__version__} has torch.mychip")):
        check_name("mychip", [])


def test_a_bad_name_writes_nothing_and_is_one_line(tmp_path: Path) -> None:
    done = new("cuda", "--out", tmp_path / "x")
    assert done.returncode == 2
    assert done.stderr == (
        "error: 'cuda' cannot be the name of a backend: PyTorch has a device of this name\n"
    )
    assert list(tmp_path.iterdir()) == []


# ---- directories and options ----


def test_a_directory_with_something_in_it_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "work").write_text("mine")
    done = new("mychip", "--out", tmp_path / "x")
    assert done.returncode == 2
    assert "x is not empty; nothing was written" in done.stderr
    assert contents(tmp_path) == {"x/work": b"mine"}


def test_a_file_in_the_place_of_the_directory_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    done = new("mychip", "--out", tmp_path / "x")
    assert done.returncode == 2 and "is not a directory" in done.stderr
    assert contents(tmp_path) == {"x": b"mine"}


def test_an_empty_directory_and_one_that_is_not_there_are_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    written(tmp_path / "empty")
    written(tmp_path / "a" / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "empty"]


def test_the_directory_that_one_is_in_and_one_with_a_git_repository_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("mine")
    written(Path("."))
    assert (tmp_path / ".git" / "HEAD").read_text() == "mine"
    assert (tmp_path / "CMakeLists.txt").is_file() and not list(tmp_path.glob(".new-*"))


def test_a_link_to_an_empty_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    written(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real/CMakeLists.txt").is_file()


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("", "--out is empty"),
        ("nothing", "nothing is a link to nowhere, which is not there"),
        ("file/x", "file, in which x would be, is not a directory"),
        ("/proc/x", "/proc/x cannot be written: No such file or directory"),
    ],
)
def test_a_place_that_cannot_be_used_is_one_line(
    out: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nothing").symlink_to("nowhere")
    (tmp_path / "file").touch()
    done = new("mychip", "--out", out)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ") and reason in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"file", "nothing"}


def test_the_command_to_go_on_with_can_be_copied(tmp_path: Path) -> None:
    done = new("mychip", "--out", tmp_path / "my chip")
    assert f"  cd '{tmp_path}/my chip' && make build\n" in done.stdout


def test_what_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    tool = tmp_path / "checkout" / TOOL.relative_to(ROOT)
    shutil.copytree(TOOL, tool, ignore=shutil.ignore_patterns("__pycache__"))
    for path in sources.paths(ROOT):
        (tmp_path / "checkout" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / "checkout" / path)
    table = tmp_path / "checkout/pyproject.toml"
    table.write_text(table.read_text().replace("[tool.pytest.ini_options]", ""))
    done = new("mychip", "--out", tmp_path / "x", tool=tool)
    assert done.returncode != 0 and "pyproject.toml has no lines from" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["checkout"]


@pytest.mark.parametrize("license", ["", "GPL 3", "MIT\nX", "a; b"])
def test_a_licence_that_is_no_spdx_expression_is_refused(license: str, tmp_path: Path) -> None:
    done = new("mychip", "--out", tmp_path / "x", "--license", license)
    assert done.returncode == 2 and "SPDX expression" in done.stderr


@pytest.mark.parametrize(
    ("given", "spelled"),
    [
        ("mit", "MIT"),
        ("apache-2.0 or mit", "Apache-2.0 OR MIT"),
        ("LicenseRef-Proprietary", "LicenseRef-Proprietary"),
    ],
)
def test_a_licence_is_spelled_as_spdx_does(given: str, spelled: str) -> None:
    assert license.expression(given) == spelled


@pytest.mark.parametrize("given", ["Apache2", "Proprietary"])
def test_a_licence_that_spdx_does_not_know_is_refused_with_a_hint(given: str) -> None:
    with pytest.raises(license.BadLicense, match="LicenseRef-Proprietary"):
        license.expression(given)


def test_a_choice_of_licences_stands_in_parentheses(tmp_path: Path) -> None:
    directory = written(tmp_path / "x", "--license", "Apache-2.0 OR MIT")
    text = (directory / "pyproject.toml").read_text()
    assert 'license = "(Apache-2.0 OR MIT) AND BSD-3-Clause"' in text


def test_help_teaches() -> None:
    done = new("--help")
    assert done.returncode == 0
    for option in ("out", "license", "without-distributed", "without-compile", "version"):
        assert f"--{option}" in done.stdout
    assert "torch_mychip" in done.stdout


def test_version_is_that_of_the_project() -> None:
    from torch_puone import __version__

    assert new("--version").stdout == f"torch-puone {__version__}\n"


@pytest.mark.nightly
def test_the_module_is_the_same_command() -> None:
    command = [sys.executable, "-m", "torch_puone.new", "--help"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == new("--help").stdout


# ---- edits ----


@pytest.mark.parametrize(
    "edit", [*edits.ALWAYS, *(e for part in edits.OPTIONAL for e in part.edits)], ids=str
)
def test_an_edit_whose_text_is_gone_is_an_error(edit: edits.Edit | edits.Cut) -> None:
    with pytest.raises(edits.EditError, match=re.escape(edit.path)):
        edit.apply("something else\n")


@pytest.mark.parametrize("part", edits.OPTIONAL, ids=lambda part: part.name)
def test_every_pattern_of_a_part_matches_a_file(part: edits.Part) -> None:
    paths = sources.paths(ROOT)
    for pattern in part.files:
        only = edits.Part(part.name, part.what, (pattern,))
        assert any(edits.left_out(path, [only]) for path in paths), pattern


# ---- the build, as far as it is cheap ----


def configured(directory: Path, build: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The finished cmake."""
    cmake = shutil.which("cmake")
    assert cmake
    command = [cmake, "-S", str(directory), "-B", str(build), "-G", "Ninja"]
    return subprocess.run([*command, *options], capture_output=True, text=True)


@pytest.mark.nightly
def test_every_variant_configures(variant: tuple[Path, tuple[str, ...]], tmp_path: Path) -> None:
    directory, options = variant
    done = configured(directory, tmp_path / "build", f"-DPython_EXECUTABLE={sys.executable}")
    assert done.returncode == 0, done.stderr
    ninja = (tmp_path / "build/build.ninja").read_text()
    assert "libtorch_mychip.so" in ninja and "libmychip_host.so" in ninja
    assert ("_distributed." in ninja) is ("--without-distributed" not in options)


@pytest.mark.nightly
def test_the_driver_builds_by_itself(repository: Path, tmp_path: Path) -> None:
    build = tmp_path / "build"
    done = configured(
        repository / "csrc/drivers",
        build,
        "-DCMAKE_BUILD_TYPE=Debug",
        f"-DPython_EXECUTABLE={sys.executable}",
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["cmake", "--build", str(build)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "warning" not in done.stdout
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", str(build / "lib/libmychip_host.so")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert [line.split()[0] for line in symbols.splitlines()] == ["mychip_hal_get"]
