# SPDX-License-Identifier: BSD-3-Clause
"""What the runtime asks of the HAL, and what it makes of the answers: on drivers that show it."""

from __future__ import annotations

import pytest
from interpreter import Python
from suites import OVER_FAKE_CUBLAS, OVER_FAKE_CUDNN, STANDIN, needs_standin, odd

ON_STANDIN = {"PUONE_DRIVER": str(STANDIN), "PUONE_STANDIN_MEMORY": "128"}


def succeeds(python: Python, code: str, **environment: str) -> str:
    """Standard output of code that must run to its end."""
    done = python(code, env={"PUONE_DRIVER": "sim", **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_blocking_event_is_one_for_the_driver(python: Python) -> None:
    """The odd driver has no events but those that are waited for in sleep."""
    code = """
import torch, torch_puone as puone
for arguments in ({"blocking": True}, {"blocking": True, "enable_timing": True}):
    first, second = puone.Event(**arguments), puone.Event(**arguments)
    assert first.query() and isinstance(first, torch.Event) and isinstance(first, puone.Event)
    first.record()
    second.record()
    second.synchronize()
    assert first.query() and second.query()
assert first.elapsed_time(second) >= 0
try:
    puone.Event().record()
except NotImplementedError as error:
    assert "event_create" in str(error), error
else:
    raise AssertionError("an event that spins was made")
"""
    succeeds(python, code, **odd("sleeping_events"))


def test_a_tensor_goes_to_a_device_that_is_no_peer(python: Python) -> None:
    code = """
import torch, torch_puone as puone
assert puone.device_count() >= 2
assert puone.can_device_access_peer(0, 0) and not puone.can_device_access_peer(0, 1)
x = torch.arange(5, device="puone:0")
assert x.to("puone:1").cpu().tolist() == [0, 1, 2, 3, 4]
"""
    succeeds(python, code, **odd("no_peers"))


@needs_standin
@pytest.mark.parametrize("library", [{"PUONE_CUDA_BLAS": "none"}, OVER_FAKE_CUBLAS])
def test_products_round_factors_to_tf32_where_torch_allows_it(
    python: Python, library: dict[str, str]
) -> None:
    code = """
import torch, torch_puone
fine = 1 + 2.0**-12
def products(dtype):
    a, b = torch.full((2, 3, 20), fine, dtype=dtype), torch.eye(20, dtype=dtype).expand(2, 20, 20)
    a, b = a.to("puone"), b.contiguous().to("puone")
    yield from (a @ b, a[0] @ b[0], torch.addmm(a[0] * 0, a[0], b[0]), torch.baddbmm(a * 0, a, b))
def expect(number):
    for result in products(torch.float32):
        assert (result == number).all(), (result, number)
    for result in products(torch.float64):
        assert (result == fine).all(), result
expect(fine)
for precision in "high", "medium":
    torch.set_float32_matmul_precision(precision)
    expect(1)
torch.set_float32_matmul_precision("highest")
expect(fine)
torch.backends.cuda.matmul.fp32_precision = "tf32"  # of one kind of device
expect(fine)
torch.backends.mkldnn.matmul.fp32_precision = "tf32"
expect(1)
"""
    succeeds(python, code, **ON_STANDIN, **library)


ROUNDED_ONCE = """
import ctypes, os, torch, torch_puone
for dtype, exact in ((torch.float16, 2049), (torch.bfloat16, 257)):  # a multiple of 2, plus 1
    x = torch.ones(3, exact, dtype=dtype, device="puone")
    weight = torch.ones(16, exact, dtype=dtype, device="puone")
    one = torch.ones(16, dtype=dtype, device="puone")
    for rows in 3, 1:
        result = torch.nn.functional.linear(x[:rows], weight, one).cpu()
        assert (result == exact + 1).all(), result
        result = torch._addmm_activation(one, x[:rows], weight.t()).cpu()
        assert (result == exact + 1).all(), result
    assert (torch._addmm_activation(-4 * exact * one, x, weight.t()) == 0).cpu().all()
    x[0, 0] = float("nan")
    result = torch._addmm_activation(one, x, weight.t()).cpu()
    assert result[0].isnan().all() and (result[1:] == exact + 1).all(), result
for gelu in False, True:
    a, b, c = torch.randn(16), torch.randn(5, 7), torch.randn(7, 16)
    expected = torch._addmm_activation(a, b, c, use_gelu=gelu)
    result = torch._addmm_activation(*(x.to("puone") for x in (a, b, c)), use_gelu=gelu)
    torch.testing.assert_close(result.cpu(), expected)
assert not torch_puone._fallback_counts()
path = os.environ["PUONE_CUDA_BLAS"]
print("none" if path == "none" else ctypes.CDLL(path).fakeCublasLtProducts())
"""


@needs_standin
@pytest.mark.parametrize(
    ("libraries", "fused"),
    [
        ({"PUONE_CUDA_BLAS": "none"}, "none"),
        ({**OVER_FAKE_CUBLAS, "PUONE_CUDA_BLASLT": "none"}, "0"),
        (OVER_FAKE_CUBLAS, "14"),
    ],
)
def test_a_product_with_a_bias_and_an_activation_is_rounded_once(
    python: Python, libraries: dict[str, str], fused: str
) -> None:
    printed = succeeds(python, ROUNDED_ONCE, **ON_STANDIN, **libraries)
    assert printed.split()[-1] == fused


@needs_standin
def test_a_column_that_is_added_to_in_place_is_no_bias(python: Python) -> None:
    """A library may write some of the result before it has read all of the bias."""
    code = """
import torch, torch_puone
a, b = torch.arange(15.0).reshape(5, 3).to("puone"), torch.arange(3.0).reshape(3, 1).to("puone")
out = torch.arange(5.0, device="puone").reshape(5, 1)
assert out.addmm_(a, b).flatten().tolist() == [5, 15, 25, 35, 45]
"""
    succeeds(python, code, **ON_STANDIN, **OVER_FAKE_CUBLAS)


CONVOLVED = """
import ctypes, os, torch, torch_puone
from torch.nn.functional import conv1d, conv2d, conv3d, conv_transpose2d
torch.manual_seed(1)
library = os.environ["PUONE_CUDA_DNN"]
asked = lambda: None if library == "none" else ctypes.CDLL(library).fakeCudnnConvolutions()
def agree(function, x, weight, bias, expected_calls, **options):
    before = asked()
    found = []
    for device in "puone", "cpu":
        ours = [t.to(device).detach().requires_grad_() for t in (x, weight, bias)]
        result = function(*ours, **options)
        result.backward(torch.linspace(-1, 1, result.numel()).reshape(result.shape).to(device))
        found.append([result, *(t.grad for t in ours)])
    assert found[0][0].stride() == found[1][0].stride()
    for mine, theirs in zip(*found):
        torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-4, atol=1e-4)
    if before is not None:
        assert asked() - before == expected_calls, (options, asked() - before)
r = torch.randn
agree(conv2d, r(2, 4, 6, 7), r(6, 4, 3, 2), r(6), 3, padding=1)
agree(conv2d, r(2, 4, 6, 7), r(6, 2, 3, 3), r(6), 3, groups=2, dilation=2, padding=2)
# The source's gradient of a convolution with steps is in parts.
agree(conv2d, r(2, 4, 6, 7), r(6, 4, 3, 3), r(6), 2, stride=2, padding=1)
channels_last = r(2, 4, 6, 7).to(memory_format=torch.channels_last)
agree(conv2d, channels_last, r(6, 4, 3, 3), r(6), 3, padding=1)
agree(conv1d, r(2, 4, 9), r(6, 4, 3), r(6), 3)
agree(conv3d, r(2, 4, 3, 4, 5), r(6, 4, 2, 3, 2), r(6), 3, padding=1)
agree(conv_transpose2d, r(2, 6, 5, 5), r(6, 4, 3, 3), r(4), 2)
assert not torch_puone._fallback_counts()
exact = 2049  # a multiple of 2, plus 1, in float16
x = torch.ones(1, exact, 3, 3, dtype=torch.float16, device="puone")
weight = torch.zeros(16, exact, 3, 3, dtype=torch.float16)
weight[:, :, 1, 1] = 1
one = torch.ones(16, dtype=torch.float16, device="puone")
result = conv2d(x, weight.to("puone"), one, padding=1)
assert (result == exact + 1).cpu().all()
fine = 1 + 2.0**-12
x, weight = torch.full((1, 2, 4, 4), fine), torch.zeros(3, 2, 3, 3)
weight[:, 0, 1, 1] = 1
def convolved():
    return conv2d(x.to("puone"), weight.to("puone"), padding=1).cpu()
assert (convolved() == fine).all()
torch.backends.cudnn.conv.fp32_precision = "tf32"  # of one kind of device
assert (convolved() == fine).all()
torch.backends.mkldnn.conv.fp32_precision = "tf32"
assert (convolved() == (fine if library == "none" else 1)).all()
"""


@needs_standin
@pytest.mark.parametrize(
    "libraries", [{"PUONE_CUDA_BLAS": "none", "PUONE_CUDA_DNN": "none"}, OVER_FAKE_CUDNN]
)
def test_convolutions_agree_with_the_cpu(python: Python, libraries: dict[str, str]) -> None:
    succeeds(python, CONVOLVED, **ON_STANDIN, **libraries)


@needs_standin
def test_products_heed_the_precision_of_all_devices(python: Python) -> None:
    code = """
import torch, torch_puone
torch.backends.fp32_precision = "tf32"
a, b = torch.full((3, 20), 1 + 2.0**-12, device="puone"), torch.eye(20, device="puone")
assert (a @ b == 1).all()
"""
    succeeds(python, code, **ON_STANDIN, PUONE_CUDA_BLAS="none")


def test_sim_computes_products_in_full_whatever_torch_allows(python: Python) -> None:
    code = """
import torch, torch_puone
torch.set_float32_matmul_precision("medium")
fine = 1 + 2.0**-12
result = torch.full((3, 20), fine, device="puone") @ torch.eye(20, device="puone")
assert (result == fine).all(), result
"""
    succeeds(python, code)


FILL_THE_CACHE = """
import torch, torch_puone as puone
blocks = [torch.empty(1 << 20, dtype=torch.uint8, device="puone") for _ in range(100)]
del blocks
assert puone.memory_reserved() > 90 << 20 > puone.memory_allocated()
"""


@needs_standin
def test_workspace_is_tried_again_after_the_cache_is_emptied(python: Python) -> None:
    """The cache holds most of the device: a kernel that needs workspace gets it all the same."""
    code = (
        FILL_THE_CACHE
        + """
torch.use_deterministic_algorithms(True)  # sums in order need a sort
retries = puone.memory_stats()["num_alloc_retries"]
table = torch.zeros(64, device="puone")
index = (torch.arange(512 << 10) % 64).to("puone")
table.index_put_((index,), torch.ones(512 << 10, device="puone"), accumulate=True)
assert table.cpu().tolist() == [8192.0] * 64
assert puone.memory_stats()["num_alloc_retries"] > retries
"""
    )
    succeeds(python, code, **ON_STANDIN)


@needs_standin
def test_workspace_is_counted_and_limited(python: Python) -> None:
    code = """
import torch, torch_puone as puone
torch.use_deterministic_algorithms(True)  # sums in order need a sort
table = torch.zeros(64, device="puone")
index = (torch.arange(512 << 10) % 64).to("puone")
values = torch.ones(512 << 10, device="puone")
puone.synchronize()
puone.reset_peak_memory_stats()
before = puone.memory_allocated()
table.index_put_((index,), values, accumulate=True)
assert puone.memory_allocated() == before, "workspace was not given back"
assert puone.max_memory_allocated() > before + (512 << 10), "workspace was not counted"
puone.empty_cache()
puone.set_per_process_memory_fraction(puone.memory_reserved() / (128 << 20))
try:
    table.index_put_((index,), values, accumulate=True)
except torch.OutOfMemoryError as error:
    assert str(error).startswith("puone out of memory. Tried to allocate "), error
else:
    raise AssertionError("workspace was taken beyond the limit")
puone.set_per_process_memory_fraction(1.0)
table.index_put_((index,), values, accumulate=True)
assert table.cpu().tolist() == [16384.0] * 64
"""
    succeeds(python, code, **ON_STANDIN)


def test_a_drivers_error_names_the_entry_once(python: Python) -> None:
    code = """
import torch, torch_puone as puone
puone.faults.kernel_error_at(1)
torch.ones(2, device="puone")
try:
    puone.current_stream().synchronize()
except RuntimeError as error:
    text = str(error).splitlines()[0]
    assert text.startswith("puone driver error in stream_synchronize: kernel fill failed"), text
    assert text.count("stream_synchronize") == 1, text
else:
    raise AssertionError("the error was not reported")
"""
    succeeds(python, code)


def test_other_threads_run_while_one_waits_for_the_allocator(python: Python) -> None:
    """Statistics may have to wait for the allocator, which may be waiting for a device."""
    code = """
import threading, time, torch, torch_puone as puone
block = torch.empty(1 << 20, device="puone")
side = puone.Stream()
with side:
    puone._C.delay(400_000_000, 0)
block.record_stream(side)
del block
emptying = threading.Thread(target=puone.empty_cache)  # waits for the side stream
emptying.start()
time.sleep(0.05)
asking = threading.Thread(target=lambda: (puone.memory_stats(), puone.memory_snapshot()))
asking.start()
ticks = 0
while emptying.is_alive():
    time.sleep(0.005)
    ticks += 1
emptying.join(); asking.join()
assert ticks > 20, f"the interpreter stood still: {ticks} ticks"
"""
    succeeds(python, code)


@pytest.mark.parametrize("seed", ["", "3"])
def test_a_shutdown_while_threads_use_the_device_is_clean(python: Python, seed: str) -> None:
    code = """
import threading, torch, torch_puone
def work():
    x = torch.ones(64, device="puone")
    while True:
        try:
            x = (x + 1).clone()
            x.sum().item()
        except RuntimeError:  # the driver is down
            return
threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
import os, time; time.sleep(0.2)
torch_puone._exit.shutdown()
for thread in threads:
    thread.join(30)
assert not any(thread.is_alive() for thread in threads)
os._exit(0)  # CPython ends threads that want the GIL after its end, whatever they run
"""
    environment = {"PUONE_SIM_SEED": seed} if seed else {}
    for _ in range(3):
        succeeds(python, code, **environment)
