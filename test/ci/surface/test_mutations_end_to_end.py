# SPDX-License-Identifier: BSD-3-Clause
"""The PRs of RFC-0030 as patches of PyTorch's repository, judged and labelled by the command line.

Those that can stand in one patch do: a check takes half a minute of computing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from mutation import Mutation, in_repository, load, patch_of
from mutation_bench import line_of
from trees import installed_tree

from torch_backend_ci.cli import main
from torch_backend_ci.errors import Exit
from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.check import reach

RFC = {m.source.rpartition("/")[2]: m for m in load() if m.file == "rfc0030.yaml" and m.source}
TOGETHER = [RFC[pr] for pr in ("120969", "119142", "113797", "107586", "117053", "113396")]
ALONE = [RFC["114367"]]


@pytest.mark.nightly
@pytest.mark.parametrize("prs", [TOGETHER, ALONE], ids=["six PRs", "a header that is not alone"])
def test_a_patch_is_judged_and_labelled_as_its_mutations_deserve(
    prs: Sequence[Mutation], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = installed_tree().root / "torch"
    patch, files, report = (tmp_path / name for name in ("pr.diff", "files", "report.json"))
    edits = [edit for pr in prs for edit in pr.edits]
    patch.write_text(patch_of(torch.parent, edits))
    files.write_text("\n".join({in_repository(file) for pr in prs for file in pr.files}))

    judged = ["--patch", str(patch), "--format", "json", "--all", "-o", str(report)]
    assert main(["surface", "check", "--base", str(torch), *judged]) == Exit.FINDINGS

    said = json.loads(report.read_text())
    assert said["verdict"].startswith("compile_break:")
    found = {line_of(f["rule"], f["severity"], f["surface"], f["name"]) for f in said["findings"]}
    assert found == set().union(*(pr.findings for pr in prs))
    assert not [f["name"] for f in said["findings"] if f["probe"] == "disagrees"]

    capsys.readouterr()
    planned = ["label", "plan", "--files", str(files), "--findings", str(report)]
    assert main([*planned, "--format", "json"]) == Exit.OK
    labels = {label["name"] for label in json.loads(capsys.readouterr().out)["labels"]}
    surfaces = set().union(*(pr.surfaces for pr in prs))
    assert labels == {"impact: compile-break", *(f"surface: {name}" for name in surfaces)}


def test_a_header_of_kineto_is_reached_where_the_compiler_finds_it() -> None:
    graph = reach.includes(installed_tree(), {}, catalogue.load())
    assert "torch/include/kineto/IActivityProfiler.h" in graph.edges
