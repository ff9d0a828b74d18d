# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile with its default backend: kernels that are generated for the device.

A compiled function is compared with the same function uncompiled, on the same device. Nothing is
taken from inductor's caches, so that what is generated now is what is judged.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import FULL, STANDARD, Device, check, in_threads, noise, raised
from torch_conformance.authoring.compiling import freshly_compiled, without_caches
from torch_conformance.checks.model import SGD, near, prepared
from torch_conformance.models import tolerance
from torch_conformance.models.training import Trainer, place
from torch_conformance.models.zoo import MODELS

Function = Callable[..., Any]

ROWS, COLUMNS = 33, 65  # no multiple of what is computed at a time


_compiled = partial(freshly_compiled, fullgraph=True)


def _without_recompiling(function: Function, *args: Any) -> Any:
    with torch.compiler.set_stance("fail_on_recompile"):
        return function(*args)


def _x(dev: Device, *shape: int, index: int = 0) -> Tensor:
    return noise(shape or (ROWS, COLUMNS)).to(dev.device(index))


def _eighths(dev: Device, *shape: int) -> Tensor:
    """Numbers of which a sum of many is exact, in any order."""
    return ((noise(shape) * 8).round() / 8).to(dev.device())


def _same(dev: Device, actual: Any, expected: Any) -> None:
    """Equal but for roundings, with the same device, type and shape."""
    if isinstance(expected, Tensor):
        dev.assert_close(actual, dev.cpu(expected))
        assert actual.device == expected.device, f"on {actual.device}, not {expected.device}"
        return
    assert len(actual) == len(expected), f"{len(actual)} results, not {len(expected)}"
    for one, other in zip(actual, expected, strict=True):
        _same(dev, one, other)


#: Capabilities beside those of the check.
_NEEDS = {"bfloat16": ("bfloat16",), "float64": ("float64",)}

# ---- the results -------------------------------------------------------------------------------

ONE = torch.tensor(1.0)  # of the CPU, as numbers that programs make are


def _extremes(x: Tensor) -> list[Tensor]:
    """Of several, the first is the one."""
    reductions = (torch.amax, torch.amin, torch.argmax, torch.argmin)
    found = [reduce(x, *dim) for dim in ((), (0,), (1,)) for reduce in reductions]
    return [*found, x.relu(), x.clamp(-0.5, 0.5), torch.maximum(x, x.flip(0))]


_PROGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "pointwise": lambda x, y: (x * y + 1).relu() - x.sigmoid().exp(),
    "broadcast": lambda x, y: x + y[:, :1] * y[:1] - 2,
    "transposed": lambda x, y: (x.t() + y.t()).contiguous() * 2,
    "sum": lambda x, y: (x.sum(), (x * y).sum(1), y.mean(0)),
    "extremes": lambda x, y: (x.amax(), y.amin(0), x.argmax(1)),
    "ties": lambda x, y: _extremes((x * 2).round().repeat(5, 1)),
    "not_a_number": lambda x, y: _extremes(torch.where(x * y > 0.1, torch.nan, x).repeat(5, 1)),
    "variance": lambda x, y: ((x + 10).var(1), torch.std(y, 0)),
    "softmax": lambda x, y: torch.softmax(x * 2 + y, -1),
    "layer_norm": lambda x, y: functional.layer_norm(x + y, (COLUMNS,), y[0], y[1]),
    "batch_norm": lambda x, y: functional.batch_norm(
        torch.stack([x, y + 3], 1)[..., None].transpose(0, 3), None, None, training=True
    ),
    "matmul": lambda x, y: functional.gelu(x @ y.t() + 1) * 2,
    "integers": lambda x, y: ((x * 9).int() // 4, (x * 9).long() % 5, (x > y) | (x < 0)),
    "casts": lambda x, y: ((x * 4).long() + 1, (y * 3).to(torch.int8), x.bool().float() + y),
    "bfloat16": lambda x, y: x.bfloat16() * y.bfloat16() + 1,
    "where": lambda x, y: torch.where(x > 0, x.abs().sqrt(), y),
    "pad": lambda x, y: functional.pad(x * y, (1, 2, 3, 0), value=7.0) + 1,
    "cat": lambda x, y: torch.cat([x[1:], y[:-1] * 2], 1)[:, 3:],
    "index": lambda x, y: x[(y[:, 0] > 0).long()] + x.gather(1, (y > 0).long()),
    "scatter": lambda x, y: torch.zeros_like(x).index_add(0, (y[:, 0] > 0).long(), x),
    "in_place": lambda x, y: x.clone().mul_(2).add_(y)[1:].sub_(1),
    "factories": lambda x, y: torch.arange(COLUMNS, device=x.device) + torch.ones_like(x) * y,
    "empty": lambda x, y: (x[:0] * 2, x[:0].sum(0), y[:, :0].sum(1)),
    "scalar": lambda x, y: x[0, 0] * y[0, 0] + 1,
    "number_of_the_cpu": lambda x, y: (torch.tensor(1.5) - x, torch.where(x > y, ONE, y) * 2),
    "number_and_product": lambda x, y: torch.addcmul(ONE, x, y, value=2),
    "attention": lambda x, y: functional.scaled_dot_product_attention(
        x[None, None], y[None, None], x[None, None], attn_mask=ONE - (x @ y.t() > 0).float()
    ),
}


