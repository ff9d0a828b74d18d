# SPDX-License-Identifier: BSD-3-Clause
"""Liars are found where the backend is installed as editable, too."""

from __future__ import annotations

import sys

import editable
import pytest


def test_an_editable_installation_does_not_stand_before_a_liar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finder = type("Finder", (), {"__module__": "_editable_skbc_torch_puone"})()
    others = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", [finder, *others])
    editable.forget()
    assert finder not in sys.meta_path
    assert [other for other in others if other in sys.meta_path] == sys.meta_path
