# SPDX-License-Identifier: BSD-3-Clause
"""The table itself: how it is got, how long it is, and whether it agrees with the capabilities."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import threading
from ctypes import POINTER, byref, c_float, c_int32, c_size_t, c_uint32, c_void_p
from typing import Any

import pytest

from hal_conformance import abi
from hal_conformance.abi import Capability, Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver


def _get(driver: Driver, major: int = abi.ABI_MAJOR) -> tuple[int, int | None]:
    """Status and address that puone_hal_get gives; the address is preset to a mark."""
    table = ctypes.cast(c_void_p(0x5A5A), POINTER(abi.HalApi))
    status = driver.get(major, byref(table))
    return status, ctypes.cast(table, c_void_p).value


@covers("HAL-001")
def test_the_table_is_the_same_before_init_and_from_any_thread(library: Driver) -> None:
    found = [_get(library), _get(library), _get(Driver(library.path))]
    thread = threading.Thread(target=lambda: found.append(_get(library)))
    thread.start()
    thread.join()
    assert found == [(Status.OK, ctypes.addressof(library.api))] * 4


@covers("HAL-002")
@pytest.mark.parametrize("major", [0, abi.ABI_MAJOR + 1, 0xFFFF, 0x10000 + abi.ABI_MAJOR])
def test_another_abi_major_is_refused(library: Driver, major: int) -> None:
    assert _get(library, major) == (Status.UNSUPPORTED, 0x5A5A)


@covers("HAL-016")
def test_a_null_table_pointer_is_refused(library: Driver) -> None:
    assert library.get(abi.ABI_MAJOR, None) == Status.INVALID_ARGUMENT


@covers("HAL-003")
def test_the_table_is_of_the_abi_asked_for_and_whole(library: Driver) -> None:
    assert library.api.abi_major == abi.ABI_MAJOR
    assert library.api.struct_size >= ctypes.sizeof(abi.HalApi)


# Destroying NULL is a no-op even where there is nothing to destroy.
TAKES_NULL = ("free", "host_free", "stream_destroy", "event_destroy")


def _probe_arguments(name: str) -> list[Any]:
    """Arguments that would be harmless if the entry did something after all."""
    harmless: dict[type, Any] = {c_void_p: None, ctypes.c_char_p: b"puone_probe"}
    harmless |= {c_int32: 0, c_uint32: 0, c_size_t: 0, c_float: 0.0}
    harmless |= {abi.HostFunc: abi.HostFunc()}
    return [harmless[kind] if kind in harmless else _pointee(kind) for kind in abi.ENTRIES[name]]


def _pointee(pointer: type) -> Any:
    return byref(pointer._type_())  # type: ignore[attr-defined]  # of ctypes pointers


@covers("HAL-004")
@pytest.mark.parametrize("name", [c.name for c in abi.ENTRIES_OF])
def test_capability_bits_agree_with_the_entries(library: Driver, name: str) -> None:
    capability = Capability[name]
    declared = library.capabilities()
    for entry in abi.ENTRIES_OF[capability]:
        if capability in declared:
            assert library.has_entry(entry), f"{name} is declared and {entry} is NULL"
        elif library.has_entry(entry) and entry not in abi.OF_DEVICE:
            status = getattr(library.api, entry)(*_probe_arguments(entry))
            allowed = {Status.UNSUPPORTED} | ({Status.OK} if entry in TAKES_NULL else set())
            assert status in allowed, f"{name} is not declared and {entry} answers"


@covers("HAL-005")
def test_describe_works_before_init(library: Driver) -> None:
    info = library.info()
    assert re.fullmatch(r"[a-z0-9_]+", (info.name or b"").decode())
    assert info.struct_size == ctypes.sizeof(info)
    has_kernels = Capability.KERNELS in library.capabilities()
    assert info.kernel_set_version == (abi.KERNEL_SET_VERSION if has_kernels else 0)
    assert info.vendor
    assert info.version
    unknown = info.capabilities & ~abi.ALL_CAPABILITIES
    assert unknown == 0, f"unknown capability bits {unknown:#x}"
    assert library.info().name == info.name


@covers("HAL-016", needs=("validation",))
def test_describe_refuses_null(library: Driver) -> None:
    assert library.api.describe(None) == Status.INVALID_ARGUMENT


@covers("HAL-006")
def test_the_library_exports_one_symbol(library: Driver) -> None:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("not there: nm, which lists a library's symbols")
    command = [nm, "--dynamic", "--defined-only", "--format=posix", str(library.path)]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = {line.split()[0].split("@")[0] for line in listing.splitlines()}
    # Symbols of a sanitizer's instrumentation do not belong to the driver.
    names = {name for name in names if not re.match(r"__(odr_)?(asan|tsan|ubsan)", name)}
    assert names == {Driver.symbol}


@covers("HAL-007")
def test_a_driver_has_every_entry_that_no_capability_promises(library: Driver) -> None:
    assert [name for name in abi.MANDATORY if not library.has_entry(name)] == []
