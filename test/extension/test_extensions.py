# SPDX-License-Identifier: BSD-3-Clause
"""C++ extensions with kernels of their own, as torch_puone.cpp_extension builds them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from interpreter import Python
from nvrtc import NVRTC, needs_nvrtc
from suites import CUDA, FAKE_NVRTC, NO_GPU, ROOT, STANDIN, needs_cuda_driver, needs_standin

HERE = Path(__file__).parent
EXAMPLE = ROOT / "examples" / "extension" / "swish.py"
HEADER = """
import torch, torch_puone
from torch_puone import cpp_extension
"""
Probing = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the extensions of this file are built, each once."""
    return tmp_path_factory.mktemp("extensions")


@pytest.fixture
def probe(python: Python, built: Path) -> Probing:
    """Runs code in a process that has loaded the extension `probe`."""
    sources = [str(HERE / name) for name in ("probe.cpp", "probe.pu", "throwing.pu")]
    loading = f"""
cpp_extension.load("probe", {sources!r}, is_python_module=False)
probe = torch.ops.probe
"""

    def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
        return python(
            HEADER + loading + code, timeout=300, env={"TORCH_EXTENSIONS_DIR": str(built), **env}
        )

    return run


RESULTS = """
x = torch.arange(12.0, device="puone").reshape(3, 4)
assert probe.scale(x, 3, 0.5).tolist() == (x * 0.5 + 3).tolist()
assert probe.sums(x).tolist() == x.sum(1).tolist()
assert probe.pick(x, torch.tensor([11, 0], device="puone")).tolist() == [11, 0]
assert probe.scale(x[:0], 3, 0.5).tolist() == []
"""


@pytest.mark.nightly
def test_kernels_of_an_extension_compute(probe: Probing) -> None:
    done = probe(RESULTS, PUONE_SANITIZE="raise")
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
@needs_standin
def test_the_same_extension_runs_on_another_driver(probe: Probing) -> None:
    done = probe(RESULTS, PUONE_DRIVER=str(STANDIN), PUONE_CUDA_NVRTC=str(FAKE_NVRTC))
    assert done.returncode == 0, done.stderr


def test_kernels_run_on_the_device_and_the_stream_of_their_tensors(probe: Probing) -> None:
    done = probe("""
x = torch.ones(4, device="puone:1")
probe.scale(x, 1, 2.0)  # compiles
side = torch.Stream("puone:1")
with side:
    torch.puone._sleep_ms(1500)
    y = probe.scale(x, 1, 2.0)
    assert not side.query(), "the call waited"
side.synchronize()
assert y.tolist() == [3.0] * 4 and y.device == x.device
assert torch.puone.current_device() == 0
assert probe.scale(torch.ones(4, device="puone:0"), 1, 2.0).tolist() == [3.0] * 4  # loaded on both
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("probe.pick(x, x.new_full((1,), 12).long())", "place 12 of 12 was asked for"),
        (
            "probe.scale(x.cpu(), 0, 1.0)",
            "the kernel scale of an extension was given a tensor on cpu",
        ),
        ("probe.pick(x, torch.zeros(1).long())", "the argument 2 of a kernel on puone:0 is on cpu"),
        ("probe.scale(x._neg_view(), 0, 1.0)", "call resolve_neg()"),
        ("probe.unknown(x)", "unknown"),
        (
            "probe.undefined(x)",
            "the argument 2 of the kernel scale of an extension is an undefined",
        ),
    ],
    ids=["raised", "cpu", "mixed", "negated", "unknown", "undefined"],
)
def test_a_mistake_is_an_error_that_says_so(probe: Probing, code: str, said: str) -> None:
    done = probe(f"""
x = torch.arange(12.0, device="puone")
try:
    {code}
    torch.puone.synchronize()
except Exception as error:
    assert {said!r} in str(error), error
else:
    raise AssertionError("nothing was raised")
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("second", "said"), [("out[8:]", ""), ("out[7:]", "fill")])
def test_the_sanitizer_knows_what_a_kernel_uses(probe: Probing, second: str, said: str) -> None:
    """Two streams may write parts of a tensor, if these do not overlap."""
    done = probe(
        f"""
out = torch.zeros(16, device="puone")
torch.puone.synchronize()
said = ""
try:
    for part in (out[:8], {second}):
        with torch.Stream("puone"):
            probe.fill(part, 1.0)
    torch.puone.synchronize()
except RuntimeError as error:
    said = str(error)
assert {said!r} in said and bool(said) == bool({said!r}), said
""",
        PUONE_SANITIZE="raise",
    )
    assert done.returncode == 0, done.stderr


