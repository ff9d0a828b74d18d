# SPDX-License-Identifier: BSD-3-Clause
"""The probe compiles with the installed torch, uses what our backend uses, and sees each kind of
break where it is."""

from __future__ import annotations

import functools
from typing import NamedTuple

import csrc_virtuals
import pytest
from installed import installed_snapshot
from trees import installed_tree

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import catalogue, probe
from torch_backend_ci.surface.model import Domain
from torch_backend_ci.surface.probe import ProbeResult, Use, macros
from torch_backend_ci.torch_tree import TorchTree, locate

# The exceptions of PyTorch: thrown and caught, not derived from.
CONCRETE = ("c10::Error",)


class Mutation(NamedTuple):
    """A change of one header, and what it does to the probe."""

    header: str
    old: str
    new: str
    file: str  # of the probe, that no longer compiles
    name: str  # the declaration that it is about


MUTATIONS = [
    Mutation(
        "c10/core/Allocator.h",
        "virtual DeleterFnPtr raw_deleter() const {",
        "virtual DeleterFnPtr raw_deleter() {",
        "surfaces/allocator.h",
        "c10::Allocator::raw_deleter",
    ),
    Mutation(
        "ATen/detail/PrivateUse1HooksInterface.h",
        "  void init() const override {}",
        "  void init() const override {}\n  virtual void more() const = 0;",
        "surfaces/hooks.h",
        "at::PrivateUse1HooksInterface::more",
    ),
    Mutation(
        "torch/headeronly/core/ScalarType.h",
        "      Undefined,\n",
        "      Undefined,\n  Further,\n",
        "surfaces/dtype.h",
        "c10::ScalarType::NumOptions",
    ),
    Mutation(
        "torch/csrc/distributed/c10d/Utils.hpp",
        "inline int getCvarInt(",
        "inline int readCvarInt(",
        "surfaces/distributed.h",
        "c10d::getCvarInt",
    ),
    Mutation(
        "torch/csrc/profiler/standalone/privateuse1_observer.h",
        "#define REGISTER_PRIVATEUSE1_OBSERVER(",
        "#define OBSERVE_PRIVATEUSE1(",
        "surfaces/profiler.h",
        "REGISTER_PRIVATEUSE1_OBSERVER",
    ),
    Mutation(
        "c10/core/TensorImpl.h",
        "struct C10_API BackendMeta : intrusive_ptr_target {",
        "struct C10_API BackendMeta final : intrusive_ptr_target {",
        "surfaces/tensor.h",
        "c10::BackendMeta",
    ),
    Mutation(
        "torch/csrc/profiler/orchestration/observer.h",
        "  PRIVATEUSE1, //",
        "  PRIVATE, //",
        "surfaces/profiler.h",
        "torch::profiler::impl::ProfilerState::PRIVATEUSE1",
    ),
    Mutation(
        "c10/core/StorageImpl.h",
        "set_data_ptr_noswap",
        "set_data_ptr_only",
        "surfaces/storage.h",
        "c10::StorageImpl::set_data_ptr_noswap",
    ),
    Mutation(
        "torch/csrc/profiler/stubs/base.h",
        "c10::DeviceIndex* device",
        "int* device",
        "surfaces/profiler.h",
        "torch::profiler::impl::ProfilerStubs::record",
    ),
    Mutation(
        "ATen/native/CPUFallback.h",
        "bool error_on_views = false",
        "bool error_on_views",
        "surfaces/fallback.h",
        "at::native::cpu_fallback",
    ),
]


@functools.cache
def torch() -> TorchTree:
    return locate(str(installed_tree().root))


@functools.cache
def clean() -> ProbeResult:
    return probe.run(torch())


@functools.cache
def mutated() -> ProbeResult:
    """All mutations at once: each hits lines of its own."""
    overlay: dict[str, str] = {}
    for mutation in MUTATIONS:
        name = f"torch/include/{mutation.header}"
        text = overlay.get(name) or (torch().root / name).read_text()
        assert mutation.old in text
        overlay[name] = text.replace(mutation.old, mutation.new)
    return probe.run(torch(), overlay=overlay)


def test_the_probe_compiles_with_the_installed_torch() -> None:
    assert not clean().errors


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_break_is_seen_in_the_line_that_uses_the_declaration(mutation: Mutation) -> None:
    about = {
        name
        for error in mutated().errors
        if error.place.file == mutation.file
        for name in clean().about(error)
    }
    assert mutation.name in about


def test_no_line_is_refused_that_uses_nothing_of_what_changed() -> None:
    changed = {mutation.name for mutation in MUTATIONS}
    for error in mutated().errors:
        assert changed & clean().about(error), error


def test_a_header_that_is_not_shipped_is_a_fatal_error_in_the_header() -> None:
    header = "torch/include/c10/core/Allocator.h"
    text = "#include <not/shipped.h>\n" + (torch().root / header).read_text()
    (error,) = probe.run(torch(), overlay={header: text}).errors
    assert error.fatal
    assert "not/shipped.h" in error.text
    assert error.place.file == header


def test_a_version_nobody_wrote_a_probe_for_is_refused() -> None:
    with pytest.raises(CiError, match=r"written for torch 2\.5 to 2\.15, not for 3\.1"):
        probe.run(torch(), written_for="3.1")


@pytest.mark.nightly
def test_every_virtual_that_a_surface_names_is_overridden() -> None:
    """Of the classes that are watched because a header is listed, few are for backends."""
    covers = clean().covers
    rules = catalogue.load()
    virtuals = {
        declaration.name
        for declaration in installed_snapshot().declarations
        if declaration.domain == Domain.CPP
        and rules.surface_of_symbol(declaration.name)
        and declaration.kind == "method"
        and declaration.facts.get("virtual")
        and not declaration.facts.get("override")
        and not declaration.facts.get("final")
        and not declaration.name.startswith(CONCRETE)
    }
    assert len(virtuals) > 250
    missing = {name for name in virtuals if Use.OVERRIDES not in covers.get(name, ())}
    assert not missing


def test_what_our_backend_overrides_the_probe_overrides() -> None:
    overridden = {
        (use.begin.file, use.name.rpartition("::")[2])
        for use in clean().uses
        if use.use == Use.OVERRIDES
    }
    derived = {use.name: use.begin.file for use in clean().uses if use.use == Use.DERIVES}
    ours = csrc_virtuals.overrides()
    assert len(ours) > 50
    for override in ours:
        assert override.base in derived, override
        assert (derived[override.base], override.name) in overridden, override


def test_the_macros_our_backend_expands_the_probe_expands() -> None:
    known = catalogue.load()
    expanded = {name for name, uses in clean().covers.items() if Use.EXPANDS in uses}
    ours = {(file, name) for file, name in csrc_virtuals.macros() if known.surface_of_macro(name)}
    assert len(ours) > 50
    assert {name for _, name in ours} <= expanded


def test_conditions_on_the_version_choose_the_lines_that_count() -> None:
    text = "\n".join(
        (
            *("#if PROBE_TORCH(2, 9)", "A", "#elif PROBE_TORCH(2, 7)", "B", "#else", "C", "#endif"),
            *("#if PROBE_TORCH(2, 6) && !PROBE_TORCH(2, 8)", "D", "#endif"),
        )
    )
    seen = {
        version: "".join(line for _, line in macros.active_lines(text, version))
        for version in ("2.5.1", "2.7.0", "2.8.0", "2.10.0")
    }
    assert seen == {"2.5.1": "C", "2.7.0": "BD", "2.8.0": "B", "2.10.0": "A"}
