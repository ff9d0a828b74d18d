# SPDX-License-Identifier: BSD-3-Clause
"""Two device-module contracts are told apart by what a backend's module must have."""

from __future__ import annotations

from pathlib import Path

import pytest
from python_surface import device_module_snapshot, differences, rules

from torch_backend_ci.surface.diff.rules import device_module
from torch_backend_ci.surface.extract.device_module import LAZY_INIT_HEADER
from torch_backend_ci.surface.model import Severity

READ = "torch.get_device_module().x()\n"
CHECKED = "m = torch.get_device_module()\nif hasattr(m, 'x'):\n    m.x()\n"
LAZY = "if (device.is_cuda() || device.is_privateuseone()) device_lazy_init(device.type());\n"
EAGER = "if (device.is_cuda()) device_lazy_init(device.type());\n"

# before, after: files; then the rules that hold.
CASES: dict[str, tuple[dict[str, str], dict[str, str], list[str]]] = {
    "an attribute is read": ({}, {"torch/a.py": READ}, ["attribute_required"]),
    "an attribute is read if it is there": ({}, {"torch/a.py": CHECKED}, ["attribute_used"]),
    "an attribute is read by tests": (
        {},
        {"torch/testing/a.py": READ},
        ["attribute_required_by_tests"],
    ),
    "a check goes": (
        {"torch/a.py": CHECKED},
        {"torch/a.py": READ},
        ["attribute_made_required"],
    ),
    "a check comes": (
        {"torch/a.py": READ},
        {"torch/a.py": CHECKED},
        ["attribute_made_optional"],
    ),
    "another file reads it": (
        {"torch/a.py": READ},
        {"torch/a.py": READ, "torch/b.py": READ},
        ["attribute_required_elsewhere"],
    ),
    "nobody reads it any more": ({"torch/a.py": READ}, {}, ["attribute_not_read"]),
    "it is called": (
        {"torch/a.py": "y = torch.get_device_module().x\n"},
        {"torch/a.py": READ},
        ["attribute_called"],
    ),
    "the module is imported": (
        {LAZY_INIT_HEADER: EAGER},
        {LAZY_INIT_HEADER: LAZY},
        ["device_module_required"],
    ),
    "the module is not imported any more": (
        {LAZY_INIT_HEADER: LAZY},
        {LAZY_INIT_HEADER: EAGER},
        ["device_module_not_required"],
    ),
    "the reader moves within its file": (
        {"torch/a.py": READ},
        {"torch/a.py": f"# why\n\ndef f():\n    return {READ}"},
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_difference_is_called_by_its_name(tmp_path: Path, case: str) -> None:
    before, after, expected = CASES[case]
    old = device_module_snapshot(tmp_path / "a", before)
    new = device_module_snapshot(tmp_path / "b", after)
    assert rules(differences(old, new)) == expected
    assert differences(new, new) == []


def test_every_rule_has_a_case() -> None:
    assert {rule for *_, found in CASES.values() for rule in found} == set(device_module.RULES)


def test_a_device_that_begins_to_need_a_module_is_a_silent_break(tmp_path: Path) -> None:
    """As `.to("privateuseone:0")` did in 2.4, pytorch/pytorch#134293."""
    before = device_module_snapshot(tmp_path / "a", {LAZY_INIT_HEADER: EAGER})
    after = device_module_snapshot(tmp_path / "b", {LAZY_INIT_HEADER: LAZY})
    (finding,) = differences(before, after)
    assert (finding.severity, finding.surface) == (Severity.SILENT_BREAK, "device-module")
    assert finding.hint is not None and "_register_device_module" in finding.hint
