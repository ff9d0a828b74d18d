# SPDX-License-Identifier: BSD-3-Clause
"""Programs that several processes run together, each as one rank of a process group.

A worker keeps its rank processes from one check to the next, because starting them costs more than
most checks. Where a process that has imported torch may fork, one fresh interpreter imports it and
no backend, and is the origin of all ranks of the worker (running/rank.py); otherwise each rank is a
fresh interpreter. A rank that dies or does not answer in time takes all of them with it, and the
next check gets new ones.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import current_process
from multiprocessing.connection import Client, Connection, Listener, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_conformance.authoring.backend import fresh_environment, text_of
from torch_conformance.spec.descriptor import encode
from torch_conformance.spec.outcome import CheckError
from torch_conformance.spec.reason import Reason, Unsupported

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

    from torch_conformance.authoring.device import Device
    from torch_conformance.spec.descriptor import Descriptor

#: Seconds after which the parent ends ranks that have not answered.
LIMIT_S = 45.0
#: What ranks show each other; Python makes another secret in each process.
_AUTHKEY = b"ranks"
#: Seconds that a call of a group may wait for other ranks, unless a program asks for less.
TIMEOUT_S = 30.0
# Seconds in which ranks that are killed are gone.
_GONE_S = 5.0


@dataclass(frozen=True)
class Task:
    """What a rank is asked to do."""

    module: str
    """Where the program is defined, and the file of it."""
    file: str
    program: str
    arguments: dict[str, Any]
    size: int
    store: str
    check: str
    capabilities: frozenset[str]


@dataclass(frozen=True)
class Answer:
    """How a program ended in one rank."""

    value: Any = None
    failed: str = ""
    """The message of a failed assertion."""
    raised: str = ""
    """Type and message of any other exception."""
    trace: str = ""
    absent: Reason | None = None


@dataclass(frozen=True)
class Died:
    """In the place of a result: the rank ended without one."""


class Rank:
    """What a program gets: which rank it is, and the device that it uses."""

    def __init__(self, dev: Device, index: int, size: int, store: str) -> None:
        self.dev = dev
        self.index = index
        self.size = size
        self._store = store
        #: Ranks share a device where there are fewer devices than ranks.
        self.device: torch.device = dev.device(index % dev.count if dev.is_accelerator else None)

    @property
    def backend(self) -> str | None:
        """The name of the torch.distributed backend, or None for the default of the device."""
        named = self.dev.descriptor.process_group
        return named if isinstance(named, str) else group_name(self.dev.descriptor, self.dev.type)

    @contextlib.contextmanager
    def group(
        self,
        timeout: float = TIMEOUT_S,
        name: str = "world",
        named: bool = True,
        device_id: torch.device | None = None,
    ) -> Iterator[dist.ProcessGroup]:
        """The default group, of all ranks, for the length of a `with` block.

        `timeout` is in seconds; a `name` is used once in a program. Without `named`, torch chooses
        the backend.
        """
        import torch
        import torch.distributed as dist

        if self.dev.is_accelerator:
            torch.accelerator.set_device_index(self.device.index or 0)
        dist.init_process_group(
            self.backend if named else None,
            store=dist.FileStore(f"{self._store}-{name}", self.size),
            rank=self.index,
            world_size=self.size,
            timeout=timedelta(seconds=timeout),
            device_id=device_id,
        )
        try:
            assert dist.group.WORLD is not None
            yield dist.group.WORLD
        finally:
            dist.destroy_process_group()

    @contextlib.contextmanager
    def channel(
        self, name: str = "channel", ends: tuple[int, int] = (0, 1)
    ) -> Iterator[Connection]:
        """A pipe of torch.multiprocessing between two ranks, for the length of a `with` block.

        What one sends is pickled for another process: tensors are shared. Both ranks enter it; a
        `name` is used once in a program.
        """
        import torch.multiprocessing  # noqa: F401  (it says how tensors are pickled)

        current_process().authkey = _AUTHKEY  # tensors of the CPU ask the sender for their memory
        address = f"{self._store}-{name}"
        if self.index == ends[0]:
            with Listener(address) as listener, listener.accept() as connection:
                yield connection
        else:
            with _connect(address) as connection:
                yield connection


def _connect(address: str) -> Connection:
    end = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return Client(address)
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def group_name(descriptor: Descriptor, device_type: str) -> str | None:
    """The torch.distributed backend for the device: the descriptor's, else torch's default."""
    import torch.distributed as dist

    if isinstance(descriptor.process_group, str):
        return descriptor.process_group
    if not dist.is_available():
        return None
    default = dist.Backend.default_device_backend_map.get(device_type)
    return None if default in (None, "fake") else default


def on_ranks(
    dev: Device,
    program: Callable[..., Any],
    *,
    size: int = 2,
    limit: float = LIMIT_S,
    dying: frozenset[int] = frozenset(),
    **arguments: Any,
) -> list[Any]:
    """Run a function of a chapter in `size` processes at once; return their results by rank.

    The function takes a Rank, and `arguments` by name; all of these and what it returns must be
    picklable, and tensors on the CPU. An exception in a rank is raised here, of the lowest rank
    that has one. A rank in `dying` has to end without a result: `Died` stands for it.
    """
    if dev.descriptor.single_process:
        dev.unsupported("only one process at a time may use the device")
    pool = _pool(dev, size)
    try:
        answers = pool.run(program, arguments, size, limit)
    except BaseException:
        pool.close()
        raise
    died = {rank for rank, answer in enumerate(answers) if answer is None}
    if died:
        pool.close()
    _raise_first(answers)
    unexpected = sorted(died ^ dying)
    if unexpected:
        how = "ended without a result" if unexpected[0] in died else "did not end"
        raise AssertionError(f"rank {unexpected[0]} of {size} {how}")
    return [Died() if answer is None else answer.value for answer in answers]


def _raise_first(answers: list[Answer | None]) -> None:
    # A rank that only waited for another one says less than the one that failed.
    known = [(rank, answer) for rank, answer in enumerate(answers) if answer is not None]
    for rank, answer in known:
        if answer.absent is not None:
            raise Unsupported(answer.absent)
        if answer.failed:
            raise AssertionError(f"rank {rank}: {answer.failed}")
    for rank, answer in known:
        if answer.raised:
            raise CheckError(f"rank {rank}: {answer.raised}\n{answer.trace}".rstrip())


# ---- the processes, from the worker's side ----

_pools: dict[str, _Pool] = {}
_nurseries: dict[str, subprocess.Popen[bytes]] = {}


def _pool(dev: Device, size: int) -> _Pool:
    found = _pools.get(dev.type)
    if found is None or found.closed:
        found = _pools[dev.type] = _Pool(dev)
    found.grow(size)
    return found


class _Pool:
    """The rank processes of this worker."""

    def __init__(self, dev: Device) -> None:
        self.closed = False
        self._dev = dev
        self._folder = tempfile.mkdtemp(prefix="ranks-")
        self._listener = Listener(str(Path(self._folder) / "socket"))
        # The ranks that are fresh interpreters.
        self._processes: list[subprocess.Popen[bytes]] = []
        # The others have a parent.
        self._parent: Connection | None = None
        self._ranks: list[Connection] = []
        self._tasks = 0
        atexit.register(self.close)

    def grow(self, size: int) -> None:
        """Have at least `size` ranks."""
        try:
            while len(self._ranks) < size:
                self._ranks.append(self._start(len(self._ranks)))
        except BaseException:
            self.close()
            raise

    def run(
        self,
        program: Callable[..., Any],
        arguments: dict[str, Any],
        size: int,
        limit: float,
    ) -> list[Answer | None]:
        """The answers by rank, None for a rank that died."""
        self._tasks += 1
        store = str(Path(self._folder) / f"store-{self._tasks}")
        task = Task(
            program.__module__,
            program.__code__.co_filename,
            program.__name__,
            arguments,
            size,
            store,
            self._dev.check_id,
            frozenset(self._dev.capabilities),
        )
        waiting = dict(enumerate(self._ranks[:size]))
        answers: list[Answer | None] = [None] * size
        for rank in waiting.values():
            send(rank, task)
        end = time.monotonic() + limit
        while waiting:
            ready = wait(list(waiting.values()), max(0.0, end - time.monotonic()))
            if not ready:
                raise AssertionError(
                    f"after {limit:g} s, rank {', '.join(map(str, sorted(waiting)))} of {size} "
                    "has not ended"
                )
            for index in [index for index, rank in waiting.items() if rank in ready]:
                with contextlib.suppress(EOFError, OSError):
                    answers[index] = receive(waiting[index])
                del waiting[index]
        return answers

    def close(self) -> None:
        """End all processes; a pool is used no more after that."""
        if self.closed:
            return
        self.closed = True
        if self._parent:
            self._parent.close()  # It ends then, and its ranks die with it.
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        for rank in self._ranks:
            _await_end(rank)
            rank.close()
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        atexit.unregister(self.close)

    def _start(self, index: int) -> Connection:
        """A new rank, once it has loaded the backend."""
        target = self._dev.descriptor
        config = {
            "address": self._listener.address,
            "descriptor": encode(target),
            "seed": self._dev.seed,
        }
        if not _may_fork(target):
            rank = _launch(target, {**config, "index": index})
            self._processes.append(rank)
            return self._accept(rank)
        nursery = _nursery(self._dev)
        if self._parent is None:
            assert nursery.stdin is not None
            nursery.stdin.write(json.dumps(config).encode() + b"\n")
            nursery.stdin.flush()
            self._parent = self._accept(nursery)
        send(self._parent, index)
        return self._accept(nursery)

    def _accept(self, origin: subprocess.Popen[bytes]) -> Connection:
        """The connection of a process that `origin` is, or forks."""
        limit = self._dev.descriptor.deadlines.startup
        end = time.monotonic() + limit
        # Listener has no deadline of its own.
        socket = self._listener._listener._socket  # type: ignore[attr-defined]
        while not wait([socket], 0.2):
            ended = origin.poll()
            assert ended is None, f"a rank ended with status {ended} while it started"
            assert time.monotonic() < end, f"a rank did not start within {limit:g} s"
        connection = self._listener.accept()
        hello = receive(connection)
        if hello:
            raise CheckError(f"a rank cannot use the backend: {hello}")
        return connection


def _nursery(dev: Device) -> subprocess.Popen[bytes]:
    """The origin of this worker's ranks; it ends with the worker."""
    found = _nurseries.get(dev.type)
    if found is None or found.poll() is not None:
        found = _nurseries[dev.type] = _launch(dev.descriptor)
    return found


