# SPDX-License-Identifier: BSD-3-Clause
"""Lies are written into copies of sources, or refused with their place."""

from __future__ import annotations

import shutil
from pathlib import Path

import mutate
import pytest

SOURCE = "csrc/runtime/x.cpp"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one source."""
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    file = tmp_path / SOURCE
    file.parent.mkdir(parents=True)
    file.write_text("int f(int n) {\n  g(n);\n  return n + 1;\n}\n")
    return tmp_path


def entry(id: str, find: str, say: str, **more: str) -> str:
    """A lie about the source."""
    fields = {"lie": "x", "file": SOURCE, "requirements": "[X-001]", **more}
    lines = [f"  {key}: {value}" for key, value in fields.items()]
    return "\n".join([f"{id}:", *lines, f"  find: |-\n    {find}", f"  say: |-\n    {say}", ""])


def loaded(folder: Path, *entries: str) -> dict[str, mutate.Mutation]:
    (folder / "lies.yaml").write_text("".join(entries))
    mutations = mutate.load(folder)
    mutate.verify(mutations.values())
    return mutations


def refusal(folder: Path, *entries: str) -> str:
    with pytest.raises(mutate.LieError) as caught:
        loaded(folder, *entries)
    return str(caught.value)


def test_a_statement_and_an_expression_are_replaced(folder: Path) -> None:
    lies = loaded(folder, entry("one", "g(n);", "g(0);"), entry("two", "n + 1", "n"))
    text = mutate.mutated((folder / SOURCE).read_text(), lies.values())
    assert 'if (puone_lies("one")) { g(0); } else { g(n); }' in text
    assert 'return (puone_lies("two") ? (n) : (n + 1));' in text


def test_what_does_not_occur_once_is_refused_with_its_place(folder: Path) -> None:
    assert f"{folder / 'lies.yaml'}:1: 'find' of no occurs 0 times" in refusal(
        folder, entry("no", "h(n);", "")
    )
    assert "occurs 2 times" in refusal(folder, entry("many", "int", ""))


def test_a_declaration_is_taken_with_the_rest_of_its_block(folder: Path) -> None:
    (folder / SOURCE).write_text("void f(int n) {\n  Lock lock(n);\n  g(n);\n}\n")
    assert "has a declaration" in refusal(folder, entry("early", "Lock lock(n);", ";"))
    loaded(folder, entry("whole", "Lock lock(n);\n      g(n);", "g(n);"))
    loaded(folder, entry("after", "g(n);", "g(0);"))


def test_lies_do_not_overlap(folder: Path) -> None:
    text = refusal(folder, entry("a", "return n + 1;", "return n;"), entry("b", "n + 1", "n"))
    assert "lies.yaml:9: b overlaps a" in text


def test_lies_about_one_place_are_told_apart(folder: Path) -> None:
    lies = loaded(folder, entry("a", "n + 1", "n"), entry("b", "n + 1", "0"))
    text = mutate.mutated((folder / SOURCE).read_text(), lies.values())
    assert 'return (puone_lies("b") ? (0) : ((puone_lies("a") ? (n) : (n + 1))));' in text


def test_ids_are_unique_over_all_files(folder: Path) -> None:
    (folder / "more.yaml").write_text(entry("a", "g(n);", ""))
    assert "a is there already" in refusal(folder, entry("a", "n + 1", "n"))


def test_unknown_keys_and_other_sources_are_refused(folder: Path) -> None:
    assert "colour" in refusal(folder, entry("a", "g(n);", "", colour="red"))
    assert "is no source" in refusal(folder, entry("a", "g(n);", "", file="csrc/hal/x.cpp"))


def test_python_is_replaced_as_it_is(folder: Path) -> None:
    module = folder / "reference_backend" / "torch_puone" / "m.py"
    module.parent.mkdir(parents=True)
    module.write_text("def f():\n    return 1\n")
    name = "reference_backend/torch_puone/m.py"
    lies = loaded(folder, entry("a", "return 1", "return 2", file=name))
    assert mutate.mutated(module.read_text(), lies.values()) == "def f():\n    return 2\n"


def test_every_lie_of_the_project_fits(tmp_path: Path) -> None:
    mutate.verify(mutate.load().values())
    shutil.copytree(mutate.HERE, tmp_path, dirs_exist_ok=True)
    assert mutate.load(tmp_path).keys() == mutate.load().keys()
