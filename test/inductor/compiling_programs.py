# SPDX-License-Identifier: BSD-3-Clause
"""What programs see that compile with inductor, besides the numbers: name and code of each.

`python compiling_programs.py OUTPUT` runs them in one process, because to load inductor takes
seconds, and writes what each raised, "" if nothing.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

HEADER = """
import os, threading
import torch, torch_puone
import torch._inductor.config as config
from torch._dynamo.utils import counters
config.fallback_random = False
torch._dynamo.reset()
counters.clear()
"""
PROGRAMS = {
    "results_are_on_the_device_of_the_arguments": """
f = torch.compile(lambda x: (x * 2).sum(0) + torch.zeros(8, device=x.device))
for device in ("puone:1", "puone:0"):
    out = f(torch.ones(4, 8, device=device))
    assert str(out.device) == device and out.tolist() == [8.0] * 8, out
assert torch.puone.current_device() == 0
""",
    "kernels_run_in_the_order_of_the_current_stream": """
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
""",
    "streams_and_questions_about_the_device_do_not_break_graphs": """
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
""",
    "no_operator_goes_through_the_host": """
layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True).to("puone")
f = torch.compile(layer)
x = torch.randn(4, 10, 32, device="puone")
f(x)
torch.puone._reset_fallback_counts()
f(x).sum().backward()
assert torch.puone._fallback_counts() == {}, torch.puone._fallback_counts()
""",
    "a_second_call_and_a_second_size_compile_nothing": """
f = torch.compile(lambda x: torch.softmax(x, -1) + x.sum(), dynamic=True)
for n in (5, 9, 33):
    x = torch.randn(n, n + 3, device="puone")
    torch.testing.assert_close(f(x), torch.softmax(x, -1) + x.sum())
assert counters["stats"]["unique_graphs"] == 1, counters["stats"]
""",
    "sizes_that_change_are_passed_to_kernels": """
def same(function, *shapes):
    compiled = torch.compile(function, dynamic=True)
    for shape in shapes:
        x = torch.randn(*shape, device="puone")
        torch.testing.assert_close(compiled(x), function(x))

same(lambda x: x.softmax(0), (33, 70), (9, 65))
same(lambda x: x * (x.shape[0] / 2), (3, 5), (4, 9))
same(lambda x: torch.full_like(x, x.shape[0] / 4), (3, 5), (7, 9))
same(lambda x: ((x * 2).sum(0), (x[1:] * 3).sum(1), x[:, 2:].reshape(-1) + 1), (9, 5), (4, 70))
same(lambda x: (x.t().contiguous() + 1, x.sum(0), x.var(1)), (33, 70), (65, 9))
same(lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]).mean(0), (33, 70), (6, 129))
""",
    "sizes_that_come_from_data_may_be_0": """
torch._dynamo.config.capture_dynamic_output_shape_ops = True

def chosen(x, mask):
    y = x[:, mask.nonzero().squeeze(1)] * 2 + 1
    return y, y.sum(0), y.sum(1), y.t().contiguous() + 3

compiled = torch.compile(chosen, fullgraph=True, dynamic=True)
x, places = torch.randn(40, 400, device="puone"), torch.arange(400, device="puone")
for n in (300, 0, 70, 129):
    torch.testing.assert_close(compiled(x, places < n), chosen(x, places < n))
""",
    "sums_over_what_was_not_written_whole_raise_no_alarm": """
with torch.puone.sanitizer.watch("raise"):
    e = torch.empty(64, device="puone")
    e[::2] = 1
    torch.compile(lambda x: x[::2].repeat_interleave(2) + 1)(e)
    t = torch.empty(32, device="puone")
    t[:11].fill_(1)
    torch.compile(lambda x: x.as_strided((8, 4), (1, 1)) * 2)(t)
    torch.puone.synchronize()
""",
    "negated_arguments_are_refused": """
x = torch.imag(torch.randn(5, 64, dtype=torch.complex64, device="puone").conj())
try:
    torch.compile(lambda x: x * 2)(x)
except RuntimeError as error:
    assert "resolve_neg()" in str(error), error
else:
    raise AssertionError("nothing was raised")
""",
    "training_gives_the_eager_gradients": """
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
""",
    "dropout_of_a_checkpoint_is_repeated_in_the_backward": """
from torch.utils.checkpoint import checkpoint

def block(x):
    return torch.nn.functional.dropout(x, 0.5) * x

for backend in ("inductor", "aot_eager"):
    x = torch.ones(64, device="puone", requires_grad=True)
    f = torch.compile(lambda x: checkpoint(block, x, use_reentrant=False).sum(), backend=backend)
    f(x).backward()
    assert set(x.grad.tolist()) == {0.0, 4.0}, x.grad
""",
    "with_fallback_random_dropout_draws_what_eager_draws": """
config.fallback_random = True
f = lambda x: torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x)
results = []
for call in (f, torch.compile(f)):
    torch.manual_seed(3)
    results.append(call(torch.ones(64, device="puone")))
assert torch.equal(*results)
""",
    "random_numbers_of_kernels_are_uniform_normal_and_whole": """
f = torch.compile(lambda x: (torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 3, 9)))
u, n, k = (t.double().cpu() for t in f(torch.empty(1 << 18, device="puone")))
assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 5e-3 and u.unique().numel() > 1 << 17
assert abs(n.mean()) < 1e-2 and abs(n.std() - 1) < 1e-2
assert k.unique().tolist() == [3, 4, 5, 6, 7, 8]
again = f(torch.empty(1 << 18, device="puone"))[0]
assert not torch.equal(again.double().cpu(), u)
""",
    "an_index_out_of_bounds_is_an_error_of_the_device": """
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
""",
    "assertions_of_a_graph_are_errors_of_the_device": """
@torch.compile
def f(x):
    for k in range(6):
        torch._assert_async((x != k).all(), f"there is a {k} {{}}")
    return x + 1

assert f(torch.full((3,), 9.0, device="puone")).tolist() == [10.0] * 3
for k, text in ((1, "there is a 1 { }"), (5, "one of several assertions failed")):
    f(torch.tensor([9.0, k, 9.0], device="puone"))
    try:
        torch.puone.synchronize()
    except torch.AcceleratorError as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"nothing was raised for {k}")
""",
    "threads_compile_at_once": """
results = {}
def work(n):
    results[n] = torch.compile(lambda x: (x * n).sum())(torch.ones(5, device="puone")).item()
threads = [threading.Thread(target=work, args=(n,)) for n in (2, 3, 4)]
for t in threads: t.start()
for t in threads: t.join()
assert results == {2: 10.0, 3: 15.0, 4: 20.0}, results
""",
}


def raised(code: str) -> str:
    try:
        exec(HEADER + code, {})
    except BaseException:
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    found = {name: raised(code) for name, code in PROGRAMS.items()}
    Path(sys.argv[1]).write_text(json.dumps(found))
