# SPDX-License-Identifier: BSD-3-Clause
"""Every rule of the coupling audit finds what it is for, and not what only looks like it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from coupling_trees import found

from torch_backend_ci.surface.coupling.rules import load

# file -> rule, or None for a generic one
NAMES = {
    "torch/cuda/streams.py": "file.directory",
    "torch/include/ATen/native/cudnn/utils.h": "file.directory",
    "torch/_inductor/codegen/cuda_combined_scheduling.py": "file.name",
    "torch/include/c10/core/impl/CUDAThing.h": "file.name",
    "torch/include/torch/csrc/distributed/c10d/NCCLUtils.hpp": "file.name",
    "torch/include/torch/csrc/THCP.h": "file.name",
    "torch/include/ATen/native/Reduce.cuh": "file.suffix",
    "torch/include/ATen/native/reduce.cu": "file.suffix",
    "torch/include/torch/csrc/distributed/c10d/NanCheck.hpp": "file.listed",
    "torch/include/torch/csrc/THConcat.h": None,
    "torch/include/ATen/MathConstants.h": None,
    "torch/include/ATen/native/hip/reduce.h": None,
    "torch/include/fmt/cuda.h": None,  # others wrote it
}

# rule -> C++ that has a hit of it, each in one line
CPP = {
    "cpp.condition": [
        "#ifdef USE_CUDA",
        "#if !defined(__CUDACC__) && X",
        "#elif __CUDA_ARCH__ >= 800",
        "#if X || \\\n  USE_CUDNN",
    ],
    "cpp.include": ["#include <ATen/cuda/CUDAContext.h>", "#include <cuda_runtime.h>"],
    "cpp.macro": ["TORCH_CUDA_CPP_API void f();", "#define C10_CUDA_CHECK(x) x"],
    "cpp.is_device": ["if (t.is_cuda()) {}", "bool is_cuda() const;"],
    "cpp.device": ["f(at::kCUDA);", "x == c10::DeviceType::CUDA", "DispatchKey::AutogradCUDA"],
    "cpp.namespace": ["at::cuda::getStream();", "namespace c10::cuda {", "using namespace cuda;"],
    "cpp.name": [
        "static CUDAHooksInterface* hooks;",
        "cudaStream_t s;",
        "at::native::abs_cuda(x);",
    ],
    "cpp.literal": ['device == "cuda"', 'Device("cuda:0")'],
}
NO_CPP = [
    "// is_cuda()",
    "/* USE_CUDA */ int x;",
    'TORCH_CHECK(false, "only cuda is supported");',
    "#endif // USE_CUDA",
    "#error CUDA is needed",
    '#pragma message("cuda")',
    "#ifdef USE_XPU",
    "#include <ATen/xpu/XPUContext.h>",
    "t.is_xpu();",
]

CMAKE = {
    "cmake.condition": ["if(USE_CUDA)", "elseif(NOT (USE_CUDNN AND X))"],
    "cmake.name": [
        "target_link_libraries(torch_cpu PRIVATE torch::cudart)",
        "list(APPEND x ${ATen_CUDA_CPP_SRCS})",
        'set(x "${CUDA_HOME}/include")',
        "find_package(CUDA)",
    ],
}
NO_CMAKE = [
    "# if(USE_CUDA)",
    "#[[ if(USE_CUDA)\n if(USE_CUDA) ]]",
    'message(STATUS "x" USE_CUDA)',
    'option(USE_X "Use X without CUDA")',
    "endif(USE_CUDA)",
    "set(x [[find_package(CUDA)]])",
]

PYTHON = {
    "py.module": [
        "torch.cuda.synchronize()",
        "s: torch.cuda.Stream",
        "if torch.backends.cudnn.enabled: pass",
        "if torch.version.cuda: pass",
        "import torch as t; t.cuda.init()",
    ],
    "py.binding": ["torch._C._cuda_init()", "torch.profiler.ProfilerActivity.CUDA"],
    "py.import": [
        "import torch.cuda",
        "from torch.cuda import Stream",
        "from . import cuda",
        "from .common_cuda import TEST",
        "from .common import TEST_CUDA",
    ],
    "py.is_device": ["if x.is_cuda: pass"],
    "py.method": ["x.cuda()", "(\n x\n .cuda(0)\n)"],
    "py.literal": [
        'torch.device("cuda")',
        'f(device="cuda:0")',
        'if x.device.type == "cuda": pass',
        'device = "cuda" if a else "cpu"',
        'def f(device="cuda"): pass',
        'x.to(f"cuda:{i}")',
        'd = {"device": "cuda"}',
    ],
    "py.device_list": [
        'if x in ("cuda", "xpu"): pass',
        'DEVICES = ["cpu", "cuda"]',
        'DEVICES = {"cuda"}',
        'x: Literal["cpu", "cuda"]',
    ],
    "py.device_table": ['backends = {"cpu": 1, "cuda": 2}'],
}
NO_PYTHON = [
    "# torch.cuda.synchronize()",
    '"cuda"',
    'def f():\n    """torch.cuda.synchronize()"""',
    'raise ValueError("expected a cuda tensor")',
    'print("cuda")',
    'x = os.path.join(root, "cuda")',
    'libraries = ["cuda"]',
    'libraries += ["cuda"]',
    'f(library_path="cuda")',
    'x = {"cuda": 1, "toolkit": 2}',
    'x = ("cuda", "toolkit")',
    'x = f"cuda version {v}"',
    "mine.cuda.synchronize()",
    "torch.accelerator.synchronize()",
    "x.is_xpu",
]


@pytest.mark.parametrize(("file", "rule"), NAMES.items())
def test_a_file_is_the_vendors_by_its_name(tmp_path: Path, file: str, rule: str | None) -> None:
    assert [(h.rule, h.file) for h in found(tmp_path, {file: ""})] == (
        [(rule, file)] if rule else []
    )


@pytest.mark.parametrize(
    ("file", "table"),
    [
        ("torch/include/c10/x.h", CPP),
        ("torch/share/cmake/x.cmake", CMAKE),
        ("torch/x.py", PYTHON),
    ],
)
def test_a_rule_finds_what_it_is_for(
    tmp_path: Path, file: str, table: dict[str, list[str]]
) -> None:
    for rule, examples in table.items():
        for number, example in enumerate(examples):
            text = f"import torch\n{example}\n" if file.endswith(".py") else f"\n{example}\n"
            rules = {hit.rule for hit in found(tmp_path / f"{rule}{number}", {file: text})}
            assert rules == {rule}, example


@pytest.mark.parametrize(
    ("file", "examples"),
    [
        ("torch/include/c10/x.h", NO_CPP),
        ("torch/share/cmake/x.cmake", NO_CMAKE),
        ("torch/x.py", NO_PYTHON),
    ],
)
def test_what_only_looks_like_coupling_is_none(
    tmp_path: Path, file: str, examples: list[str]
) -> None:
    for number, example in enumerate(examples):
        text = f"import torch\n{example}\n" if file.endswith(".py") else f"{example}\n"
        assert found(tmp_path / str(number), {file: text}) == [], example


def test_every_rule_has_an_example() -> None:
    named = {*CPP, *CMAKE, *PYTHON, *NAMES.values()} - {None}
    assert named == set(load().rules)


def test_inside_a_file_of_the_vendor_nothing_is_generic(tmp_path: Path) -> None:
    hits = found(tmp_path, {"torch/cuda/x.py": "import torch\ntorch.cuda.synchronize()\n"})
    assert [(hit.rule, hit.line) for hit in hits] == [("file.directory", 0)]


def test_a_hit_says_where_it_is(tmp_path: Path) -> None:
    source = """
        import torch
        class A:
            @property
            def f(self):
                return (
                    torch.cuda.device_count())
        """
    (hit,) = found(tmp_path, {"torch/a.py": textwrap.dedent(source)})
    assert (hit.line, hit.symbol, hit.scope) == (7, "torch.cuda.device_count", "A.f")


def test_a_decorator_above_a_function_is_read_too(tmp_path: Path) -> None:
    source = "import torch\n@g(\n  torch.cuda.device_count()\n)\ndef f(): pass\n"
    assert [hit.line for hit in found(tmp_path, {"torch/a.py": source})] == [3]


def test_the_same_word_twice_on_a_line_is_one_hit(tmp_path: Path) -> None:
    text = "f(kCUDA, kCUDA);\nf(kCUDA);\n"
    assert [hit.line for hit in found(tmp_path, {"torch/include/c10/x.h": text})] == [1, 2]


def test_the_audit_can_be_asked_for_another_vendor(tmp_path: Path) -> None:
    files = {
        "torch/xpu/x.py": "",
        "torch/cuda/x.py": "import torch\ntorch.xpu.init()\n",
        "torch/a.py": 'import torch\ntorch.xpu.synchronize()\nx.to("xpu")\ntorch.cuda.init()\n',
        "torch/include/c10/x.h": "t.is_xpu();\nIndexPutBackward x;\nf(kCUDA);\n",
    }
    hits = found(tmp_path, files, "xpu")
    assert {(hit.rule, hit.file) for hit in hits} == {
        ("file.directory", "torch/xpu/x.py"),
        ("py.module", "torch/a.py"),
        ("py.literal", "torch/a.py"),
        ("cpp.is_device", "torch/include/c10/x.h"),
    }
    replacements = {load("xpu").replacement(hit) for hit in hits if hit.rule == "py.module"}
    assert [r and r.use for r in replacements] == ["torch.accelerator.synchronize()"]
