# SPDX-License-Identifier: BSD-3-Clause
"""A PR is judged on a pinned torch: what it breaks is a finding, what cannot be judged is said.

On a torch of a few files and a catalogue that fits it, so that a check takes a moment.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small_torch
from declarations import function

from torch_backend_ci import cli
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.surface import catalogue as catalogues
from torch_backend_ci.surface import probe, snapshot
from torch_backend_ci.surface.check import change, coverage, judge, opinion, reach, reading, stakes
from torch_backend_ci.surface.model import Domain, Finding, Severity, Torch
from torch_backend_ci.surface.probe import agreement
from torch_backend_ci.surface.report import Report, markdown, sarif, text
from torch_backend_ci.surface.report import json as as_json
from torch_backend_ci.surface.verbs import check as verb
from torch_backend_ci.surface.verbs.diff import conclude
from torch_backend_ci.torch_tree import TorchTree, locate

SURFACES = """
allocator:
  title: memory
  headers: [c10/core/Allocator.h]
  symbols: [c10::Allocator]
device:
  title: devices
  headers: [c10/core/Device.h]
  symbols: [c10::Device]
accelerator:
  title: accelerators
  python: [torch.accelerator]
operators:
  title: operators
device-module:
  title: the module of a device
build:
  title: headers and language
