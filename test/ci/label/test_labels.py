# SPDX-License-Identifier: BSD-3-Clause
"""labels.yaml: as GitHub takes them, one for everything and nothing else, rules that hit files."""

from __future__ import annotations

from pathlib import Path

import bracex
import pytest
import yaml

from torch_backend_ci.errors import CiError
from torch_backend_ci.label import rules
from torch_backend_ci.label.globs import compile_glob, match
from torch_backend_ci.label.rules import Label
from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.model import Severity

ROOT = Path(__file__).parents[3]
RULES = rules.load()
CATALOGUE = catalogue.load()
PATHS = (ROOT / "test/ci/label/repository_paths.txt").read_text().split("\n")[3:-1]

# Which impact a severity has, written down a second time.
IMPACT = {
    "compile_break": "impact: compile-break",
    "silent_break": "impact: silent-break",
    "semantic": "impact: silent-break",
    "rebuild": "impact: rebuild",
    "new_capability": "impact: new-capability",
    "deprecated": "impact: none",
    "cosmetic": "impact: none",
}


def labelled(path: str) -> set[str]:
    return {label.name for label in RULES.labels if match(label.paths, path)}


def repository_path(header: str) -> str:
    return f"aten/src/{header}" if header.startswith("ATen/") else header


def test_there_is_exactly_one_label_for_every_surface_severity_and_the_reference_backend() -> None:
    surfaces = {f"surface: {surface.name}" for surface in CATALOGUE.surfaces}
    others = {"impact: not covered", "reference-backend: touched"}
    expected = surfaces | set(IMPACT.values()) | others
    names = [label.name for label in RULES.labels]
    assert set(names) == expected
    assert len(names) == len(expected)
    assert {s.value: x.name for x in RULES.labels for s in x.severities} == IMPACT
    assert set(IMPACT) == {severity.value for severity in Severity}


def test_a_surface_label_has_the_name_and_the_paths_of_its_surface() -> None:
    paths = {surface.name: surface.paths for surface in CATALOGUE.surfaces}
    for label in RULES.labels:
        assert label.name.startswith("surface: ") == (label.surface is not None)
        if label.surface:
            assert label.name == f"surface: {label.surface}"
            assert tuple(glob.text for glob in label.paths) == paths[label.surface]


def test_the_impacts_stand_worst_first() -> None:
    impacts = [label.name for label in RULES.labels if label.severities]
    assert impacts == list(dict.fromkeys(IMPACT.values()))


def test_names_and_descriptions_fit_into_github() -> None:
    for label in RULES.labels:
        assert 0 < len(label.name) <= 50
        assert 0 < len(label.description) <= 100
        assert label.description.isprintable()


def test_groups_can_be_told_apart_by_colour_and_impacts_too() -> None:
    of_group: dict[str, list[str]] = {}
    for label in RULES.labels:
        of_group.setdefault(label.name.partition(":")[0], []).append(label.colour)
    assert len(set(of_group["surface"])) == 1
    assert len(set(of_group["impact"])) == len(of_group["impact"])
    colours = [colour for group in of_group.values() for colour in set(group)]
    assert len(colours) == len(set(colours))