def _launch(target: Descriptor, rank: dict[str, Any] | None = None) -> subprocess.Popen[bytes]:
    """A fresh interpreter that is one rank, or a nursery, which reads from its input."""
    command = [*target.launcher, sys.executable, "-m", "torch_conformance.running.rank"]
    return subprocess.Popen(
        [*command, json.dumps(rank)],
        env=fresh_environment(target),
        stdin=subprocess.DEVNULL if rank else subprocess.PIPE,
    )


def _await_end(rank: Connection) -> None:
    """Wait for the end of a rank that is killed: it may still have said something."""
    with contextlib.suppress(EOFError, OSError):
        while rank.poll(_GONE_S):
            rank.recv_bytes()


def _may_fork(target: Descriptor) -> bool:
    return (
        target.start_method == "fork"
        and not target.launcher
        and not target.imports.before_torch
        and not target.device.setup
        and sys.platform == "linux"
    )


# ---- between them ----


def send(connection: Connection, value: Any) -> None:
    """Write a value whole: Connection.send would hand tensors over in shared memory."""
    connection.send_bytes(pickle.dumps(value))


def receive(connection: Connection) -> Any:
    """Read what `send` wrote; EOFError if the other end is closed."""
    return pickle.loads(connection.recv_bytes())


# ---- in a rank ----