"""


def quiet(line: str) -> None:
    """Show no progress."""


ALLOCATOR = "c10/core/Allocator.h"
DEVICE = "c10/core/Device.h"
ACCELERATOR = "torch/accelerator/__init__.py"
OPERATORS = "aten/src/ATen/native/native_functions.yaml"


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> catalogues.Catalogue:
    path = tmp_path_factory.mktemp("surfaces") / "surfaces.yml"
    path.write_text(SURFACES)
    return catalogues.load(path)


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory, surfaces: catalogues.Catalogue) -> judge.Base:
    root = small_torch.unpacked(tmp_path_factory.mktemp("pinned"))
    tree = locate(str(root), progress=quiet)
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(snapshot, "in_processes", _in_turn)
        taken = snapshot.take(tree, catalogue=surfaces, progress=quiet)
    return judge.Base(tree, lambda: taken, tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """And without the probe, which needs all of torch."""
    monkeypatch.setattr(snapshot, "in_processes", _in_turn)
    monkeypatch.setattr(probe, "run", _no_probe)


def _no_probe(tree: TorchTree, **asked: Any) -> None:
    raise CiError("the probe is not asked here")


def _in_turn(tasks: Mapping[str, Callable[[], Any]]) -> Any:
    for name, task in tasks.items():
        yield name, task()


@pytest.fixture
def check(pinned: judge.Base, surfaces: catalogues.Catalogue) -> Callable[[str], Report]:
    def judged(patch: str) -> Report:
        changed = change.of_patch(pinned.tree, patch.encode())
        return judge.judge(pinned, changed, "the patch", surfaces, quiet)

    return judged


def edit(path: str, old: str, new: str) -> str:
    """A patch that replaces one line."""
    return f"--- a/{path}\n+++ b/{path}\n" + _hunk(path, old, new)


def _hunk(path: str, old: str, new: str) -> str:
    lines = SOURCES[path].splitlines()
    at = next(n for n, line in enumerate(lines) if old in line)
    before, after = lines[max(0, at - 3) : at], lines[at + 1 : at + 4]
    count = len(before) + 1 + len(after)
    context = [[f" {line}" for line in part] for part in (before, after)]
    changed = [f"-{lines[at]}", f"+{lines[at].replace(old, new)}"]
    body = "\n".join([*context[0], *changed, *context[1]])
    return f"@@ -{at + 1 - len(before)},{count} +{at + 1 - len(before)},{count} @@\n{body}\n"


SOURCES = {
    ALLOCATOR: small_torch.ALLOCATOR,
    DEVICE: small_torch.DEVICE,
    ACCELERATOR: small_torch.files()[ACCELERATOR],
    OPERATORS: small_torch.OPERATORS,
}
CONST = edit(ALLOCATOR, "(size_t n) = 0", "(size_t n) const = 0")

Check = Callable[[str], Report]


def rules(report: Report) -> list[tuple[str, str]]:
    return [(f.rule, f.name) for f in report.findings if f.severity is not Severity.COSMETIC]


# --- findings --------------------------------------------------------------------------------


def test_a_changed_virtual_is_a_compile_break_and_the_verdict_says_so(check: Check) -> None:
    report = check(CONST)
    assert rules(report) == [("virtual_signature_changed", "c10::Allocator::allocate")]
    assert report.verdict == "compile_break: 1 finding in allocator"
    assert text.render(report).splitlines()[0] == report.verdict
    assert json.loads(as_json.render(report))["verdict"] == report.verdict
    assert f"**{markdown.text(report.verdict)}**" in markdown.render(report)


def test_lines_are_those_of_the_repository_and_not_of_the_wheel(check: Check) -> None:
    (lines,) = (
        (f.before.line, f.after.line) for f in check(CONST).findings if f.before and f.after
    )
    line = 1 + small_torch.ALLOCATOR.splitlines().index("  virtual void* allocate(size_t n) = 0;")
    assert lines == (line, line)


def test_only_the_domains_that_the_change_touches_are_read(check: Check) -> None:
    assert {f.domain for f in check(CONST).findings} == {Domain.CPP}
    python = check(edit(ACCELERATOR, "current_device_index", "current_index"))
    assert ("function_removed", "torch.accelerator.current_device_index") in rules(python)
    operators = check(edit(OPERATORS, "Scalar alpha=1", "Scalar alpha=2"))
    assert {f.domain for f in operators.findings} == {Domain.OPERATOR}


def test_a_comment_changes_nothing(check: Check) -> None:
    report = check(edit(ALLOCATOR, "#pragma once", "#pragma once // indeed"))
    assert report.findings == ()
    assert (
        report.verdict == "none: 1 file judged, no declaration that a backend is built on changes"
    )


def test_a_change_that_no_surface_reads_ends_without_reading_anything(
    pinned: judge.Base, surfaces: catalogues.Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "in_processes", None)
    patch = edit(ALLOCATOR, "#pragma once", "//").replace(ALLOCATOR, "c10/core/Allocator.cpp")
    changed = change.of_patch(pinned.tree, patch.encode())
    base = judge.Base(pinned.tree, lambda: pytest.fail("the base was read"), pinned.cache)
    report = judge.judge(base, changed, "the patch", surfaces, quiet)
    assert report.verdict == "not_covered: 1 file not looked at"
    assert report.notes == ("Not judged, not in a wheel: c10/core/Allocator.cpp.",)
    assert report.not_covered == ("c10/core/Allocator.cpp",)


NEW = "--- /dev/null\n+++ b/{}\n@@ -0,0 +1 @@\n+{}\n"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("c10/core/New.h", "namespace c10 { struct New; }"),
        ("torch/nn/new.py", "def new(): ..."),
        ("torchgen/new.py", "def new(): ..."),
        ("tools/autograd/derivatives.yaml", "- name: new"),
    ],
)
def test_a_file_that_no_surface_lists_is_not_covered_and_never_none(
    path: str, line: str, check: Check
) -> None:
    report = check(NEW.format(path, line))
    assert report.not_covered == (path,)
    assert report.verdict == "not_covered: 1 file not looked at"
    assert f"Not covered, no surface lists it: {path}." in report.notes
    assert json.loads(as_json.render(report))["not_covered"] == [path]
    assert "no finding, 1 file not covered" in text.render(report)


def test_beside_a_covered_file_one_that_is_not_takes_the_none_away(check: Check) -> None:
    report = check(
        edit(ALLOCATOR, "#pragma once", "#pragma once // indeed")
        + NEW.format("c10/core/New.h", "x")
    )
    assert report.verdict == "not_covered: 1 file not looked at, and none in 1 file judged"
    worse = check(CONST + NEW.format("c10/core/New.h", "x"))
    assert worse.verdict == "compile_break: 1 finding in allocator"
    assert worse.not_covered == ("c10/core/New.h",)


def test_a_change_of_documents_and_tests_only_is_none(check: Check) -> None:
    report = check(NEW.format("docs/x.md", "x") + NEW.format("test/test_new.py", "x"))
    assert report.verdict == "none: nothing to judge"
    assert report.not_covered == ()


def test_a_private_helper_beside_listed_names_is_not_covered_where_its_shape_changes(
    check: Check,
) -> None:
    index = SOURCES[ACCELERATOR].splitlines()
    patch = (
        f"--- a/{ACCELERATOR}\n+++ b/{ACCELERATOR}\n@@ -{len(index)},1 +{len(index)},3 @@\n"
        f" {index[-1]}\n+def _helper(x):\n+    return x\n"
    )
    report = check(patch)
    assert report.verdict.startswith("not_covered")
    assert f"Not covered, no surface lists _helper: {ACCELERATOR}." in report.notes


def test_the_body_of_an_unlisted_function_declares_nothing() -> None:
    before = b"def _f(x):\n    return x\nclass C:\n    def m(self): ...\n"
    body = before.replace(b"return x", b"return x + 1").replace(b"...", b"pass")
    assert coverage._shapes(before) == coverage._shapes(body)
    for old, new in ((b"_f(x)", b"_f(x, y)"), (b"m(self)", b"m(self, *a)")):
        assert coverage._shapes(before) != coverage._shapes(before.replace(old, new))


def test_the_exit_status_tells_not_covered_from_nothing_found(
    pinned: judge.Base, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report(Torch("1", None), Torch("2", None), (), not_covered=("c10/core/New.h",))
    arguments = argparse.Namespace(
        surface=[], all=False, whole=False, format="text", output=None, fail_on="compile_break"
    )
    assert int(conclude(report, arguments)) == 3
    arguments.fail_on = "never"
    assert conclude(report, arguments) == Exit.OK


def deletion(path: str) -> str:
    """A patch that deletes a file."""
    lines = SOURCES[path].splitlines()
    body = "\n".join(f"-{line}" for line in lines)
    return f"--- a/{path}\n+++ /dev/null\n@@ -1,{len(lines)} +0,0 @@\n{body}\n"


def test_a_deleted_header_is_gone_with_what_it_declares(check: Check) -> None:
    assert set(rules(check(deletion(ALLOCATOR)))) >= {
        ("header_removed", ALLOCATOR),
        ("class_removed", "c10::Allocator"),
    }


def test_a_deleted_header_that_another_includes_breaks_it(check: Check) -> None:
    found = rules(check(deletion(DEVICE)))
    assert {name for rule, name in found if rule.startswith("header_")} >= {ALLOCATOR}


def test_a_new_header_that_is_included_is_read(check: Check) -> None:
    added = (
        "--- /dev/null\n+++ b/c10/core/New.h\n@@ -0,0 +1 @@\n+namespace c10 { using N = int; }\n"
    )
    include = edit(ALLOCATOR, "#include <cstddef>", "#include <c10/core/New.h>")
    report = check(added + include + edit(ALLOCATOR, "(size_t n) = 0", "(N n) = 0"))
    assert ("virtual_signature_changed", "c10::Allocator::allocate") in rules(report)


# --- what the change makes unreadable --------------------------------------------------------


def test_a_second_opinion_that_cannot_be_had_is_told_and_takes_nothing_away(check: Check) -> None:
    report = check(CONST)
    assert "No second opinion: the probe is not asked here." in report.notes
    assert [f.probe for f in report.findings] == [None]


def test_a_header_that_no_longer_compiles_is_a_finding_with_the_compilers_words(
    check: Check,
) -> None:
    report = check(edit(DEVICE, "int index = 0;", "Missing index;"))
    (finding,) = report.findings
    assert (finding.rule, finding.name) == ("header_not_alone", DEVICE)
    assert "Missing" in finding.message
    assert report.verdict == "compile_break: 1 finding in device"
    assert set(report.not_compared) == {Domain.CPP, Domain.HEADER}


def test_the_headers_beside_a_broken_one_are_still_compared(check: Check) -> None:
    broken = edit(ALLOCATOR, "void* allocate", "Missing* allocate")
    report = check(broken + edit(DEVICE, "int index = 0;", "long index = 0;"))
    assert set(rules(report)) >= {
        ("header_not_alone", ALLOCATOR),
        ("field_type_changed", "c10::Device::index"),
    }
    assert not any(f.name.startswith("c10::Allocator") for f in report.findings)
    assert f"Only their compiling was judged, not what they declare: {ALLOCATOR}." in report.notes


def test_an_include_of_a_header_that_is_not_shipped_is_a_finding(check: Check) -> None:
    report = check(edit(ALLOCATOR, "#include <cstddef>", "#include <nlohmann/json.hpp>"))
    assert ("header_not_alone", ALLOCATOR) in rules(report)


def test_a_python_file_that_is_no_python_any_more_is_a_finding(check: Check) -> None:
    report = check(edit(ACCELERATOR, "-> int:", "-> int"))
    assert rules(report) == [("file_unreadable", ACCELERATOR)]
    assert report.findings[0].surface == "accelerator"
    assert Domain.PYTHON in report.not_compared
    assert json.loads(sarif.render(report))["runs"][0]["results"][0]["ruleId"].endswith(
        "file_unreadable"
    )


def test_operators_that_are_no_yaml_any_more_are_a_finding(check: Check) -> None:
    report = check(edit(OPERATORS, "- func: add", "- func: [add"))
    ((rule, name),) = rules(report)
    assert rule == "file_unreadable" and name.endswith("native_functions.yaml")


def test_what_was_not_at_stake_and_differs_makes_a_check_read_everything(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = check(CONST)
    guess = stakes.Stakes(frozenset(), frozenset(), frozenset({f"torch/include/{ALLOCATOR}"}))
    monkeypatch.setattr(stakes, "at_stake", lambda *_: guess)
    assert check(CONST) == told and told.verdict.startswith("compile_break: 1 finding")


@pytest.mark.parametrize(
    ("before", "after", "anew"),
    [
        ("const torch::jit::List<int> &", "const c10::List<int> &", True),
        ("const c10::ArrayRef<long> &", "const c10::ArrayRef<c10::SymInt> &", False),
    ],
)
def test_a_type_of_the_same_name_in_another_scope_may_be_due_to_the_other_headers(
    before: str, after: str, anew: bool
) -> None:
    found = [function("at::f", before), function("at::f", after)]
    assert reading._resolved_anew(found) is anew


def test_a_line_of_the_probe_that_no_finding_explains_makes_a_check_read_everything(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = check(CONST).findings
    asked: list[object] = []

    def weighed(found: list[Finding], parts: object) -> tuple[list[Finding], str]:
        asked.append(parts)
        return ([replace(told[0], rule=agreement.RULE)] if len(asked) == 1 else found), ""

    monkeypatch.setattr(opinion, "weighed", weighed)
    assert check(CONST).findings == told and len(asked) == 2


def test_a_check_reads_all_headers_only_if_it_cannot_tell_what_is_at_stake(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "torch_backend_ci.surface.extract.cpp.extract", lambda *_, **__: pytest.fail("all read")
    )
    assert check(CONST).verdict.startswith("compile_break: 1 finding")
    with pytest.raises(pytest.fail.Exception, match="all read"):
        check(edit(DEVICE, "namespace c10 {", "namespace more {"))


def test_an_error_of_the_environment_stays_one(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_compiler(*_: object, **__: object) -> None:
        raise CiError("reading C++ needs the standard headers of g++, and it does not run")

    for name in ("extract", "extract_part"):
        monkeypatch.setattr(f"torch_backend_ci.surface.extract.cpp.{name}", no_compiler)
    with pytest.raises(CiError, match="needs the standard headers"):
        check(CONST)


# --- what cannot be applied or judged --------------------------------------------------------


def test_a_conflict_names_file_and_hunk(check: Check) -> None:
    patch = CONST.replace("-  virtual void* allocate", "-  virtual int* allocate")
    with pytest.raises(CiError) as caught:
        check(patch)
    assert str(caught.value) == (
        "the patch does not apply on torch 2.13.0:\n"
        "  c10/core/Allocator.h: hunk 1 does not fit\n"
        "take a base nearer to the PR"
    )


def test_a_conflict_in_a_file_that_no_surface_reads_does_not_matter(check: Check) -> None:
    patch = edit(ALLOCATOR, "#pragma once", "//").replace(ALLOCATOR, "c10/core/Unlisted.h")
    report = check(patch + CONST)
    assert report.verdict.startswith("compile_break")
    assert any("there is no such file; no surface reads it" in note for note in report.notes)
    assert report.not_covered == ("c10/core/Unlisted.h",)


def test_adding_a_file_that_is_there_is_a_conflict(check: Check) -> None:
    with pytest.raises(CiError, match="which is there already"):
        check(f"--- /dev/null\n+++ b/{DEVICE}\n@@ -0,0 +1 @@\n+x\n")


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        (
            "diff --git a/aten/src/ATen/templates/TensorBody.h b/aten/src/ATen/templates/TensorBody"
            ".h\nindex 1..2 100644\n",
            "a build writes other files from it: needs a build",
        ),
        (f"Binary files a/{DEVICE} and b/{DEVICE} differ\n", "binary"),
        (
            "diff --git a/c10/core/L.h b/c10/core/L.h\nnew file mode 120000\n--- /dev/null\n"
            "+++ b/c10/core/L.h\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n",
            "a symbolic link",
        ),
        ("Submodule third_party/kineto 0123456..89abcde:\n", "a submodule"),
        ("diff --git a/docs/x.md b/docs/x.md\nindex 1..2 100644\n", "not in a wheel"),
        (
            "diff --git a/caffe2/x/y.h b/caffe2/x/y.h\nindex 1..2 100644\n",
            "torch 2.13.0 installs no header of that directory",
        ),
    ],
)
def test_what_cannot_be_judged_is_listed_with_its_reason(
    patch: str, reason: str, check: Check
) -> None:
    (note,) = check(patch).notes
    assert note.startswith(f"Not judged, {reason}: ")


def test_a_patch_is_for_the_header_within_the_guard_of_the_wheel(pinned: judge.Base) -> None:
    changed = change.of_patch(pinned.tree, CONST.encode())
    before = (pinned.tree.root / "torch/include/c10/core/Allocator.h").read_text()
    after = (changed.files["torch/include/c10/core/Allocator.h"] or b"").decode()
    assert after == before.replace("(size_t n) = 0", "(size_t n) const = 0")


def test_a_rename_moves_and_a_copy_does_not(pinned: judge.Base) -> None:
    head = f"diff --git a/{DEVICE} b/c10/core/D.h\nsimilarity index 100%\n"
    old, new = f"torch/include/{DEVICE}", "torch/include/c10/core/D.h"
    for word, kept in (("rename", False), ("copy", True)):
        patch = f"{head}{word} from {DEVICE}\n{word} to c10/core/D.h\n"
        files = change.of_patch(pinned.tree, patch.encode()).files
        assert files[new] == (pinned.tree.root / old).read_bytes()
        assert (old not in files) is kept


def test_the_documented_patch_fits_the_installed_torch() -> None:
    patch = Path(__file__).parents[3] / "docs/surface/examples/const-allocate.diff"
    changed = change.of_patch(locate(sys.executable, progress=quiet), patch.read_bytes())
    assert len(changed.files) == 3 and not changed.conflicts and not changed.unjudged


# --- a checkout instead of a patch -----------------------------------------------------------


def test_a_checkout_is_compared_file_by_file_with_the_pin(
    pinned: judge.Base, tmp_path: Path
) -> None:
    mine = small_torch.ALLOCATOR.replace("(size_t n) = 0", "(size_t n) const = 0")
    folder = small_torch.checkout(tmp_path / "pytorch", {ALLOCATOR: mine})
    files = change.of_checkout(pinned.tree, folder).files
    assert files == change.of_patch(pinned.tree, CONST.encode()).files


def test_of_a_checkout_only_the_files_that_are_named_are_judged(
    pinned: judge.Base, tmp_path: Path
) -> None:
    folder = small_torch.checkout(tmp_path / "pytorch", {ALLOCATOR: "//\n", DEVICE: "//\n"})
    changed = change.of_checkout(pinned.tree, folder, [DEVICE, "docs/x.md"])
    assert set(changed.files) == {f"torch/include/{DEVICE}"}
    assert changed.unjudged == {"docs/x.md": "not in a wheel"}


def test_a_named_file_that_the_checkout_lacks_is_deleted(
    pinned: judge.Base, tmp_path: Path
) -> None:
    folder = small_torch.checkout(tmp_path / "pytorch")
    (folder / DEVICE).unlink()
    assert change.of_checkout(pinned.tree, folder, [DEVICE]).files == {
        f"torch/include/{DEVICE}": None
    }


def test_a_link_in_a_checkout_is_not_followed(pinned: judge.Base, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    folder = small_torch.checkout(tmp_path / "pytorch")
    (folder / DEVICE).unlink()
    (folder / DEVICE).symlink_to(secret)
    for files in (None, [DEVICE]):
        changed = change.of_checkout(pinned.tree, folder, files)
        assert changed.files == {} and changed.unjudged == {DEVICE: "a symbolic link"}


@pytest.mark.parametrize("file", ["../x.h", "/etc/passwd", "c10/../../x.h"])
def test_a_file_outside_of_the_checkout_is_refused(
    file: str, pinned: judge.Base, tmp_path: Path
) -> None:
    with pytest.raises(CiError, match="leads out of the checkout"):
        change.of_checkout(pinned.tree, small_torch.checkout(tmp_path / "pytorch"), [file])


def test_a_folder_that_is_no_checkout_needs_the_files_to_be_named(
    pinned: judge.Base, tmp_path: Path
) -> None:
    with pytest.raises(CiError, match="is not a checkout of PyTorch"):
        change.of_checkout(pinned.tree, tmp_path)


# --- what is reached -------------------------------------------------------------------------


def test_a_header_is_reached_through_others_and_by_what_the_change_includes(
    pinned: judge.Base, surfaces: catalogues.Catalogue
) -> None:
    include = "torch/include/"
    graph = reach.includes(pinned.tree, {}, surfaces)
    assert graph.including([include + DEVICE]) == {ALLOCATOR, DEVICE}
    assert graph.including([include + ALLOCATOR]) == {ALLOCATOR}
    new = {include + ALLOCATOR: b'#include "../macros/cmake_macros.h"\n'}
    assert include + "c10/macros/cmake_macros.h" not in graph.edges
    wider = reach.includes(pinned.tree, new, surfaces)
    assert include + "c10/macros/cmake_macros.h" in wider.edges
    assert wider.including([include + DEVICE]) == {ALLOCATOR, DEVICE}


def test_only_other_directives_make_a_header_bring_other_headers_along(
    pinned: judge.Base,
) -> None:
    path = f"torch/include/{ALLOCATOR}"
    text = (pinned.tree.root / path).read_bytes()
    assert reach.rearranged(pinned.tree, {path: text.replace(b"size_t", b"int")}) == set()
    for other in (text.replace(b"#include <cstddef>", b"#include <vector>"), b"", None):
        assert reach.rearranged(pinned.tree, {path: other}) == {path}


# --- the command line ------------------------------------------------------------------------


@pytest.fixture
def command(
    pinned: judge.Base,
    surfaces: catalogues.Catalogue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., int]:
    monkeypatch.setattr(catalogues, "load", lambda: surfaces)
    cache = str(tmp_path / "cache")
    base = ["surface", "check", "--base", str(pinned.tree.root), "--cache", cache]
    return lambda *words: cli.main([*base, *words])


def test_a_compile_break_ends_with_status_1_unless_only_less_is_refused(
    command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patch = tmp_path / "const.diff"
    patch.write_text(CONST)
    assert command("--patch", str(patch)) == 1
    assert capsys.readouterr().out.startswith("compile_break: 1 finding in allocator\n")
    patch.write_text(edit(ALLOCATOR, "#pragma once", "#pragma  once"))
    assert command("--patch", str(patch)) == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [("", "holds no change"), (CONST[:-20], "cut off"), (None, "cannot read")],
)
def test_a_patch_that_cannot_be_read_ends_with_status_2_and_no_report(
    data: str | None,
    reason: str,
    command: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    patch, report = tmp_path / "x.diff", tmp_path / "report.json"
    if data is not None:
        patch.write_text(data)
    assert command("--patch", str(patch), "--format", "json", "-o", str(report)) == 2
    assert reason in capsys.readouterr().err
    assert not report.exists()


def test_a_snapshot_as_base_means_the_version_that_it_is_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(verb, "locate", lambda where, cache: asked.append(where))
    committed = Path(snapshot.__file__).parent / "snapshots" / "2.11.0.json.gz"
    verb.base(str(committed), tmp_path)
    verb.base("2.13.0", tmp_path)
    assert asked == ["2.11.0", "2.13.0"]


def test_a_base_that_does_not_compile_ends_with_status_2(
    surfaces: catalogues.Catalogue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(catalogues, "load", lambda: surfaces)
    contents = small_torch.files()
    header = "torch/include/c10/core/Device.h"
    contents[header] = contents[header].replace("int index", "Missing index")
    root = small_torch.unpacked(tmp_path / "t", contents)
    patch = tmp_path / "const.diff"
    patch.write_text(CONST)
    words = ["surface", "check", "--base", str(root), "--cache", str(tmp_path / "cache")]
    assert cli.main([*words, "--patch", str(patch)]) == 2
    assert "do not compile" in capsys.readouterr().err


def test_the_base_is_left_as_it_was(pinned: judge.Base, check: Check) -> None:
    def contents(tree: TorchTree) -> dict[str, bytes]:
        paths = (p for p in tree.root.rglob("*") if p.is_file())
        return {str(p): p.read_bytes() for p in paths}

    before = contents(pinned.tree)
    check(CONST)
    assert contents(pinned.tree) == before
