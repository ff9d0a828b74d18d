# SPDX-License-Identifier: BSD-3-Clause
"""One script of a step, run as GitHub's runner runs it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from workflow_runner.mistakes import Mistake

# By the name in `shell:`; none is another thing than bash.
SHELLS = {
    None: "bash -e {0}",
    "bash": "bash --noprofile --norc -eo pipefail {0}",
    "sh": "sh -e {0}",
    "python": "python {0}",
}
LONGEST_S = 600.0  # whatever the workflow allows


def run(
    script: str,
    shell: str | None,
    file: Path,
    cwd: Path,
    env: Mapping[str, str],
    minutes: float | None = None,
) -> tuple[int, str]:
    """Exit status, and all that was printed."""
    if shell not in SHELLS and "{0}" not in str(shell):
        raise Mistake(f"shell: {shell} is not known here")
    if not cwd.is_dir():
        raise Mistake(f"working-directory: there is no {cwd}")
    file.write_text(script)
    words = shlex.split(SHELLS.get(shell, str(shell)).replace("{0}", str(file)))
    with subprocess.Popen(
        words,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=min(LONGEST_S, (minutes or 360) * 60))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
            return 124, printed.decode(errors="replace") + "\ntimed out\n"
    return process.returncode, printed.decode(errors="replace")