@check("compile/program", "COMPILE-001", needs=("compile",), cases=_PROGRAMS, breadth=STANDARD)
def results_are_those_of_eager(dev: Device, case: str) -> None:
    """A compiled function computes what it computes uncompiled."""
    dev.require(*_NEEDS.get(case, ()))
    x, y = _x(dev), _x(dev) * 0.5 + 0.25
    function = _PROGRAMS[case]
    _same(dev, _compiled(function)(x, y), function(x, y))


_SIZES = {
    "many": (131_075,),
    "long_rows": (3, 40_001),
    "long_columns": (40_001, 3),
    "wide": (5, 129, 65),
}


@check("compile/size", "COMPILE-001", needs=("compile",), cases=_SIZES, breadth=STANDARD)
def large_results_are_those_of_eager(dev: Device, case: str) -> None:
    """The last element is computed, and sums have all of them."""
    x = _eighths(dev, *_SIZES[case])

    def function(x: Tensor) -> Any:
        return x * 2 + 1, x.sum(-1), x.amax(0), x.sum()

    _same(dev, _compiled(function)(x), function(x))


@check("compile/argument", "COMPILE-002", needs=("compile",), breadth=STANDARD)
def arguments_change_as_in_eager(dev: Device) -> None:
    """What a compiled function writes into its arguments is there, and nothing else is changed."""

    def function(x: Tensor, y: Tensor) -> Tensor:
        x[1:].mul_(2)
        return x.add_(y).sum(0)

    x, y = _x(dev), _x(dev)
    eager = x.clone()
    expected = function(eager, y)
    before = y.clone()
    _same(dev, _compiled(function)(x, y), expected)
    _same(dev, x, eager)
    dev.assert_equal(y, dev.cpu(before))


class _Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(COLUMNS, 40)
        self.norm = torch.nn.LayerNorm(40)
        self.down = torch.nn.Linear(40, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.gelu(self.norm(self.up(x))))


def _network(dev: Device) -> _Network:
    torch.manual_seed(0)
    return _Network().to(dev.device())


