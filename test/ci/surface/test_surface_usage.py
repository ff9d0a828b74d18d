# SPDX-License-Identifier: BSD-3-Clause
"""Which known backends a finding hits."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from declarations import class_, cpp, declaration, header, snapshot, symbol, virtual

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import catalogue, usage
from torch_backend_ci.surface.diff import diff
from torch_backend_ci.surface.model import Declaration, Domain

DATA = usage.load()
SEARCHED = usage.read(usage.DATA)  # by hand, beside what is collected
SURFACES = catalogue.load()


@pytest.mark.parametrize("name", SEARCHED.cpp)
def test_every_cpp_name_is_one_of_the_catalogue(name: str) -> None:
    name = name.replace("*", "X")
    assert SURFACES.surface_of_symbol(name) or SURFACES.surface_of_macro(name)


def test_every_header_is_one_of_the_catalogue() -> None:
    assert set(SEARCHED.headers) <= set(SURFACES.headers)


def test_every_python_name_is_one_of_the_catalogue() -> None:
    listed = [name for surface in SURFACES.surfaces for name in surface.python]
    modules = {name.partition(":")[0] for name in listed}
    known = {name.replace(":", ".") for name in listed} | modules
    assert [n for n in SEARCHED.python if n not in known] == []


def test_every_backend_is_used_and_has_a_repository() -> None:
    named = {
        u for part in (DATA.cpp, DATA.headers, DATA.python) for us in part.values() for u in us
    }
    assert named == DATA.backends == usage.read(usage.DATA).backends


def users(*gone: Declaration, left: tuple[Declaration, ...] = ()) -> tuple[str, ...]:
    (found,) = usage.weigh(diff(snapshot(*gone, *left), snapshot(*left)), DATA)
    return found.used_by


def test_a_member_has_its_own_users_and_a_pure_virtual_those_of_its_class_too() -> None:
    whole = class_("c10::Allocator")
    own = virtual("c10::Allocator::copy_data")
    other, pure = (virtual("c10::Allocator::nobody", pure=p) for p in (False, True))
    assert users(own, left=(whole,)) == DATA.cpp["c10::Allocator::copy_data"]
    assert users(other, left=(whole,)) == ()
    assert users(pure, left=(whole,)) == DATA.cpp["c10::Allocator"]


def test_macros_headers_patterns_and_symbols_have_users() -> None:
    assert users(cpp("macro", "REGISTER_ALLOCATOR")) == DATA.cpp["REGISTER_ALLOCATOR"]
    assert users(header("torch/library.h")) == DATA.headers["torch/library.h"]
    assert users(symbol("c10::SetAllocator(c10::DeviceType, c10::Allocator*, unsigned char)"))
    assert users(cpp("function", "at::toDLPackVersioned")) == DATA.cpp["at::toDLPack*"]


def test_what_nobody_is_known_to_use_has_no_users() -> None:
    assert users(cpp("macro", "NOBODY")) == ()
    assert users(header("c10/nobody.h")) == ()


def test_of_two_findings_the_one_with_more_users_comes_first() -> None:
    gone = (cpp("macro", "AAA"), cpp("macro", "REGISTER_ALLOCATOR", body="x"))
    found = usage.weigh(diff(snapshot(*gone), snapshot()), DATA)
    assert [f.name for f in found] == ["REGISTER_ALLOCATOR", "AAA"]


@pytest.mark.parametrize("content", ["", "[1]", "backends: {}\ncpp: {}\nheaders: {}\n", "a: ["])
def test_data_that_cannot_be_read_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "usage.yaml"
    file.write_text(content)
    with pytest.raises(CiError, match=re.escape(str(file))):
        usage.read(file)


def test_a_user_that_is_not_a_backend_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "usage.yaml"
    file.write_text("backends: {a: {}}\ncpp: {X: [b]}\nheaders: {}\npython: {}\n")
    with pytest.raises(CiError, match="not among the backends: b"):
        usage.read(file)


def test_operators_have_no_known_users() -> None:
    gone = declaration(Domain.OPERATOR, "operator", "aten::add.Tensor")
    finding = diff(snapshot(cpp("macro", "X")), snapshot())[0]
    assert DATA.of(replace(finding, domain=gone.domain, name=gone.name)) == ()
