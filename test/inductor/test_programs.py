# SPDX-License-Identifier: BSD-3-Clause
"""What a program sees of torch.compile with inductor, besides the numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from interpreter import Python
from suites import odd

Succeeds = Callable[..., str]
HEADER = """
import os, threading
import torch, torch_puone
from torch._dynamo.utils import counters
import torch._inductor.metrics as metrics
"""


@pytest.fixture
def succeeds(python: Python, tmp_path: Path) -> Succeeds:
    def run(code: str, **env: str) -> str:
        caches = {
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
            "PUONE_MODULE_CACHE": str(tmp_path / "modules"),
        }
        done = python(HEADER + code, timeout=300, env={**caches, **env})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_results_are_on_the_device_of_the_arguments(succeeds: Succeeds) -> None:
    succeeds(
        """
f = torch.compile(lambda x: (x * 2).sum(0) + torch.zeros(8, device=x.device))
for device in ("puone:1", "puone:0"):
    out = f(torch.ones(4, 8, device=device))
    assert str(out.device) == device and out.tolist() == [8.0] * 8, out
assert torch.puone.current_device() == 0
"""
    )


def test_kernels_run_in_the_order_of_the_current_stream(succeeds: Succeeds) -> None:
    succeeds(
        """
f = torch.compile(lambda x: x * 2 + 1)
x = torch.ones(1 << 16, device="puone")
f(x)
torch.puone.synchronize()
side = torch.puone.Stream()
with torch.puone.stream(side):
    torch.puone._sleep_ms(300)
    y = f(x)
    assert not side.query(), "the call waited"
side.synchronize()
assert y.sum().item() == 3 << 16
"""
    )


def test_streams_and_questions_about_the_device_do_not_break_graphs(succeeds: Succeeds) -> None:
    succeeds(
        """
side, other = torch.puone.Stream(), torch.Stream("puone")

def f(x):
    y = x + torch.puone.device_count() + torch.puone.is_available()
    side.wait_stream(torch.puone.current_stream())
    with torch.puone.stream(side):
        z = y * 2
    torch.puone.current_stream().wait_stream(side)
    with other:
        w = x * 5
    return z, w

z, w = torch.compile(f, fullgraph=True)(torch.ones(8, device="puone"))
torch.puone.synchronize()
expected = (1 + torch.puone.device_count() + 1) * 2
assert z.tolist() == [expected] * 8 and w.tolist() == [5.0] * 8, (z, w)
"""
    )


def test_no_operator_goes_through_the_host(succeeds: Succeeds) -> None:
    succeeds(
        """
layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True).to("puone")
f = torch.compile(layer)
x = torch.randn(4, 10, 32, device="puone")
f(x)
torch.puone._reset_fallback_counts()
f(x).sum().backward()
assert torch.puone._fallback_counts() == {}, torch.puone._fallback_counts()
"""
    )


def test_a_second_call_and_a_second_size_compile_nothing(succeeds: Succeeds) -> None:
    succeeds(
        """
f = torch.compile(lambda x: torch.softmax(x, -1) + x.sum(), dynamic=True)
for n in (5, 9, 33):
    x = torch.randn(n, n + 3, device="puone")
    torch.testing.assert_close(f(x), torch.softmax(x, -1) + x.sum())
assert counters["stats"]["unique_graphs"] == 1, counters["stats"]
"""
    )


def test_training_gives_the_eager_gradients(succeeds: Succeeds) -> None:
    succeeds(
        """
import copy
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(32, 4),
).to("puone")
other = copy.deepcopy(net)
x = torch.randn(4, 3, 16, 16, device="puone")
target = torch.tensor([0, 1, 2, 3], device="puone")
for call, module in ((torch.compile(net), net), (other, other)):
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    for _ in range(2):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(call(x), target).backward()
        optimizer.step()
for one, two in zip(net.parameters(), other.parameters()):
    torch.testing.assert_close(one, two)
"""
    )


def test_dropout_of_a_checkpoint_is_repeated_in_the_backward(succeeds: Succeeds) -> None:
    succeeds(
        """
from torch.utils.checkpoint import checkpoint

def block(x):
    return torch.nn.functional.dropout(x, 0.5) * x