@check("compile/gradients", "COMPILE-003", needs=("compile",), breadth=STANDARD)
def gradients_are_those_of_eager(dev: Device) -> None:
    """Three steps of training leave the parameters that eager steps leave."""

    def train(compiled: bool) -> list[Tensor]:
        network = _network(dev)
        forward = _compiled(network) if compiled else network
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
        target = torch.arange(ROWS).to(dev.device()) % 8
        for _ in range(3):
            loss = functional.cross_entropy(forward(_x(dev)), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [p.detach() for p in network.parameters()]

    _same(dev, train(True), train(False))


@check(
    "compile/model", ("COMPILE-001", "COMPILE-003"), needs=("compile",), cases=MODELS, breadth=FULL
)
def compiled_models_train_as_on_the_cpu(dev: Device, case: str) -> None:
    """Losses, gradients and weights of a compiled model are those of the CPU, step by step."""
    module, batches = prepared(dev, case, 3)
    torch._dynamo.reset()
    model = replace(MODELS[case], loss=torch.compile(MODELS[case].loss))
    device, cpu = dev.device(), torch.device("cpu")
    with without_caches():
        actual = Trainer(model, place(module, device), device, SGD).train(batches)
    expected = Trainer(MODELS[case], place(module, cpu), cpu, SGD).train(batches)
    near(dev, actual, expected, tolerance.relative(dev, case))


# ---- when it compiles --------------------------------------------------------------------------


@check("compile/again", "COMPILE-004", needs=("compile",), breadth=STANDARD)
def a_second_call_compiles_nothing(dev: Device) -> None:
    """Arguments that differ in their values only need no other code."""

    def function(x: Tensor) -> Tensor:
        return torch.softmax(x, -1) + 1

    compiled = _compiled(function)
    compiled(_x(dev))
    other = _x(dev) * 3
    _same(dev, _without_recompiling(compiled, other), function(other))


_OTHERS: dict[str, Callable[[Tensor], Tensor]] = {
    "shape": lambda x: x[:7, :9].contiguous(),
    "strides": lambda x: x.t().contiguous().t(),
    "offset": lambda x: x[1:],
    "float64": lambda x: x.double(),
    "integer": lambda x: (x * 9).int(),
    "dimensions": lambda x: x[0],
    "gradient": lambda x: x.clone().requires_grad_(),
}


@check("compile/other", "COMPILE-005", needs=("compile",), cases=_OTHERS, breadth=STANDARD)
def other_arguments_have_other_code(dev: Device, case: str) -> None:
    """Code that was generated for some arguments is not used for arguments of another kind."""
    dev.require(*_NEEDS.get(case, ()))

    def function(x: Tensor) -> Tensor:
        return (x * 2 + 1).sum(-1)

    compiled = _compiled(function)
    x = _x(dev)
    _same(dev, compiled(x), function(x))
    other = _OTHERS[case](x)
    _same(dev, compiled(other), function(other))
    _same(dev, compiled(x), function(x))


@check("compile/dynamic", "COMPILE-006", needs=("compile",), breadth=STANDARD)
def code_for_all_sizes_is_right_for_each(dev: Device) -> None:
    """With dynamic=True one code serves all sizes; each result is that of eager."""

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2 + x.shape[0], x.sum(0)

    compiled = _compiled(function, dynamic=True)
    for count, rows in enumerate((ROWS, 1000, 3, 40_001)):
        x = _eighths(dev, rows, 5)
        actual = compiled(x) if count == 0 else _without_recompiling(compiled, x)
        _same(dev, actual, function(x))


# ---- where and when it runs --------------------------------------------------------------------


@check("compile/device", "COMPILE-007", needs=("compile", "multi_device"), breadth=STANDARD)
def results_are_on_the_device_of_the_arguments(dev: Device) -> None:
    """A compiled function runs on the device of its arguments, and leaves the current one as is."""

    def function(x: Tensor) -> Tensor:
        return (x * 2).sum(0) + torch.arange(COLUMNS, device=x.device)

    compiled = _compiled(function)
    for index in (1, 0, 1):
        x = _x(dev, index=index)
        _same(dev, compiled(x), function(x))
        assert torch.accelerator.current_device_index() == 0


_WORK: dict[str, Callable[[Tensor], Tensor]] = {
    "pointwise": lambda x: x * 2 + 1,
    "reductions": lambda x: torch.softmax(x, -1).sum(0),
    "operators": lambda x: (x @ x.t()).relu() @ x,
    "index": lambda x: x[(x[:, 0] > 0).long()] * 2,
}


@check(
    "compile/asynchronous",
    "COMPILE-008",
    needs=("compile", "streams", "delay"),
    cases=_WORK,
    breadth=STANDARD,
)
def a_call_does_not_wait_for_the_device(dev: Device, case: str) -> None:
    """A compiled function is queued on the current stream, without a round trip to the host."""
    x = _x(dev)
    function = _WORK[case]
    expected = function(x)
    compiled = _compiled(function)
    compiled(x)
    dev.synchronize()
    stream = dev.stream()
    with stream:
        dev.delay(400.0)
        actual = compiled(x)
        waited = stream.query()
    stream.synchronize()
    _same(dev, actual, expected)
    assert not waited, "the call returned only after the work that was queued before it"


@check("compile/order", "COMPILE-009", needs=("compile", "streams", "delay"), breadth=STANDARD)
def kernels_keep_the_order_of_the_stream(dev: Device) -> None:
    """They read what was written before them on the current stream, and are read after it."""

    def function(x: Tensor) -> Tensor:
        return x.sum(0) * 2

    compiled = _compiled(function)
    x = torch.zeros(ROWS, COLUMNS, device=dev.device())
    compiled(x)
    dev.synchronize()
    for step in (1.0, 2.0):
        stream = dev.stream()
        with stream:
            dev.delay(50.0)
            x.fill_(step)
            actual = compiled(x) + 1
        stream.synchronize()
        assert dev.cpu(actual).tolist() == [ROWS * step * 2 + 1] * COLUMNS, f"step {step}"


@check("compile/threads", "COMPILE-010", needs=("compile", "threads"), breadth=STANDARD)
def threads_compile_side_by_side(dev: Device) -> None:
    """Two threads compile functions at the same time, and each has its own results."""
    x = _x(dev)
    functions: list[Function] = [lambda x: x * 2 + 1, lambda x: (x - 3).sum(0)]
    compiled = [_compiled(function) for function in functions]
    found = in_threads([partial(lambda f: [f(x) for _ in range(3)], f) for f in compiled])
    for results, function in zip(found, functions, strict=True):
        _same(dev, results, [function(x)] * 3)


@check(
    "compile/bounds",
    "COMPILE-011",
    needs=("compile", "deferred_errors", "error_recovery"),
    breadth=STANDARD,
)
def an_index_out_of_bounds_is_an_error(dev: Device) -> None:
    """A generated kernel checks the indices that come from data."""
    compiled = _compiled(lambda x, i: x[i] * 2)
    x, good = _x(dev), torch.tensor([0, ROWS - 1], device=dev.device())
    _same(dev, compiled(x, good), x[good] * 2)

    def use() -> None:
        compiled(x, good + 1)
        dev.synchronize()

    error = raised(use)
    assert isinstance(error, (IndexError, RuntimeError)), f"{error!r} was raised"
    _same(dev, compiled(x, good), x[good] * 2)


# ---- with the rest of PyTorch ------------------------------------------------------------------


@check("compile/random", "COMPILE-012", needs=("compile", "generator"), breadth=STANDARD)
def random_numbers_follow_the_seed(dev: Device) -> None:
    """Equal seeds give equal numbers, and a call moves the generator on."""
    compiled = _compiled(lambda x: functional.dropout(x, 0.5) + torch.rand_like(x))
    x = torch.ones(1000, device=dev.device())
    drawn = []
    for _ in range(2):
        torch.manual_seed(3)
        drawn.append([dev.cpu(compiled(x)) for _ in range(2)])
    assert torch.equal(drawn[0][0], drawn[1][0]), "equal seeds gave other numbers"
    assert torch.equal(drawn[0][1], drawn[1][1]), "equal seeds gave other numbers at a second call"
    assert not torch.equal(drawn[0][0], drawn[0][1]), "two calls drew the same numbers"


@check("compile/fallback_random", "COMPILE-012", needs=("compile", "generator"), breadth=STANDARD)
def random_numbers_can_be_those_of_eager(dev: Device) -> None:
    """With fallback_random the numbers are those that eager operators draw."""

    def function(x: Tensor) -> Tensor:
        return functional.dropout(x, 0.3) * 2 + torch.rand_like(x)

    x = torch.ones(1000, device=dev.device())
    torch.manual_seed(4)
    expected = function(x)
    torch.manual_seed(4)
    _same(dev, _compiled(function, fallback_random=True)(x), expected)


@check("compile/autocast", "COMPILE-013", needs=("compile", "autocast"), breadth=STANDARD)
def autocast_reaches_compiled_code(dev: Device) -> None:
    """Under autocast a compiled product has the type that the eager one has."""
    dtype = torch.get_autocast_dtype(dev.type)

    def function(x: Tensor) -> Tensor:
        with torch.autocast(dev.type, dtype=dtype):
            return x @ x.t() * 2

    x = _x(dev)
    expected = function(x)
    actual = _compiled(function)(x)
    assert actual.dtype is expected.dtype, f"{actual.dtype}, not {expected.dtype}"
    _same(dev, actual, expected)


@check("compile/export", "COMPILE-014", needs=("compile",), breadth=STANDARD)
def an_exported_program_is_compiled(dev: Device) -> None:
    """torch.export takes a module on the device; its program computes the same, compiled or not."""
    network = _network(dev)
    x = _x(dev)
    with torch.no_grad():
        expected = network(x)
        program = torch.export.export(network, (x,)).module()
        _same(dev, program(x), expected)
        _same(dev, _compiled(program)(x), expected)


_QUESTIONS: dict[str, Callable[[Any, Tensor], Any]] = {
    "device_count": lambda module, x: x + module.device_count(),
    "is_available": lambda module, x: x + int(module.is_available()),
    "current_device": lambda module, x: x + torch.accelerator.current_device_index(),
}


@check("compile/questions", "COMPILE-015", needs=("compile",), cases=_QUESTIONS, breadth=STANDARD)
def questions_about_the_device_do_not_break_graphs(dev: Device, case: str) -> None:
    """A function that asks the device module something is still one graph."""
    module = torch.get_device_module(dev.type)
    function = _QUESTIONS[case]
    x = _x(dev)
    _same(dev, _compiled(lambda x: function(module, x))(x), function(module, x))


_ASKED = """
module = torch.get_device_module(torch.device(D).type)
asking = torch.compile(lambda x: x * module.device_count(), backend="eager", fullgraph=True)
assert asking(torch.ones(7, device=D))[0].item() == module.device_count()
"""


@check("compile/questions_late", "COMPILE-015", needs=("compile",), breadth=FULL)
def a_backend_that_comes_after_the_compiler_answers_too(dev: Device) -> None:
    """The same where the backend is imported after torch.compile's own modules."""
    if not dev.descriptor.imports.after_torch:
        dev.unsupported("the descriptor names no module to import after torch")
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    _python(dev, _ASKED, between="import torch._dynamo", env=off)


@check("compile/reduce_overhead", "COMPILE-016", needs=("compile", "graphs"), breadth=STANDARD)
def reduce_overhead_replays_graphs(dev: Device) -> None:
    """mode="reduce-overhead" captures the kernels of a function and replays them."""
    from torch._dynamo.utils import counters

    counters.clear()
    compiled = _compiled(lambda x: (x * 2).sum(0), mode="reduce-overhead")
    x = _x(dev)
    for _ in range(4):
        _same(dev, compiled(x), (x * 2).sum(0))
    skipped = counters["inductor"]["cudagraph_skips"]
    assert skipped == 0, "the function was not captured as a graph"


class _DoubledSums(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x * 2).sum(0)


@check("compile/ahead_of_time", "COMPILE-019", needs=("compile",), breadth=STANDARD)
def a_package_runs_without_compiling(dev: Device) -> None:
    """An exported program is compiled into a package, which is loaded and called."""
    import torch._inductor

    module, x = _DoubledSums().to(dev.device()), _x(dev)
    program = torch.export.export(module, (x,))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "doubled_sums.pt2")
        torch._inductor.aoti_compile_and_package(program, package_path=path)
        _same(dev, torch._inductor.aoti_load_package(path)(x), module(x))


