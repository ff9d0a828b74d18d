# SPDX-License-Identifier: BSD-3-Clause
"""The committed schemas are those that the classes give."""

from __future__ import annotations

import json

import jsonschema
import pytest

from torch_backend_ci.checkout import ROOT
from torch_backend_ci.schemas import DOCUMENTS, Described

NAMES = [one.name for one in DOCUMENTS]


@pytest.mark.parametrize("one", DOCUMENTS, ids=NAMES)
def test_each_committed_schema_is_current(one: Described) -> None:
    assert one.file.read_text(encoding="utf-8") == one.text, "run `make schemas`"


@pytest.mark.parametrize("one", DOCUMENTS, ids=NAMES)
def test_each_schema_is_one_and_has_a_name_of_its_own(one: Described) -> None:
    schema = json.loads(one.file.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:torch-conformance:{one.name}:{one.version}"
    assert NAMES.count(one.name) == 1


def test_no_schema_is_written_by_hand() -> None:
    found = {file for folder in ("ci", "bench") for file in (ROOT / folder).rglob("*.schema.json")}
    assert found == {one.file for one in DOCUMENTS}
    assert not (ROOT / "schema").exists()