x = torch.ones(64, device="puone", requires_grad=True)
torch.compile(lambda x: checkpoint(block, x, use_reentrant=False).sum())(x).backward()
assert set(x.grad.tolist()) == {0.0, 4.0}, x.grad
"""
    )


def test_with_fallback_random_dropout_draws_what_eager_draws(succeeds: Succeeds) -> None:
    succeeds(
        """
import torch._inductor.config as config
config.fallback_random = True
f = lambda x: torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x)
results = []
for call in (f, torch.compile(f)):
    torch.manual_seed(3)
    results.append(call(torch.ones(64, device="puone")))
assert torch.equal(*results)
"""
    )


def test_random_numbers_of_kernels_are_uniform_normal_and_whole(succeeds: Succeeds) -> None:
    succeeds(
        """
f = torch.compile(lambda x: (torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 3, 9)))
u, n, k = (t.double().cpu() for t in f(torch.empty(1 << 18, device="puone")))
assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 5e-3 and u.unique().numel() > 1 << 17
assert abs(n.mean()) < 1e-2 and abs(n.std() - 1) < 1e-2
assert k.unique().tolist() == [3, 4, 5, 6, 7, 8]
again = f(torch.empty(1 << 18, device="puone"))[0]
assert not torch.equal(again.double().cpu(), u)
"""
    )


def test_an_index_out_of_bounds_is_an_error_of_the_device(succeeds: Succeeds) -> None:
    succeeds(
        """
f = torch.compile(lambda x, i: x[i] * 2)
f(torch.ones(8, device="puone"), torch.tensor([1, 9], device="puone"))
try:
    torch.puone.synchronize()
except torch.AcceleratorError as error:
    said = str(error)
    assert "index 9 is out of bounds for a dimension of size 8" in said and "mul" in said, said
else:
    raise AssertionError("nothing was raised")
assert (torch.ones(2, device="puone") + 1).tolist() == [2.0, 2.0]
"""
    )


def test_threads_compile_at_once(succeeds: Succeeds) -> None:
    succeeds(
        """
results = {}
def work(n):
    results[n] = torch.compile(lambda x: (x * n).sum())(torch.ones(5, device="puone")).item()
threads = [threading.Thread(target=work, args=(n,)) for n in (2, 3, 4)]
for t in threads: t.start()
for t in threads: t.join()
assert results == {2: 10.0, 3: 15.0, 4: 20.0}, results
"""
    )


def test_a_second_process_takes_everything_from_the_caches(
    succeeds: Succeeds, tmp_path: Path
) -> None:
    code = """
x = torch.ones(8, 8, device="puone")
assert torch.compile(lambda x: torch.softmax(x * 2, -1).sum(0))(x).tolist() == [1.0] * 8
print(counters["inductor"]["fxgraph_cache_hit"])
"""
    assert succeeds(code).strip() == "0"
    images = sorted(tmp_path.glob("modules/*"))
    assert images
    assert succeeds(code).strip() == "1"
    assert sorted(tmp_path.glob("modules/*")) == images


def test_another_generator_means_another_graph(succeeds: Succeeds) -> None:
    code = """
from torch_puone._inductor import identity
{change}
assert torch.compile(lambda x: x * 2)(torch.ones(2, device="puone")).tolist() == [2.0, 2.0]
print(counters["inductor"]["fxgraph_cache_hit"])
"""
    assert succeeds(code.format(change="")).strip() == "0"
    assert succeeds(code.format(change="identity.digest = lambda: 'another'")).strip() == "0"
    assert succeeds(code.format(change="")).strip() == "1"


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"CXX": "no-such-compiler"}, "CXX=no-such-compiler is not a C++ compiler"),
        (odd("no_extensions"), 'does not have the extension "module"'),
    ],
    ids=["no_compiler", "no_extension"],
)
def test_without_a_compiler_the_error_says_so(
    succeeds: Succeeds, env: dict[str, str], said: str
) -> None:
    succeeds(
        f"""
try:
    torch.compile(lambda x: x * 2)(torch.ones(2, device="puone"))
except Exception as error:
    assert {said!r} in str(error), error
else:
    raise AssertionError("nothing was raised")
assert (torch.ones(2, device="puone") * 2).tolist() == [2.0, 2.0]
assert torch.compile(lambda x: x * 2, backend="aot_eager")(torch.ones(2, device="puone")).sum() == 4
""",
        **env,
    )
