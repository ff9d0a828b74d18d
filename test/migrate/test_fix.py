# SPDX-License-Identifier: BSD-3-Clause
"""--fix changes what means the same before and after, and nothing else of a file."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
import torch

import torch_puone  # noqa: F401 - the device
from torch_puone.migrate import fix
from torch_puone.migrate.__main__ import main
from torch_puone.migrate.uses import uses

TYPE = "torch.accelerator.current_accelerator().type"
DEVICE = "torch.accelerator.current_accelerator()"


def fixed(code: str) -> str:
    return fix.fixed(*uses(code.encode()))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.cuda.synchronize()", "torch.accelerator.synchronize()"),
        ("torch.cuda.set_device(rank)", "torch.accelerator.set_device_index(rank)"),
        ("n = torch.cuda.device_count()", "n = torch.accelerator.device_count()"),
        ("s = torch.cuda.Stream()", "s = torch.Stream()"),
        ("x.cuda()", f"x.to(device={DEVICE})"),
        ("x.cuda( )", f"x.to( device={DEVICE})"),
        ("x.cuda(non_blocking=True)", f"x.to(device={DEVICE}, non_blocking=True)"),
        ("x.cuda(1)", "x.to(device=1)"),
        ("f(x.cuda()).cuda()", f"f(x.to(device={DEVICE})).to(device={DEVICE})"),
        ("d = torch.device('cuda')", f"d = torch.device({TYPE})"),
        ("x.to('cuda:1')", f'x.to(f"{{{TYPE}}}:1")'),
        ("torch.ones(2, device='cuda')", f"torch.ones(2, device={TYPE})"),
        ("torch.device('cuda' if use else 'cpu')", f"torch.device({TYPE} if use else 'cpu')"),
        (
            "d = 'cuda' if torch.cuda.is_available() else 'cpu'",
            f"d = {TYPE} if torch.accelerator.is_available() else 'cpu'",
        ),
        (
            "try: pass\nexcept torch.cuda.OutOfMemoryError: pass",
            "try: pass\nexcept torch.OutOfMemoryError: pass",
        ),
    ],
)
def test_what_means_the_same_is_changed(before: str, after: str) -> None:
    assert fixed(f"import torch\n{before}\n") == f"import torch\n{after}\n"


@pytest.mark.parametrize(
    "code",
    [
        "import torch\ntorch.cuda.synchronize(device=d)",  # the parameter has another name
        "import torch\ntorch.cuda.synchronize(**options)",
        "import torch\ntorch.cuda.manual_seed(3)",  # without CUDA it does nothing
        "import torch\ntorch.cuda.utilization()",
        "import torch\ntorch.cuda.get_device_capability() >= (8, 0)",
        "import torch\ntorch.cuda.is_available = lambda: False",
        "import torch\ntorch.backends.cudnn.benchmark = True",
        "import torch\nx.cuda(rank)",  # None is possible
        "import torch\nx.cuda(*where)",
        "import torch\nx.cuda(device=0)",
        "import torch\nx.is_cuda",
        "import torch\ndevice = 'cuda'",  # it may be read where there is no accelerator
        "import torch\ndef f(device='cuda'): pass",
        "import torch\nparser.add_argument('--device', default='cuda')",
        "import torch\nif device.type == 'cuda': pass",
        # On a machine without an accelerator these do nothing, and the replacement fails.
        "import torch\ntorch.cuda.amp.autocast(enabled=a)",
        "import torch\ntorch.cuda.amp.GradScaler()",
        "import torch\ntorch.autocast('cuda')",
        "import torch\ntorch.amp.GradScaler('cuda')",
        "import torch\ntorch.cuda.empty_cache()",
        "import torch\nn = torch.cuda.memory_allocated()",
        "import torch\nclass A:\n  def cuda(self): pass\nA().cuda()",
        "import torch\ngetattr(torch.cuda, name)()",
        "import torch.cuda as tc\ntc.synchronize()",  # `torch` is not bound
        "import torch\ng = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(g): pass",
        "import torch\nh = torch.cuda.current_stream().cuda_stream",  # torch.Stream has none
        "import torch\ns = torch.cuda.Stream()\nlaunch(s.cuda_stream)",
        "import torch\ns = torch.cuda.Stream()\nlaunch(getattr(s, 'cuda_stream'))",
        "import torch\ns = torch.cuda.Stream(0, -1)",  # the priority has a keyword
        "import torch\ne = torch.cuda.Event(True)",  # the first argument is another one
        # An object of this device and the default device do not need the device.
        "import torch\nif x.device == torch.device('cuda'): pass",
        "import torch\ncuda = torch.device('cuda')\nif x.device == cuda: pass",
        "import torch\ntorch.set_default_device('cuda')",
        "import torch\ntorch.set_default_device(torch.device('cuda'))",
        "import torch\ndef f(device=torch.device('cuda')): pass",
        "from torch.cuda import synchronize\nsynchronize()",
        "import torch\ntorch = other\nx.cuda()",
        "def f():\n  import torch\nx.cuda()",
        "import torch\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'",
        "import torch\ndist.init_process_group('nccl')",
    ],
)
def test_what_a_person_has_to_look_at_stays(code: str) -> None:
    assert fixed(code) == code


def test_a_fixed_map_location_loads_to_the_device(tmp_path: Path) -> None:
    file = tmp_path / "a.pt"
    torch.save(torch.ones(2), file)
    code = fixed(
        "import torch\nload = lambda f: torch.load(f, map_location=lambda s, _: s.cuda(0))\n"
    )
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["load"](file).device == torch.device("puone:0")


def test_another_name_of_torch_is_kept() -> None:
    assert fixed("import torch as t\nx.cuda()\nt.cuda.synchronize()\n") == (
        f"import torch as t\nx.to(device={DEVICE.replace('torch', 't')})\n"
        "t.accelerator.synchronize()\n"
    )


def test_nothing_else_of_a_file_changes() -> None:
    code = (
        "#!/usr/bin/env python\n# é\timport torch\r\nimport torch\n\n\n"
        "def f( a,b ) :   # torch.cuda stays in a comment\n"
        "\tx = {'torch.cuda': '''\n torch.cuda.synchronize()'''}  "
        ";torch.cuda.synchronize( )   # é\n"
        "\treturn x\x0c\n# the end"
    )
    after = fixed(code)
    assert after == code.replace("torch.cuda.synchronize( )", "torch.accelerator.synchronize( )")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_the_ends_of_lines_stay(newline: str) -> None:
    code = newline.join(["import torch", "a = 'é\u2028'", "torch.cuda.synchronize()", ""])
    assert fixed(code) == code.replace("torch.cuda", "torch.accelerator")


def test_the_fixed_file_is_fixed() -> None:
    code = "import torch\nx.cuda()\ntorch.cuda.synchronize()\nwith torch.cuda.Stream(): pass\n"
    assert uses(fixed(code).encode())[1] == []


def test_fix_shows_a_diff_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.py"
    file.write_text("import torch\ntorch.cuda.synchronize()")
    assert main(["--fix", str(file)]) == 1
    assert file.read_text() == "import torch\ntorch.cuda.synchronize()"
    assert capsys.readouterr().out.splitlines() == [
        f"--- {file}",
        f"+++ {file}",
        "@@ -1,2 +1,2 @@",
        " import torch",
        "-torch.cuda.synchronize()",
        "\\ No newline at end of file",
        "+torch.accelerator.synchronize()",
        "\\ No newline at end of file",
    ]


def test_write_changes_the_file_and_keeps_its_mode_encoding_and_link(tmp_path: Path) -> None:
    file, link = tmp_path / "a.py", tmp_path / "link.py"
    file.write_bytes(
        "# coding: latin-1\nimport torch  # é\ntorch.cuda.synchronize()\n".encode("latin-1")
    )
    file.chmod(0o750)
    link.symlink_to(file)
    assert main(["--fix", "--write", str(link)]) == 0
    assert file.read_bytes() == (
        "# coding: latin-1\nimport torch  # é\ntorch.accelerator.synchronize()\n".encode("latin-1")
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "link.py"]


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"\xef\xbb\xbfimport torch\ntorch.cuda.synchronize()\n")
    assert main(["--fix", "--write", str(file)]) == 0
    assert file.read_bytes() == b"\xef\xbb\xbfimport torch\ntorch.accelerator.synchronize()\n"


def test_a_file_without_changes_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("import torch\nx.is_cuda\n")
    before = file.stat()
    assert main(["--fix", "--write", str(file)]) == 0
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_file_that_cannot_be_replaced_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.py"
    code = "import torch\ntorch.cuda.synchronize()\n"
    file.write_text(code)

    def fail(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert main(["--fix", "--write", str(file)]) == 2
    assert capsys.readouterr().err == f"{file}: No space left on device\n"
    assert file.read_text() == code
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]
