# SPDX-License-Identifier: BSD-3-Clause
"""What a program sees of torch.compile with inductor, besides the numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from compiling_programs import HEADER, PROGRAMS
from interpreter import Python
from scripts import caches, run
from suites import odd

Succeeds = Callable[..., str]


@pytest.fixture(scope="module")
def raised(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each program raised."""
    directory = tmp_path_factory.mktemp("programs")
    output = directory / "raised.json"
    run("compiling_programs.py", output, directory=directory)
    found: dict[str, str] = json.loads(output.read_text())
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_raises_nothing(raised: dict[str, str], name: str) -> None:
    assert raised[name] == ""


@pytest.fixture
def succeeds(python: Python, tmp_path: Path) -> Succeeds:
    def run_code(code: str, **env: str) -> str:
        done = python(HEADER + code, timeout=300, env={**caches(tmp_path), **env})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run_code


@pytest.mark.nightly
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


@pytest.mark.nightly
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
        pytest.param(
            odd("no_extensions"),
            'does not have the extension "module"',
            marks=pytest.mark.nightly,
        ),
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
