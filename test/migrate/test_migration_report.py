# SPDX-License-Identifier: BSD-3-Clause
"""A report lists the uses of CUDA in a file, and nothing that only looks like one."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from torch_puone.migrate.__main__ import main
from torch_puone.migrate.uses import uses

TYPE = "torch.accelerator.current_accelerator().type"


def found(code: str) -> list[tuple[int, int, str]]:
    """(line, column, what) of each use."""
    _, places = uses(dedent(code).encode())
    return [(place.start.line, place.start.column, place.what) for place in places]


def names(code: str) -> list[str]:
    return [what for _, _, what in found(code)]


def advice(code: str) -> str:
    _, [place] = uses(dedent(code).encode())
    return place.advice


def test_a_name_is_found_with_its_line_and_column() -> None:
    assert found(
        "import torch\n\nif torch.cuda.is_available():\n    torch.cuda.synchronize()\n"
    ) == [
        (3, 4, "torch.cuda.is_available"),
        (4, 5, "torch.cuda.synchronize"),
    ]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import torch.cuda as tc\ntc.synchronize()", "torch.cuda.synchronize"),
        ("from torch import cuda\ncuda.synchronize()", "torch.cuda.synchronize"),
        ("from torch.cuda import amp\namp.autocast()", "torch.cuda.amp.autocast"),
        ("from torch.cuda.amp import autocast as a\na()", "torch.cuda.amp.autocast"),
        ("import torch as t\nt.cuda.Stream()", "torch.cuda.Stream"),
        ("import torch.backends.cudnn as c\nc.benchmark = 1", "torch.backends.cudnn.benchmark"),
        ("def f():\n  import torch\n  torch.cuda.init()", "torch.cuda.init"),
    ],
)
def test_a_name_is_found_under_each_import(code: str, expected: str) -> None:
    assert names(code)[-1] == expected


@pytest.mark.parametrize(
    "code",
    [
        "cuda = object()\ncuda.synchronize()",
        "import other as torch\ntorch.cuda.synchronize()",
        "class A:\n  def cuda(self): pass",
        "args.cuda = True\nif args.cuda: pass",
        "import numpy.cuda",
        "torch.cuda.synchronize()",  # not imported here: another thing of that name
    ],
)
def test_names_that_only_look_like_cuda_are_left_out(code: str) -> None:
    assert names(code) == []


@pytest.mark.parametrize(
    "use",
    [
        "torch.device('cuda')",
        "torch.device('cuda:1')",
        "torch.ones(2, device='cuda')",
        "torch.autocast('cuda')",
        "torch.autocast(device_type='cuda')",
        "torch.load(f, map_location='cuda:0')",
        "torch.Generator('cuda')",
        "x.to('cuda')",
        "model.to(device='cuda', dtype=d)",
        "DataLoader(d, pin_memory_device='cuda')",
        "init_device_mesh('cuda', (2,))",
        "train(model, 'cuda')",
        "device = 'cuda'",
        "self.device: str = 'cuda:0'",
        "where = 'cuda' if ok else 'cpu'",
        "def f(device='cuda'): pass",
        "config = {'device': 'cuda'}",
        "for device in ['cpu', 'cuda']: pass",
        "def get_device():\n  return 'cuda'",
        "parser.add_argument('--device', default='cuda')",
        "parser.add_argument('--device', choices=['cpu', 'cuda'])",
        "x.device.type == 'cuda'",
        "'cuda' in device",
        "x.device.type in ('cuda', 'cpu')",
        "{'cuda': 1}[x.device.type]",
        "match x.device.type:\n  case 'cuda': pass",
        "match x.device.type:\n  case 'cpu' | 'cuda': pass",
        "args.device.startswith('cuda')",
        "device = f'cuda:{rank}'",
        "device = 'cuda:' + str(rank)",
        "device = 'cuda:%d' % rank",
        "device = 'cuda:{}'.format(rank)",
    ],
)
def test_a_string_that_is_a_device_is_found(use: str) -> None:
    [what] = names(f"import torch\n{use}\n")
    assert "cuda" in what
    said = advice(f"import torch\n{use}\n")
    assert said.startswith((f"write {TYPE}", f'write f"{{{TYPE}}}:'))


@pytest.mark.parametrize(
    "code",
    [
        "'cuda'",
        "print('cuda')",
        "times['cuda']",
        "times = {'cuda': 1}",
        "parser.add_argument('--cuda')",
        "parser.add_argument('--mode', default='cuda')",
        "help = 'uses cuda'",
        "open('cuda')",
        "options.get('cuda')",
        "logger.info('cuda')",
        "raise ValueError('cuda')",
        "mode == 'cuda'",
        "'cuda' if 'cuda' == mode else 1",
        "device = 'a' if 'cuda' else 'cpu'",
        "name = 'cuda'",
        "f'on cuda:{rank}'",
        "device = 'cudnn'",
        "device = b'cuda'",
        "torch.autograd.profiler.profile(use_cuda=False)",
        "train(use_cuda=True)",
    ],
)
def test_a_string_that_only_looks_like_a_device_is_left_out(code: str) -> None:
    assert names(f"import torch\n{code}\n") == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("dist.init_process_group('nccl')", 'the process group backend "nccl"'),
        ("dist.init_process_group(backend='nccl')", 'the process group backend "nccl"'),
        ("backend = 'nccl' if gpu else 'gloo'", 'the process group backend "nccl"'),
        ("backend = 'cpu:gloo,cuda:nccl'", 'the process group backend "nccl"'),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = '0'", "CUDA_VISIBLE_DEVICES"),
        ("x.type('torch.cuda.FloatTensor')", '"torch.cuda.FloatTensor"'),
        ("x.cuda(non_blocking=True)", ".cuda()"),
        ("x.is_cuda", ".is_cuda"),
        ("getattr(torch.cuda, 'synchronize')()", "torch.cuda.synchronize"),
        ("use = torch.cuda", "torch.cuda"),
        ("torch.version.cuda", "torch.version.cuda"),
        ("torch.autograd.profiler.profile(use_cuda=True)", "profile(use_cuda=True)"),
        ("torch.cuda.memory.memory_allocated()", "torch.cuda.memory.memory_allocated"),
        (
            "activities = [torch.profiler.ProfilerActivity.CUDA]",
            "torch.profiler.ProfilerActivity.CUDA",
        ),
    ],
)
def test_other_uses_are_found(code: str, expected: str) -> None:
    assert names(f"import torch, os\n{code}\n") == [expected]


def test_a_backend_in_other_words_is_left_out() -> None:
    assert names("import torch\nprint('nccl')\nlibrary = 'nccl'\nload('nccl')\n") == []


def test_what_a_function_of_cuda_returns_is_not_a_name_of_cuda() -> None:
    assert names("import torch\ntorch.cuda.current_stream().wait_stream(s)\n") == [
        "torch.cuda.current_stream"
    ]
    assert names("import torch\nn = torch.cuda.get_device_properties(0).total_memory\n") == [
        "torch.cuda.get_device_properties"
    ]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "torch.backends.cudnn.flags()",
            "has no effect on other devices; it has the settings of cuDNN",
        ),
        ("torch.cuda._sleep(1)", "look whether torch.get_device_module() has it"),
    ],
)
def test_names_without_a_row_have_advice(code: str, expected: str) -> None:
    assert advice(f"import torch\n{code}\n") == expected


def test_the_advice_says_when_there_is_no_equivalent() -> None:
    text = advice("import torch\ntorch.cuda.utilization()\n")
    assert text.startswith("has no equivalent: ")


def test_a_report_as_json_has_all_that_the_text_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.py"
    file.write_text("import torch\ntorch.cuda.synchronize()\nx = y.is_cuda\n")
    assert main(["--report", str(file)]) == 1
    text = capsys.readouterr().out
    assert text == (
        f"{file}:2:1: torch.cuda.synchronize: write torch.accelerator.synchronize [*]\n"
        f"{file}:3:7: .is_cuda: write .device.type == {TYPE}\n"
        "2 uses of CUDA in 1 file; --fix changes 1 of them [*]\n"
    )
    assert main(["--report", "--format", "json", str(file)]) == 1
    assert json.loads(capsys.readouterr().out) == [
        {
            "path": str(file),
            "line": 2,
            "column": 1,
            "what": "torch.cuda.synchronize",
            "advice": "write torch.accelerator.synchronize",
            "fixable": True,
        },
        {
            "path": str(file),
            "line": 3,
            "column": 7,
            "what": ".is_cuda",
            "advice": f"write .device.type == {TYPE}",
            "fixable": False,
        },
    ]


def test_a_file_without_cuda_is_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.py"
    file.write_text("import torch\ntorch.accelerator.synchronize()\n")
    assert main(["--report", str(file)]) == 0
    assert capsys.readouterr().out == "0 uses of CUDA in 1 file; --fix changes 0 of them [*]\n"


def test_directories_are_searched_and_hidden_ones_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("b/c.py", "a.py", ".venv/d.py", "e.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("import torch\ntorch.cuda.synchronize()\n")
    assert main(["--report", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()[:-1]
    assert [line.partition(":")[0] for line in lines] == [
        str(tmp_path / "a.py"),
        str(tmp_path / "b" / "c.py"),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"import torch\nx = (\n", ":2:5: not Python: '(' was never closed"),
        (b"x = 1\ny = = 2\n", ":2:"),
        (b"x = '\xff'\n", "not Python"),
        (b"# coding: nonsense\n", "unknown encoding"),
        (b"x = 1\0\n", "null bytes"),
    ],
)
def test_a_file_that_is_not_python_is_named_and_the_others_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    (tmp_path / "a.py").write_bytes(content)
    (tmp_path / "b.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    for command in ("--report", "--fix"):
        assert main([command, str(tmp_path)]) == 2
        output = capsys.readouterr()
        assert output.err.startswith(str(tmp_path / "a.py"))
        assert said in output.err
        assert "torch.accelerator.synchronize" in output.out


def test_a_file_with_another_suffix_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.ipynb"
    file.write_text('{"cells": ["cuda"]}')
    assert main(["--report", str(file)]) == 2
    assert capsys.readouterr().err == f"{file}: not a Python file, by its suffix\n"


def test_one_use_is_counted_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.py"
    file.write_text("import torch\ntorch.cuda.synchronize()\n")
    assert main(["--report", str(file)]) == 1
    assert "\n1 use of CUDA in 1 file; " in capsys.readouterr().out
    assert main(["--fix", "--write", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: 1 place changed\n"


def test_a_path_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--report", "no/such/file.py"])
    assert ended.value.code == 2
    assert "no/such/file.py: there is no such file or directory" in capsys.readouterr().err


def test_libcst_is_asked_for_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith("torch_puone.migrate.")]:
        if name.rpartition(".")[2] in ("uses", "strings"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "libcst", None)
    with pytest.raises(SystemExit) as ended:
        main(["--report", "."])
    assert ended.value.code == 2
    assert "pip install libcst" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("h = torch.cuda.Stream().cuda_stream", ["it has no cuda_stream", "write .native_handle"]),
        ("torch.set_default_device('cuda')", ["this works without an accelerator"]),
        ("x.cuda(rank)", ["write .to(device=rank) if rank is never None"]),
        ("x.cuda(1)", ["write .to(device=1)"]),
        ("x.to(f'cuda:{rank}')", [f'write f"{{{TYPE}}}:{{rank}}"']),
        ("x.to('cuda:%d' % rank)", [f'write f"{{{TYPE}}}:{{rank}}"']),
        ("x.to('cuda:{}'.format(rank))", [f'write f"{{{TYPE}}}:{{rank}}"']),
        ("x.to('cuda:' + str(rank))", [f'write f"{{{TYPE}}}:{{rank}}"']),
        ("x.to('cuda:1')", [f'write f"{{{TYPE}}}:1"']),
    ],
)
def test_the_advice_says_what_to_write_here(code: str, said: list[str]) -> None:
    _, places = uses(f"import torch\n{code}\n".encode())
    for text, place in zip(said, places, strict=True):
        assert text in place.advice


def test_a_file_that_does_not_name_torch_is_told_what_fix_needs() -> None:
    assert "--fix needs `import torch`" in uses(b"from torch import nn\nx.cuda()\n")[1][0].advice


def test_a_method_in_a_file_without_torch_is_no_use() -> None:
    assert names("import other\nother.Device().cuda()\nx.is_cuda\n") == []