def test_a_kernel_that_leaves_its_memory_is_named(probe: Probing) -> None:
    done = probe("probe.beyond(torch.zeros(12, device='puone')); torch.puone.synchronize()")
    assert done.returncode == -signal.SIGSEGV
    assert "kernel beyond ran out of its memory" in done.stderr


def test_the_example_is_right(python: Python, built: Path) -> None:
    done = python(EXAMPLE.read_text(), timeout=300, env={"TORCH_EXTENSIONS_DIR": str(built)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("swish: forward, gradient and compiled are right on puone:0\n")


@pytest.fixture
def device_sources(tmp_path: Path) -> list[Path]:
    """Of the example, and of this folder."""
    example = tmp_path / "swish.pu"
    example.write_text(re.findall(r'DEVICE = r"""(.*?)"""', EXAMPLE.read_text(), re.DOTALL)[0])
    return [example, HERE / "probe.pu"]


@needs_cuda_driver
@needs_nvrtc
def test_device_sources_compile_for_a_card(python: Python, device_sources: list[Path]) -> None:
    paths = list(map(str, device_sources))
    code = f'for each in {paths!r}: assert cpp_extension.compile_device_sources([each], "sm_90")'
    environment = {"PUONE_DRIVER": str(CUDA), "PUONE_CUDA_NVRTC": str(NVRTC), **NO_GPU}
    done = python(HEADER + code, env=environment)
    assert done.returncode == 0, done.stderr


def test_a_mistake_in_device_sources_has_its_file_and_line(python: Python, tmp_path: Path) -> None:
    (tmp_path / "good.pu").write_text("struct Good { Arguments arguments; };\n")
    (tmp_path / "bad.pu").write_text(
        "struct Bad { Arguments arguments; };\nint misspelt = nothing;\n"
    )
    paths = [str(tmp_path / name) for name in ("good.pu", "bad.pu")]
    done = python(HEADER + f"cpp_extension.compile_device_sources({paths!r})")
    assert done.returncode != 0
    assert "bad.pu:2" in done.stderr and "nothing" in done.stderr


@pytest.mark.nightly
def test_setuptools_builds_an_extension(tmp_path: Path, python: Python) -> None:
    (tmp_path / "one.pu").write_text(
        "struct One { Arguments arguments; float* out; int64_t extents[1]; };\n"
        "PUONE_MODULE_MAP(one, One) { args.out[i] = 1; }\n"
    )
    (tmp_path / "one.cpp").write_text("""
#include <torch/csrc/autograd/python_variable.h>
#include <torch_puone/extension.h>
static PyObject* fill(PyObject*, PyObject* given) {
  static const puone::extension::Kernel kernel("one");
  const at::Tensor& tensor = THPVariable_Unpack(given);
  kernel.map(tensor.numel(), {puone::extension::write(tensor)});
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"fill", fill, METH_O, ""}, {}};
static PyModuleDef module{PyModuleDef_HEAD_INIT, "one", "", -1, methods};
PyMODINIT_FUNC PyInit_one() { return PyModule_Create(&module); }
""")
    (tmp_path / "setup.py").write_text("""
from setuptools import setup
from torch_puone.cpp_extension import BuildExtension, PuoneExtension
setup(name="one", ext_modules=[PuoneExtension("one", ["one.cpp", "one.pu"])],
      cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False)})
""")
    path = {"PYTHONPATH": os.pathsep.join([str(ROOT / "reference_backend"), *sys.path])}
    built = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=tmp_path,
        env={**os.environ, **path},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    done = python(f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import torch, torch_puone, one
x = torch.zeros(5, device="puone")
one.fill(x)
assert x.tolist() == [1.0] * 5
""")
    assert done.returncode == 0, done.stderr


def test_what_a_kernel_throws_on_any_core_is_the_error_of_its_launch(probe: Probing) -> None:
    done = probe(
        """
y = torch.zeros(1 << 20, device="puone")
for start in (0, 1, 1 << 19, (1 << 20) - 1):
    for _ in range(20):
        probe.throwing(y, start)
        try:
            torch.puone.synchronize()
        except torch.AcceleratorError as error:
            assert "throwing" in str(error), error
        else:
            raise SystemExit(f"nothing was raised from {start}")
assert y.add_(1).sum().item() > 0
""",
        PUONE_DRIVER="sim",
        PUONE_SIM_CORES="4",
    )
    assert done.returncode == 0, done.stderr
