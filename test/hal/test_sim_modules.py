# SPDX-License-Identifier: BSD-3-Clause
"""Modules on sim: which compiler, the cache of images, and what is special about this driver."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_void_p
from functools import partial
from pathlib import Path

import pytest
from driver_in_child import with_driver
from suites import ROOT, SIM

from hal_conformance import abi, modules
from hal_conformance.abi import ModuleAccessFlags, Status
from hal_conformance.driver import Driver
from hal_conformance.process import Ending

#: A compiler that writes down how it is called.
COMPILER = """\
#!/bin/sh
echo "$*" >> {log}
case "$*" in *--version*) echo "{version}"; exit;; esac
exec {real} "$@"
"""
WRITE = ModuleAccessFlags.WRITE
OTHER = modules.SOURCE.replace(b"* 2", b"* 3")


def in_process(
    work: Callable[[Driver], object], tmp_path: Path, environment: Mapping[str, str] = {}
) -> Ending:
    """Run `work` with sim in a process of its own, whose cache is in `tmp_path`."""

    def run(hal: Driver) -> object:
        faulthandler.disable()  # its report of a fault is of no interest
        hal.ok(hal.api.init())
        return work(hal)

    cache = {"PUONE_MODULE_CACHE": str(tmp_path / "cache")}
    return with_driver(SIM, {**cache, **environment}, run)


def answer(ending: Ending) -> str:
    assert str(ending) == "exit status 0"
    return ending.payload.decode()


def compiler(tmp_path: Path, version: str = "1") -> tuple[dict[str, str], Path]:
    """The environment in which that compiler is used, and what it writes to."""
    log, script = tmp_path / "calls", tmp_path / "compiler"
    real = shutil.which("c++")
    script.write_text(COMPILER.format(log=log, version=version, real=real))
    script.chmod(0o755)
    return {"CXX": str(script)}, log


def calls(log: Path) -> list[str]:
    """How the compiler was called, but for its version."""
    return [call for call in log.read_text().splitlines() if "--version" not in call]


def compilations(log: Path) -> int:
    return sum("c++-header" not in call for call in calls(log))


@pytest.mark.parametrize("chosen", ["", "no-such-compiler", "false"])
def test_without_a_compiler_the_text_says_what_was_looked_for(chosen: str, tmp_path: Path) -> None:
    def work(hal: Driver) -> str:
        statuses = (
            Status(hal.module().target(-1, byref(abi.ModuleTarget()))),
            modules.try_compile(hal, modules.SOURCE)[0],
        )
        assert statuses == (Status.UNSUPPORTED,) * 2
        return hal.message()

    path = str(tmp_path) if not chosen else os.environ["PATH"]
    text = answer(in_process(work, tmp_path, {"CXX": chosen, "PATH": path}))
    for word in [f"CXX={chosen}"] if chosen else ["CXX", "c++", "g++", "clang++"]:
        assert word in text


def test_a_compiler_may_have_arguments(tmp_path: Path) -> None:
    environment, log = compiler(tmp_path)
    answer(in_process(modules.compiled, tmp_path, {"CXX": environment["CXX"] + " -DMINE=1"}))
    assert all(call.startswith("-DMINE=1 ") for call in log.read_text().splitlines())


def test_a_second_process_takes_the_image_from_the_cache(tmp_path: Path) -> None:
    environment, log = compiler(tmp_path)
    for _ in range(3):
        answer(in_process(modules.compiled, tmp_path, environment))
    assert compilations(log) == 1


def test_whatever_decides_about_an_image_is_part_of_its_key(tmp_path: Path) -> None:
    uncontracted = abi.ModuleOptions(flags=abi.ModuleFlags.UNCONTRACTED)

    def work(hal: Driver) -> None:
        for _ in range(2):
            modules.compiled(hal)
            modules.compiled(hal, OTHER)
            modules.try_compile(hal, modules.SOURCE, uncontracted)

    environment, log = compiler(tmp_path)
    answer(in_process(work, tmp_path, environment))
    assert compilations(log) == 3
    environment, _ = compiler(tmp_path, version="2")
    answer(in_process(work, tmp_path, environment))
    assert compilations(log) == 6


def test_a_damaged_file_of_the_cache_is_replaced(tmp_path: Path) -> None:
    environment, log = compiler(tmp_path)
    answer(in_process(modules.compiled, tmp_path, environment))
    [file] = (tmp_path / "cache").iterdir()
    whole = file.read_bytes()
    for damaged in (whole[:-100], b"", whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(damaged)
        answer(in_process(modules.compiled, tmp_path, environment))
        assert len(file.read_bytes()) == len(whole)
    assert compilations(log) == 4


def several(hal: Driver) -> str:
    """Compile three sources, and run a kernel of the last."""
    for factor in (3, 4, 5):
        source = modules.SOURCE.replace(b"* 2", b"* %d" % factor)
        image = modules.compiled(hal, source)
    module = modules.loaded(hal, image)
    stream, block = hal.stream(), hal.malloc(8)
    hal.write(block, modules.floats([1.0, 2.0]), stream)
    modules.launch(hal, modules.found(hal, module, "scale"), modules.args(2, block, block), stream)
    return str(modules.read_floats(hal, block, 2, stream))


def test_the_dialect_is_precompiled_when_a_process_compiles_again(tmp_path: Path) -> None:
    environment, log = compiler(tmp_path)
    assert answer(in_process(several, tmp_path, environment)) == "[6.0, 11.0]"
    kinds = ["header" if "c++-header" in call else "-include" in call for call in calls(log)]
    assert kinds == [False, "header", True, True]
    [header] = (tmp_path / "cache").glob("*.gch")
    assert header.with_suffix("").is_file(), "what it was made from is gone"
    log.unlink()
    answer(in_process(modules.compiled, tmp_path, environment))
    assert ["-include" in call for call in calls(log)] == [True], "another process does not use it"


def test_a_damaged_precompiled_header_changes_nothing(tmp_path: Path) -> None:
    answer(in_process(several, tmp_path))
    [header] = (tmp_path / "cache").glob("*.gch")
    whole = header.read_bytes()
    for number, damaged in enumerate((whole[: len(whole) // 2], b"", b"x" * 999)):
        header.write_bytes(damaged)
        source = modules.SOURCE.replace(b"* 2", b"* 7%d" % number)
        answer(in_process(partial(modules.compiled, source=source), tmp_path))


def test_the_text_of_an_error_is_the_same_with_a_precompiled_header(tmp_path: Path) -> None:
    def work(hal: Driver) -> str:
        several(hal)
        wrong = modules.SOURCE + b"\nPUONE_MODULE_MAP(wrong, Args) { args.out[i] = missing; }\n"
        assert modules.try_compile(hal, wrong)[0] == Status.INVALID_ARGUMENT
        return hal.message()

    line = modules.SOURCE.count(b"\n") + 2
    assert f"source:{line}:" in answer(in_process(work, tmp_path))


@pytest.mark.parametrize("directory", ["none", "/dev/null/cache", ""])
def test_without_a_cache_it_compiles(directory: str, tmp_path: Path) -> None:
    environment, log = compiler(tmp_path)
    environment |= {"PUONE_MODULE_CACHE": directory, "HOME": "", "XDG_CACHE_HOME": ""}
    for count in (1, 2):
        answer(in_process(modules.compiled, tmp_path, environment))
        assert compilations(log) == count


def test_the_cache_is_in_the_users_directory_by_default(tmp_path: Path) -> None:
    environment = {"PUONE_MODULE_CACHE": "", "XDG_CACHE_HOME": "", "HOME": str(tmp_path)}
    answer(in_process(modules.compiled, tmp_path, environment))
    assert len(list((tmp_path / ".cache" / "puone" / "modules").iterdir())) == 1


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    answer(in_process(modules.compiled, tmp_path))
    [file] = (tmp_path / "cache").iterdir()
    file.unlink()
    (file / "in the way").mkdir(parents=True)
    answer(in_process(modules.compiled, tmp_path))
    assert list((tmp_path / "cache").iterdir()) == [file]


def test_processes_share_a_cache_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = [pool.submit(in_process, modules.compiled, tmp_path) for _ in range(4)]
    for each in made:
        answer(each.result())
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_an_address_that_is_not_declared_faults(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def work(hal: Driver) -> None:
        declared = modules.declaration("scale")
        declared.access_count = 1  # of "out" only
        module = modules.loaded(hal, modules.compiled(hal))
        _, kernel = modules.try_find(hal, module, declared)
        stream, block = hal.stream(), hal.malloc(64)
        modules.launch(hal, kernel or 0, modules.args(4, block, block), stream)
        hal.synchronize(stream)

    assert str(in_process(work, tmp_path)) == "crash: SIGSEGV"
    assert "puone sim: " in capfd.readouterr().err


def test_injected_faults_hit_kernels_of_modules(tmp_path: Path) -> None:
    def work(hal: Driver) -> str:
        kernel, stream, block = modules.kernel_of(hal, "scale"), hal.stream(), hal.malloc(64)
        hal.ok(hal.fault().kernel_error_at(2))
        for _ in range(3):
            modules.launch(hal, kernel, modules.args(4, block, block), stream)
        assert hal.api.stream_synchronize(stream) == Status.INTERNAL
        return hal.message()

    assert "kernel scale failed on puone:0: injected" in answer(in_process(work, tmp_path))


def test_the_example_of_the_documentation_computes(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "hal.md").read_text().partition("## Kernels compiled at run time")[2]
    source = text.partition("```cpp\n")[2].partition("```")[0].encode()
    fields = {"a": ModuleAccessFlags.READ, "b": ModuleAccessFlags.READ, "out": WRITE}

    class Args(ctypes.Structure):
        _fields_ = [("arguments", abi.ModuleArguments), *((name, c_void_p) for name in fields)]

    def work(hal: Driver) -> list[float]:
        accesses = [modules.dense(name, name, flag, 4, Args) for name, flag in fields.items()]
        declared = abi.ModuleKernel(
            name=b"fused",
            args_size=ctypes.sizeof(Args),
            access_count=len(accesses),
            accesses=(abi.ModuleAccess * len(accesses))(*accesses),
        )
        module, stream = modules.loaded(hal, modules.compiled(hal, source)), hal.stream()
        _, kernel = modules.try_find(hal, module, declared)
        a, b, out = (hal.malloc(12) for _ in fields)
        hal.write(a, modules.floats([0, 1, 2]), stream)
        hal.write(b, modules.floats([1, 2, 3]), stream)
        args = Args(abi.ModuleArguments(count=3), a, b, out)
        hal.ok(hal.api.kernel_launch(kernel, byref(args), ctypes.sizeof(args), stream, None))
        return [round(value, 4) for value in modules.read_floats(hal, out, 3, stream)]

    assert answer(in_process(work, tmp_path)) == "[1.0, 5.4366, 22.1672]"
