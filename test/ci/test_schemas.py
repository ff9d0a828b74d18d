# SPDX-License-Identifier: BSD-3-Clause
"""The committed schemas are those that the classes give."""

from __future__ import annotations

import subprocess
import sys

import jsonschema
import pytest

from torch_backend_ci import schema
from torch_backend_ci.checkout import ROOT
from torch_backend_ci.schemas import DOCUMENTS, Described

NAMES = [one.name for one in DOCUMENTS]


@pytest.mark.parametrize("one", DOCUMENTS, ids=NAMES)
def test_each_committed_schema_is_current(one: Described) -> None:
    assert schema.file(one.name).read_text(encoding="utf-8") == one.text, "run `make schemas`"


@pytest.mark.parametrize("one", DOCUMENTS, ids=NAMES)
def test_each_schema_is_one_and_has_a_name_of_its_own(one: Described) -> None:
    found = schema.load(one.name)
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["$id"] == f"urn:torch-conformance:{one.name}:{one.version}"
    assert NAMES.count(one.name) == 1


def test_no_schema_is_written_by_hand() -> None:
    found = set((ROOT / "ci").rglob("*.schema.json"))
    assert found == {schema.file(one.name) for one in DOCUMENTS}


def test_who_loads_a_schema_loads_no_class_of_a_document() -> None:
    code = (
        "import sys\nfrom torch_backend_ci import schema\nschema.load('pin')\n"
        "print(*(name for name in sys.modules if name.startswith('torch_backend_ci.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["torch_backend_ci.schema"]