def contrast_on_github(colour: str) -> float:
    """WCAG's contrast of the colour and the text on it: black on light colours, else white."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = weighted(linear)
    text = 0.0 if weighted(channels) > 0.453 else 1.0  # GitHub's own threshold
    lighter, darker = max(luminance, text), min(luminance, text)
    return (lighter + 0.05) / (darker + 0.05)


def weighted(channels: list[float]) -> float:
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), channels, strict=True))


@pytest.mark.parametrize("label", RULES.labels, ids=lambda label: label.name)
def test_the_text_on_a_label_can_be_read(label: Label) -> None:
    assert contrast_on_github(label.colour) >= 4.5  # WCAG 2, level AA


@pytest.mark.parametrize("surface", CATALOGUE.surfaces, ids=lambda surface: surface.name)
def test_every_alternative_of_a_glob_names_a_file_of_pytorch(surface: catalogue.Surface) -> None:
    for glob in surface.paths:
        for alternative in bracex.expand(glob.removeprefix("!"), keep_escapes=True):
            compiled = compile_glob(alternative)
            assert any(map(compiled.names, PATHS)), f"{alternative} of {glob} names no file"


def test_the_globs_of_the_reference_backend_name_it_here_and_in_pytorch() -> None:
    here = ["csrc/runtime/guard.cpp", "csrc/hal/hal.h", "reference_backend/torch_puone/__init__.py"]
    assert all((ROOT / path).is_file() for path in here)
    openreg = [path for path in PATHS if "open_registration_extension/" in path]
    assert len(openreg) > 3
    assert all("reference-backend: touched" in labelled(path) for path in here + openreg)


@pytest.mark.parametrize("surface", CATALOGUE.surfaces, ids=lambda surface: surface.name)
def test_a_surface_is_touched_by_every_header_that_it_lists(surface: catalogue.Surface) -> None:
    chosen = [header for header in surface.headers if header in CATALOGUE.chosen]
    for header in map(repository_path, chosen):
        assert f"surface: {surface.name}" in labelled(header), header


def test_a_header_of_no_other_surface_is_touched_by_one() -> None:
    assert labelled("c10/core/Allocator.h") == {"surface: allocator"}
    assert labelled("aten/src/ATen/core/boxing/KernelFunction.cpp") == {"surface: dispatcher"}


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        ".github/labeler.yml",
        "c10/cuda/CUDAStream.h",
        "aten/src/ATen/core/boxing/KernelFunction_test.cpp",
        "docs/c10/core/Allocator.h",
        "c10/core/Allocator.h.orig",
        "C10/core/allocator.h",
        "test/test_torch.py",
        "third_party/xpu.txt",
        "a\nc10/core/Allocator.h",
    ],
)
def test_a_file_of_no_surface_gets_no_label(path: str) -> None:
    assert labelled(path) == set()


def test_most_of_pytorch_is_no_surface() -> None:
    unlabelled = [path for path in PATHS if not labelled(path)]
    assert len(unlabelled) > 200


def test_the_rules_are_refused_when_a_surface_has_no_label(tmp_path: Path) -> None:
    labels = yaml.safe_load(rules.LABELS.read_text())
    fewer = [label for label in labels if label["name"] != "surface: guard"]
    with pytest.raises(CiError, match="no label for the surfaces: guard"):
        rules.load(_written(tmp_path, fewer))


def test_the_rules_are_refused_when_a_label_is_of_no_surface(tmp_path: Path) -> None:
    labels = yaml.safe_load(rules.LABELS.read_text())
    labels.append({**labels[-1], "name": "surface: x", "surface": "x"})
    with pytest.raises(CiError, match="no surface 'x'"):
        rules.load(_written(tmp_path, labels))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": "x" * 51}, "up to 50 characters"),
        ({"description": "x" * 101}, "up to 100"),
        ({"color": "#b60205"}, "six lower-case hexadecimal"),
        ({"color": 123456}, "as text"),
        ({"name": None}, "as text"),
        ({"name": "IMPACT: rebuild"}, "more than once: impact: rebuild"),
        ({"severities": ["bad"]}, "'bad' is not a valid Severity"),
        ({"severities": ["cosmetic"]}, "exactly one label for"),
        ({"severities": 3}, "not iterable"),
        ({"paths": ["a"]}, "exactly one of"),
        ({"colour": "b60205"}, "exactly one of"),
        ({"severities": None, "paths": ["a/**b"]}, "inside a name"),
        ({"severities": None, "paths": "a"}, "a list of globs"),
        ({"severities": None, "paths": [1]}, "a list of globs"),
        ({"severities": None, "paths": 3}, "a list of globs"),
        ({"severities": None, "surface": ["guard"]}, "no surface"),
    ],
)
def test_a_wrong_label_is_refused_by_name(
    tmp_path: Path, change: dict[str, object], why: str
) -> None:
    labels = yaml.safe_load(rules.LABELS.read_text())
    first = {**labels[0], **change}
    labels[0] = {key: value for key, value in first.items() if value is not None}
    with pytest.raises(CiError, match=why):
        rules.load(_written(tmp_path, labels))


@pytest.mark.parametrize("text", ["a: [", "a: b", "- 1", "\udcff"])
def test_a_file_that_is_no_list_of_labels_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "labels.yml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(CiError, match=r"labels\.yml"):
        rules.load(file)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must have the names of surfaces"),
        ("- a", "must have the names of surfaces"),
        ("1: {title: x}", "must have the names of surfaces"),
        ("a: 1", "surface a needs a title"),
        ("a: {title: x, path: [y]}", "surface a has unknown keys: path"),
        ("a: {title: x, paths: y}", "surface a: paths must be lists of text"),
        ("a: {title: x, paths: [1]}", "surface a: paths must be lists of text"),
        ("\udcff", "decode"),
        ("a: [", "surfaces.yml"),
    ],
)
def test_a_file_that_is_no_list_of_surfaces_is_refused(tmp_path: Path, text: str, why: str) -> None:
    surfaces = tmp_path / "surfaces.yml"
    surfaces.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(CiError, match=why):
        rules.load(surfaces=surfaces)


def test_a_surface_with_a_glob_that_is_refused_is_named(tmp_path: Path) -> None:
    surfaces = tmp_path / "surfaces.yml"
    surfaces.write_text("guard: {title: x, paths: ['c10/[']}")
    with pytest.raises(CiError, match=r"'guard': the glob 'c10/\['"):
        rules.load(surfaces=surfaces)


def _written(folder: Path, labels: object) -> Path:
    file = folder / "labels.yml"
    file.write_text(yaml.safe_dump(labels))
    return file
