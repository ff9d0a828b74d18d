# SPDX-License-Identifier: BSD-3-Clause
"""Runs `python -m MODULE` and `python -c CODE` in a fork of a process that has imported torch and
the suite already.

A fresh interpreter takes seconds for these imports, longer than most runs of the suite that the
tests make. The nursery is one process for each process of the tests. It has one thread and touches
no device, as the suite's own parent of workers does. A child gets its arguments, environment,
directory, module path and pipes from the caller and ends through the interpreter's own shutdown.

What is about starting Python, about what is imported, about variables that are read at that time,
or about a signal to the process needs a fresh interpreter.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# A request has the environment, of some kilobytes.
MOST_BYTES = 1 << 20
# Tells pytest, when it is imported, in which modules to rewrite assertions: every run imports it.
PLUGIN = "torch_conformance.pytest_plugin.plugin"


# ---- the caller's side ----


def run_module(
    module: str, *arguments: str, cwd: Path, env: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """`python -m module arguments...`, as subprocess.run() does it with captured text."""
    return _nursery().run([module, *arguments], cwd, env, timeout)


def run_code(
    code: str, *, cwd: Path, env: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """`python -c code`, as subprocess.run() does it with captured text.

    Backends are loaded before the code is, unless TORCH_DEVICE_BACKEND_AUTOLOAD is 0.
    """
    return _nursery().run(["-c", code], cwd, env, timeout)


@cache
def _nursery() -> _Nursery:
    return _Nursery()


class _Nursery:
    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env={
                    **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
                    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
                },
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._channel.close()
        self._process.wait()

    def run(
        self, command: list[str], cwd: Path, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        end = time.monotonic() + timeout
        pipes = [os.pipe() for _ in range(2)]
        writers = [writer for _, writer in pipes]
        request = {"command": command, "cwd": str(cwd), "env": dict(env)}
        socket.send_fds(self._channel, [json.dumps(request).encode()], writers)
        for writer in writers:
            os.close(writer)
        pid = self._answer()
        texts = _read([reader for reader, _ in pipes], end)
        if texts is None:
            os.kill(pid, signal.SIGKILL)
        status = self._answer()
        if texts is None:
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, status, *texts)

    def _answer(self) -> int:
        data = self._channel.recv(MOST_BYTES)
        if not data:
            raise RuntimeError("the nursery has ended; its standard error says why")
        return int(data)


def _read(readers: list[int], end: float) -> list[str] | None:
    """What comes from each pipe until all writers have closed it; None if that takes too long."""
    found = dict.fromkeys(readers, b"")
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader, selectors.EVENT_READ)
        while selector.get_map() and (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                data = os.read(key.fd, 1 << 16)
                found[key.fd] += data
                if not data:
                    selector.unregister(key.fd)
        in_time = not selector.get_map()
    for reader in readers:
        os.close(reader)
    if not in_time:
        return None
    return [io.TextIOWrapper(io.BytesIO(text)).read() for text in found.values()]


# ---- the nursery's own side ----


@dataclass(frozen=True)
class _Request:
    command: list[str]
    cwd: str
    env: dict[str, str]


def _warm_up() -> dict[str, str]:
    """Import what a run of the suite imports, by such a run; the variables that it set."""
    import pytest

    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "nothing.py").touch()
        options = ["-p", "torch_conformance.plugin", "-p", "no:cacheprovider", "--rootdir", folder]
        status = pytest.main([*options, f"--checks-dir={folder}", "--list"])
    assert status == pytest.ExitCode.NO_TESTS_COLLECTED, status
    sys.stdout.flush()  # each fork would write what is left in the buffer
    assert "torch" in sys.modules
    del sys.modules[PLUGIN]
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, f"{len(threads)} threads: only one survives a fork"
    return {name: value for name, value in os.environ.items() if before.get(name) != value}


def _serve(channel: socket.socket) -> _Request | None:
    """Fork a child for each request. Returns its request in the child, and None at the end."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(channel, MOST_BYTES, 2)
        if not data:
            return None
        pid = os.fork()
        if not pid:
            channel.close()
            for place, descriptor in enumerate(descriptors, start=1):
                os.dup2(descriptor, place)
                os.close(descriptor)
            return _Request(**json.loads(data))
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(b"%d" % pid)
        _, status = os.waitpid(pid, 0)
        channel.send(b"%d" % os.waitstatus_to_exitcode(status))


def _become(request: _Request, set_by_imports: Mapping[str, str], installed: list[str]) -> None:
    """Take over the environment, directory and module path of the request."""
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update({**set_by_imports, **request.env})
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [request.cwd, *filter(None, paths), *installed]
    sys.path_importer_cache.clear()
    sys.argv[:] = request.command


def _main() -> None:
    channel, installed = socket.socket(fileno=int(sys.argv[1])), sys.path[1:]
    set_by_imports = _warm_up()
    request = _serve(channel)
    if request is not None:
        _become(request, set_by_imports, installed)
        _run(request.command)


def _run(command: list[str]) -> None:
    if command[0] != "-c":
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)
        return
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    del sys.argv[1:]
    import torch

    if torch._is_device_backend_autoload_enabled():
        torch._import_device_backends()  # as the first `import torch` would
    exec(compile(command[1], "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    _main()
