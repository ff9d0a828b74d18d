# SPDX-License-Identifier: BSD-3-Clause
"""How the end of a check is judged in the process that runs it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

from torch_conformance.authoring.check import Check
from torch_conformance.authoring.device import Device
from torch_conformance.judging.judge import Options
from torch_conformance.running.execute import execute
from torch_conformance.running.formatting import GuardedRepr
from torch_conformance.running.identity import identity
from torch_conformance.running.pool import Pool
from torch_conformance.spec.descriptor import Descriptor
from torch_conformance.spec.outcome import CheckError
from torch_conformance.spec.reason import MissingCapability, Stated, Unsupported


class Unprintable(Exception):
    """An exception whose text cannot be had, as some backends throw."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def raising(error: BaseException) -> Callable[..., None]:
    """The body of a check that raises."""

    def body(dev: Device) -> None:
        raise error

    return body


@pytest.fixture
def dev() -> Device:
    """The CPU, as a backend with errors that are its environment's."""
    return Device(
        Descriptor(name="cpu", device_type="cpu", environment_errors=("licen[cs]e server",))
    )


@pytest.mark.parametrize(
    ("error", "outcome", "message"),
    [
        (AssertionError("a is b"), "fail", "a is b"),
        (AssertionError(), "fail", "assertion failed"),
        (ValueError("bad"), "error", "ValueError: bad"),
        (KeyError(), "error", "KeyError"),
        (CheckError("TypeError: inner"), "error", "TypeError: inner"),
        (Unprintable(), "error", "Unprintable: (message cannot be printed)"),
        (SystemExit(3), "error", "SystemExit: 3"),
        (Unsupported(Stated(text="no streams")), "unsupported", "no streams"),
        (RuntimeError("license server down"), "not_run", "environment: license server down"),
        (NotImplementedError("aten::x"), "error", "NotImplementedError: aten::x"),
    ],
)
def test_outcomes(dev: Device, error: BaseException, outcome: str, message: str) -> None:
    result = execute(Check("a/b", (), raising(error), file=__file__), dev)
    assert (result.outcome, str(result.reason or result.message)) == (outcome, message)


_NO_STORAGE = NotImplementedError("Cannot access storage of OpaqueTensorImpl")
_NO_ADDRESS = RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


_EMPTY = RuntimeError("Attempted to call copy_() on an invalid python storage.")


@pytest.mark.parametrize(
    "error", [_NO_STORAGE, _NO_ADDRESS, _EMPTY], ids=["storage", "address", "empty"]
)
def test_a_check_of_storages_is_unsupported_where_tensors_have_none(
    dev: Device, error: Exception
) -> None:
    result = execute(Check("a/b", (), raising(error)), dev)
    assert (result.outcome, result.reason) == (
        "unsupported",
        MissingCapability(names=("storages",)),
    )


def test_a_tensor_that_lost_its_storage_is_an_error(dev: Device) -> None:
    dev.capabilities = frozenset({"storages"})
    assert execute(Check("a/b", (), raising(_NO_STORAGE)), dev).outcome == "error"


def test_facts_of_a_check_reach_its_result_and_no_other(dev: Device) -> None:
    def notes(dev: Device) -> None:
        dev.note(samples=3, evidence="native")

    result = execute(Check("a/b", (), notes), dev)
    assert (result.samples, result.evidence) == (3, "native")
    assert execute(Check("a/c", (), lambda dev: None), dev).samples is None


def test_random_numbers_depend_on_check_and_seed(dev: Device) -> None:
    def draw(id: str, seed: int) -> Any:
        dev.seed = seed
        dev.begin(id)
        return torch.rand(4, generator=dev.rng()).tolist()

    assert draw("a/b", 0) == draw("a/b", 0)
    assert draw("a/b", 0) != draw("a/c", 0)
    assert draw("a/b", 0) != draw("a/b", 1)


def test_a_fork_gives_value_status_and_traceback(dev: Device) -> None:
    dev.capabilities = frozenset({"fork"})
    assert dev.fork(lambda: 6 * 7) == (0, 42)
    status, text = dev.fork(lambda: 1 // 0)
    assert status == 1
    assert "ZeroDivisionError" in text
    assert dev.fork(lambda: __import__("os")._exit(3)) == (3, None)
    assert dev.fork(lambda: __import__("time").sleep(60), timeout=0.3) == (-9, None)


def test_formatting_never_reads_a_device_tensor() -> None:
    text = GuardedRepr().repr([torch.ones(2, device="meta"), 3])
    assert text == "[<tensor torch.float32 [2] on meta>, 3]"


def test_formatting_survives_a_repr_that_raises() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert GuardedRepr().repr(Hostile()) == "<Hostile whose repr raises RuntimeError>"


def test_a_late_error_of_an_unsupported_check_is_its_own_and_of_no_other(
    dev: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = [RuntimeError("kernel failed")]

    def synchronize(index: int | None = None) -> None:
        if late and dev.check_id == "a/queues":
            raise late.pop()

    monkeypatch.setattr(dev, "synchronize", synchronize)
    first = execute(
        Check("a/queues", (), raising(Unsupported(Stated(text="no streams"))), file=__file__), dev
    )
    assert (first.outcome, first.message) == ("error", "RuntimeError: kernel failed")
    assert not late
    assert execute(Check("a/next", (), lambda dev: None), dev).outcome == "pass"


def test_no_garbage_is_freed_while_a_check_counts_memory(dev: Device) -> None:
    freed: list[str] = []

    class Cycle:
        def __init__(self, name: str) -> None:
            self.self = self
            weakref.finalize(self, freed.append, name)

    def body(dev: Device) -> None:
        Cycle("own")
        kept: list[list[int]] = [[] for _ in range(100_000)]  # enough to look for garbage
        assert (len(kept), freed) == (100_000, [])
        gc.collect()
        assert sorted(freed) == ["earlier", "own"]

    gc.collect()
    Cycle("earlier")
    result = execute(Check("a/counts", (), body, needs=("memory_stats",), file=__file__), dev)
    assert (result.outcome, result.message) == ("pass", "")
    assert gc.isenabled()


def test_a_backend_that_exits_while_it_is_identified_is_identified(dev: Device) -> None:
    ending = Device(Descriptor(name="cpu", device_type="cpu", driver="sys.exit"))
    assert identity(ending)["driver"] == {"error": "SystemExit: "}


def test_a_pool_leaves_nothing_frozen() -> None:
    pool = Pool(Descriptor(name="cpu", device_type="cpu"), Options())
    assert gc.get_freeze_count() > 0
    pool.close()
    assert gc.get_freeze_count() == 0