def serve(dev: Device, index: int, connection: Connection) -> None:
    """Be a rank until the worker closes its end."""
    while True:
        try:
            task: Task = receive(connection)
        except (EOFError, OSError):
            return
        dev.capabilities = task.capabilities
        send(connection, _answer(dev, index, task))


def _answer(dev: Device, index: int, task: Task) -> Answer:
    try:
        program = _find(task)
        dev.begin(task.check)
        value = program(Rank(dev, index, task.size, task.store), **task.arguments)
        dev.synchronize()
    except Unsupported as absent:
        return Answer(absent=absent.reason)
    except AssertionError as error:
        from torch_conformance.authoring.assertion import said

        return Answer(failed=said(error), trace=traceback.format_exc())
    except BaseException as error:
        return Answer(
            raised=f"{type(error).__name__}: {text_of(error)}", trace=traceback.format_exc()
        )
    finally:
        _leave_clean(dev)
    return Answer(value=value)


def _leave_clean(dev: Device) -> None:
    """The next program finds no group and no error of this one."""
    import torch.distributed as dist

    with contextlib.suppress(Exception):
        if dist.is_initialized():
            dist.destroy_process_group()
    with contextlib.suppress(Exception):
        dev.synchronize()


def _find(task: Task) -> Callable[..., Any]:
    from torch_conformance.authoring.discovery import EXTRA, import_checks

    if task.module.startswith(EXTRA):
        import_checks(Path(task.file))
    program: Callable[..., Any] = getattr(importlib.import_module(task.module), task.program)
    return program
