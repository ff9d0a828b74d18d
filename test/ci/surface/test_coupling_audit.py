# SPDX-License-Identifier: BSD-3-Clause
"""The audit of whole trees: what is read, what is named as a problem, what is reported."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from coupling_trees import PACKAGE, SOURCE, write

from torch_backend_ci import cli, schema
from torch_backend_ci.surface.coupling import audit as audits
from torch_backend_ci.surface.coupling.audit import Audit
from torch_backend_ci.surface.coupling.rules import load

SCHEMA = schema.load("coupling")
COUPLED = "import torch\ntorch.cuda.synchronize()\n"
FILES = {
    "torch/version.py": f"__version__ = '2.13.0+cpu'\ngit_version = '{'ab' * 20}'\n",
    "torch/a.py": COUPLED,
    "torch/nn/b.py": "import torch\n",
    "torch/nn/c.py": "x.is_cuda\n",
    "torch/cuda/d.py": COUPLED,
    "torch/include/ATen/e.h": "#ifdef USE_CUDA\n#endif\n",
}


def audited(root: Path) -> Audit:
    return audits.audit(root, load())


def coupling(*words: object) -> int:
    return cli.main(["surface", "coupling", *map(str, words)])


def report(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """What the command says in JSON, which is what the schema says."""
    assert coupling(*words, "--format", "json") == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, SCHEMA)
    return document


# Trees


def test_a_repository_is_read_as_one(tmp_path: Path) -> None:
    files = {
        "CMakeLists.txt": "if(USE_CUDA)\nendif()\n",
        "version.txt": "2.14.0a0\n",
        "aten/src/ATen/native/Sum.cpp": "x.is_cuda();",
        "aten/src/ATen/native/Sum.cu": "x.is_cuda();",
        "aten/src/ATen/native/cuda/Sum.cpp": "x.is_cuda();",
        "c10/core/Device.cpp": "// is_cuda\n",
        "torch/csrc/Storage.cpp": "#ifdef USE_CUDA\n#endif\n",
        "torch/a.py": COUPLED,
        "third_party/fmt/cuda.h": "kCUDA",
        "test/test_cuda.py": COUPLED,
    }
    result = audited(write(tmp_path, files, SOURCE))
    assert (result.tree.layout, result.tree.version) == ("source", "2.14.0a0")
    assert [(hit.rule, hit.file) for hit in result.hits] == [
        ("cmake.condition", "CMakeLists.txt"),
        ("cpp.is_device", "aten/src/ATen/native/Sum.cpp"),
        ("file.suffix", "aten/src/ATen/native/Sum.cu"),
        ("file.directory", "aten/src/ATen/native/cuda/Sum.cpp"),
        ("py.module", "torch/a.py"),
        ("cpp.condition", "torch/csrc/Storage.cpp"),
    ]


def test_a_package_is_the_same_from_inside_and_outside(tmp_path: Path) -> None:
    root = write(tmp_path / "site-packages", {**FILES, "other/cuda.py": COUPLED})
    outside, inside = audited(root), audited(root / "torch")
    assert outside.hits == inside.hits
    assert outside.files == inside.files
    assert outside.tree.version == inside.tree.version == "2.13.0"
    assert outside.tree.git_version == "ab" * 20


def test_two_processes_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, {**FILES, **{f"torch/m{n}.py": COUPLED for n in range(20)}})
    alone = audited(root)
    monkeypatch.setattr(audits, "CHUNK", 5)
    assert audited(root) == alone


def test_progress_counts_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audits, "CHUNK", 3)
    seen: list[tuple[int, int]] = []
    files = {f"torch/m{n}.py": "" for n in range(5)}
    audits.audit(write(tmp_path, files), load(), lambda *done: seen.append(done))
    assert seen == [(3, 7), (6, 7), (7, 7)]


# Problems


def no_python(path: Path) -> None:
    path.write_text("print 'cuda'\n")


def null_bytes(path: Path) -> None:
    path.write_bytes(b"cuda\0")


def deep(path: Path) -> None:
    path.write_text("x = " + "(" * 5000 + "cuda" + ")" * 5000)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(load().max_bytes + 1)


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (no_python, "as Python"),
        (null_bytes, "as Python"),
        (deep, "as Python"),
        (huge, "8000001 bytes"),
        (dangling, "No such file"),
        (loop, "symbolic links"),
        (pipe, "not a regular file"),
    ],
)
def test_a_file_that_cannot_be_audited_is_named(
    tmp_path: Path, make: Callable[[Path], None], problem: str
) -> None:
    root = write(tmp_path, FILES)
    make(root / "torch/odd.py")
    result = audited(root)
    assert [p.file for p in result.problems] == ["torch/odd.py"]
    assert problem in result.problems[0].problem
    assert "torch/a.py" in {hit.file for hit in result.hits}


def test_a_folder_that_leads_back_is_named_and_not_followed(tmp_path: Path) -> None:
    root = write(tmp_path, FILES)
    before = audited(root)
    (root / "torch/nn/again").symlink_to(root / "torch", target_is_directory=True)
    after = audited(root)
    assert after.hits == before.hits
    assert [p.file for p in after.problems] == ["torch/nn/again"]


def test_a_header_that_is_not_utf8_is_read_and_named(tmp_path: Path) -> None:
    root = write(tmp_path, {"torch/include/c10/x.h": b"// caf\xe9\nf(kCUDA);\n"})
    result = audited(root)
    assert [(hit.rule, hit.line) for hit in result.hits] == [("cpp.device", 2)]
    assert [(p.file, "UTF-8" in p.problem) for p in result.problems] == [
        ("torch/include/c10/x.h", True)
    ]


def test_a_python_file_in_the_encoding_that_it_declares_is_fine(tmp_path: Path) -> None:
    text = "# -*- coding: latin-1 -*-\n# caf\xe9\nx.is_cuda\n"
    result = audited(write(tmp_path, {"torch/x.py": text.encode("latin-1")}))
    assert [(hit.rule, hit.line) for hit in result.hits] == [("py.is_device", 3)]
    assert result.problems == ()


# The command


def test_json_has_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = report(capsys, "--tree", write(tmp_path, FILES), "--limit", 0)
    assert document["tree"] == {
        "layout": "package", "version": "2.13.0", "git_version": "ab" * 20,
    }  # fmt: skip
    assert document["total"] == {
        "files": 8, "vendor_files": 1, "generic_files": 7, "coupled_files": 3,
        "percent": 42.9, "hits": 3,
    }  # fmt: skip
    assert document["subsystems"]["torch/nn"]["coupled_files"] == 1
    assert [(h["file"], h["line"], h.get("replacement")) for h in document["hits"]] == [
        ("torch/a.py", 2, "torch.accelerator.synchronize()"),
        ("torch/cuda/d.py", 0, None),
        ("torch/include/ATen/e.h", 1, None),
        ("torch/nn/c.py", 1, "x.device.type == torch.accelerator.current_accelerator().type"),
    ]
    assert document["trend"] is None


def test_a_problem_is_reported_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write(tmp_path, FILES)
    no_python(root / "torch/odd.py")
    for form in ("text", "markdown", "json"):
        assert coupling("--tree", root, "--format", form) == 0
        assert "torch/odd.py" in capsys.readouterr().out


def test_the_trend_knows_no_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write(tmp_path / "old", {**FILES, "torch/gone.py": COUPLED})
    new = write(tmp_path / "new", FILES)
    (new / "torch/a.py").write_text(f"import os\n\n\n{COUPLED}torch.cuda.synchronize()\n")
    trend = report(capsys, "--tree", new, "--against", old)["trend"]
    assert trend["hits_before"] == 5
    assert [(hit["file"], hit["line"]) for hit in trend["new"]] == [("torch/a.py", 6)]
    assert [(hit["file"], hit["line"]) for hit in trend["gone"]] == [("torch/gone.py", 2)]
    assert coupling("--tree", new, "--against", old) == 0
    text = capsys.readouterr().out
    assert "1 new, 1 gone; 5 -> 5" in text
    assert "gone: torch/gone.py:2: py.module" in text
    assert coupling("--tree", new, "--against", old, "--format", "markdown") == 0
    assert "| torch (rest) | 1 | 1 | +0 |" in capsys.readouterr().out


def test_one_subsystem_can_be_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = report(capsys, "--tree", write(tmp_path, FILES), "--subsystem", "torch/nn")
    assert document["subsystem"] == "torch/nn"
    assert [hit["file"] for hit in document["hits"]] == ["torch/nn/c.py"]
    assert list(document["subsystems"]) == ["torch/nn"]


def test_text_shows_as_much_as_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert coupling("--tree", write(tmp_path, FILES), "--limit", 1) == 0
    text = capsys.readouterr().out
    assert "torch/a.py:2: py.module: torch.cuda.synchronize -> torch.accelerator" in text
    assert "torch/nn/c.py:1" not in text
    assert "... and 2 more" in text


def test_markdown_is_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert coupling("--tree", write(tmp_path, FILES), "--format", "markdown") == 0
    text = capsys.readouterr().out
    assert "# Coupling to CUDA: torch 2.13.0 (package)" in text
    assert "| `torch/a.py` | 1 |" in text
    assert "| `torch.cuda.synchronize` | `torch.accelerator.synchronize()` | 2.6 |  | 1 |" in text


def test_an_empty_torch_is_coupled_to_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = report(capsys, "--tree", write(tmp_path, {}))
    assert (document["total"]["hits"], document["total"]["percent"]) == (0, 0)


def test_the_report_is_written_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, file = write(tmp_path / "t", FILES), tmp_path / "report.md"
    assert coupling("--tree", root, "-o", file) == 0
    assert capsys.readouterr().out == ""
    assert file.read_text().startswith("Coupling to CUDA")
    assert [p.name for p in tmp_path.iterdir() if p.name != "t"] == ["report.md"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tree", "nowhere"], "is not a directory"),
        (["--tree", "empty"], "holds no torch"),
        (["--tree", "torch.txt"], "is not a directory"),
        (["--tree", "t", "--against", "empty"], "holds no torch"),
        (["--tree", "t", "--subsystem", "torch/coffee"], "no subsystem 'torch/coffee'"),
        (["--tree", "t", "-o", "nowhere/report"], "cannot write"),
        (["--tree", "t", "-o", "empty"], "cannot write"),
    ],
)
def test_bad_input_ends_with_a_message_and_no_output(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    write(tmp_path / "t", PACKAGE)
    (tmp_path / "empty").mkdir()
    (tmp_path / "torch.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert coupling(*words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ") and message in err


@pytest.mark.parametrize("words", [["--limit", "-1"], ["--vendor", "acme"], ["--format", "pdf"]])
def test_a_bad_option_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        coupling("--tree", ".", *words)
    assert end.value.code == 2
    assert words[0] in capsys.readouterr().err