# ---- several processes -------------------------------------------------------------------------


def _python(dev: Device, code: str, **options: Any) -> str:
    """What a fresh process prints, in which D is the device."""
    done = dev.python(f"D = {str(dev.device())!r}\n{code}", **options)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@check("compile/cache", "COMPILE-017", needs=("compile",), breadth=STANDARD)
def a_graph_is_found_in_the_cache(dev: Device) -> None:
    """What was compiled once is not generated again."""
    import torch._inductor.config as inductor
    from torch._dynamo.utils import counters

    x = _x(dev)
    found = []
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, _cache_in(folder)):
        for _ in range(2):
            torch._dynamo.reset()
            counters.clear()
            with inductor.patch(fx_graph_cache=True, force_disable_caches=False):
                _same(dev, torch.compile(_softmax_of_double)(x), _softmax_of_double(x))
            found.append(counters["inductor"]["fxgraph_cache_hit"])
    assert found == [0, 1], f"{found} graphs were found in the cache"


def _softmax_of_double(x: Tensor) -> Tensor:
    return torch.softmax(x * 2, -1)


def _cache_in(folder: str) -> dict[str, str]:
    return {"TORCHINDUCTOR_CACHE_DIR": folder}


_CACHED = """
from torch._dynamo.utils import counters
x = torch.ones(8, 8, device=D)
assert torch.compile(lambda x: torch.softmax(x * 2, -1).sum())(x).item() == 8.0
print("HITS", counters["inductor"]["fxgraph_cache_hit"])
"""


@check("compile/cache_of_processes", "COMPILE-017", needs=("compile",), breadth=FULL)
def a_second_process_takes_the_graph_from_the_cache(dev: Device) -> None:
    """What one process compiled, the next one finds."""
    with tempfile.TemporaryDirectory() as folder:
        printed = [_python(dev, _CACHED, env=_cache_in(folder)) for _ in range(2)]
    hits = [text.rpartition("HITS ")[2].strip() for text in printed]
    assert hits == ["0", "1"], f"the processes found {hits} graphs in the cache"


_FORKED = """
import os, sys
x = torch.ones(7, 9, device=D)
f = torch.compile(lambda x: (x * 2).sum())
assert f(x).item() == 126.0
child = os.fork()
if child == 0:
    sys.exit(int(torch.ones(2).sum().item() != 2.0))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert f(x).item() == 126.0
"""


@check("compile/fork", "COMPILE-018", needs=("compile", "fork"), breadth=STANDARD)
def a_process_that_compiled_can_fork(dev: Device) -> None:
    """A child that computes on the CPU ends as any process, and the parent goes on."""
    _python(dev, _FORKED)
