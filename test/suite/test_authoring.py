# SPDX-License-Identifier: BSD-3-Clause
"""The public interface for chapters, and the README's example of a chapter that uses it."""

from __future__ import annotations

import re
from pathlib import Path

import harness

from torch_conformance.authoring import api
from torch_conformance.spec.catalogue import load
from torch_conformance.spec.catalogue_rules import problems

README = harness.ROOT / "conformance" / "README.md"


def write_example(directory: Path) -> Path:
    """The example chapter of the README, as its files; returns the chapter."""
    _, _, section = README.read_text().partition("## Writing checks")
    (requirements,) = re.findall(r"^```yaml\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    (chapter,) = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    (directory / "requirements").mkdir(parents=True)
    (directory / "requirements" / "mychip.yaml").write_text(requirements)
    (directory / "mychip.py").write_text(chapter)
    return directory / "mychip.py"


def test_the_example_chapter_runs(tmp_path: Path) -> None:
    directory = write_example(tmp_path / "checks").parent
    run = harness.run(tmp_path, directory, "--backend=cpu")
    assert run.code == 0, run.text
    assert run.outcomes == {
        "mychip/add:itself": "pass",
        "mychip/add:negated": "pass",
        "mychip/add:double": "pass",
        "mychip/query:idle": "unsupported",
    }


def test_the_requirements_of_the_example_are_worded_as_the_suites_own(tmp_path: Path) -> None:
    directory = write_example(tmp_path / "checks").parent / "requirements"
    found = [text for text in problems(load([directory]).values()) if "mychip.example" not in text]
    assert found == []


def test_the_interface_is_what_it_says_and_the_readme_lists_it() -> None:
    assert len(set(api.__all__)) == len(api.__all__)
    assert all(hasattr(api, name) for name in api.__all__)
    _, _, table = README.read_text().partition("| of `torch_conformance.authoring.api` |")
    listed = set(re.findall(r"`(\w+)", "\n".join(re.findall(r"^\| ([^|]+) \|", table, re.M))))
    assert set(api.__all__) <= listed
