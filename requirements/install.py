# SPDX-License-Identifier: BSD-3-Clause
"""Runs `pip install` of this Python and shows how far it is.

    install.py ARGUMENT...      as for `pip install`

On a terminal one line is kept up to date; elsewhere there is a line now and then. What pip wrote is
in pip.log of the virtual environment, and is shown if pip fails. pip compiles no modules: Python
does that for each one at its first import, and most are never imported.
"""

from __future__ import annotations

import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

OPTIONS = ("--no-compile", "--no-input", "--disable-pip-version-check", "--progress-bar=off")
# Seconds between two looks at a terminal, and between two lines elsewhere.
LIVE_INTERVAL, LOG_INTERVAL = 1.0, 15.0
WIDTH = 79
_STEP = re.compile(r"\s*(Collecting|Downloading|Building|Preparing|Processing|Using cached)\b")
_NO_NETWORK = re.compile(
    "Connection|Could not fetch URL|Name or service not known|timed out|ProxyError|SSLError"
)
HINT = (
    "error: pip cannot reach a package index. Check the network; behind a proxy set HTTPS_PROXY, "
    "for a mirror PIP_INDEX_URL, and TORCH_INDEX= if it has torch, too"
)


def step(line: str) -> str | None:
    """What pip begins with this line, in short; None if nothing."""
    if line.startswith("Installing collected packages:"):
        return f"unpacking {line.count(',') + 1} packages"
    if not _STEP.match(line):
        return None
    verb, _, what = line.strip().partition(" ")
    return f"{verb} {what.partition(' (from')[0].rpartition('/')[2]}"


def hint(output: str) -> str | None:
    """What a person can do about an error of pip; None if pip's own words are enough."""
    return HINT if _NO_NETWORK.search(output) else None


def _lines(process: subprocess.Popen[str], interval: float) -> Iterator[str | None]:
    """The lines of a process as they come, and None after each interval without one."""
    assert process.stdout
    output = process.stdout
    found: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in output:
            found.put(line)
        found.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = found.get(timeout=interval)
        except queue.Empty:
            yield None
            continue
        if line is None:
            return
        yield line


def run(command: list[str], log: Path, live: bool) -> int:
    """Run pip, show its steps, and return its status."""
    began = shown = time.monotonic()
    now, last = "asking the package index", ""
    output: list[str] = []
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    for line in _lines(process, LIVE_INTERVAL):
        if line is not None:
            output.append(line)
            now = step(line) or now
        at = time.monotonic()
        if live:
            sys.stdout.write(f"\r\033[K  {at - began:.0f} s  {now}"[: WIDTH + len("\r\033[K")])
            sys.stdout.flush()
        elif now != last and at - shown >= LOG_INTERVAL:
            print(f"  {at - began:.0f} s  {now}", flush=True)
            shown, last = at, now
    status = process.wait()
    if live:
        sys.stdout.write("\r\033[K")
        sys.stdout.flush()
    text = "".join(output)
    try:
        log.write_text(text, encoding="utf-8")
        kept = f"all it wrote is in {log}"
    except OSError as error:
        kept = f"{log} cannot be written: {error.strerror}"
    if status:
        print("".join(output[-20:]), end="", file=sys.stderr)
        print(hint(text) or f"error: pip failed; {kept}", file=sys.stderr)
    return status


def main() -> None:
    """Install what the arguments say."""
    command = [sys.executable, "-m", "pip", "install", *OPTIONS, *sys.argv[1:]]
    sys.exit(run(command, Path(sys.prefix) / "pip.log", sys.stdout.isatty()))


if __name__ == "__main__":
    main()
