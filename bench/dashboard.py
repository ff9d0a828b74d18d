# SPDX-License-Identifier: BSD-3-Clause
"""The dashboard at scale: `python -m bench.dashboard FOLDER`.

Makes a store of many backends over a year in FOLDER (once; it takes minutes), then its site from
nothing, then adds a night and makes the site again, and says for each what it took: wall clock,
processor time of all processes, the most resident memory of all of them at once, and what came
out.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bench.dashboard_store import Size, make
from torch_backend_ci.dashboard.serve import HOST, server

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Make the store if it is not there, and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.dashboard", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--backends", type=int, default=20)
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--checks", type=int, default=8000)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    size = Size(args.backends, args.nights, args.checks)
    store, site = args.folder / "store", args.folder / "site"
    if not store.exists():
        make(store, size, range(size.nights - 1))
    print(f"store: {weighed(store)}", flush=True)
    words = ["build", "--store", str(store), "-o", str(site), "--jobs", str(args.jobs)]
    print(f"from nothing: {measured(words)}", flush=True)
    print(f"site: {weighed(site)}", flush=True)
    make(store, size, range(size.nights - 1, size.nights))
    print(f"one more night: {measured(words)}", flush=True)
    print(f"nothing new: {measured(words)}", flush=True)
    print(f"first page: {fetched(site)}", flush=True)


def weighed(folder: Path) -> str:
    """Bytes and files."""
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    return f"{sum(sizes) / 1e6:,.0f} MB in {len(sizes):,} files"


def measured(words: list[str]) -> str:
    """What one `torch-backend-ci dashboard` takes."""
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "torch_backend_ci", "dashboard", *words]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        most = 0.0
        while process.poll() is None:
            most = max(most, sum(map(_memory, _family(process.pid))))
            time.sleep(0.2)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}")
    wall = time.monotonic() - begun
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return f"{wall:.1f} s ({user:.1f} s user, {system:.1f} s system), {most / 1e9:.2f} GB"


def _family(pid: int) -> Iterator[int]:
    """A process and those that it started."""
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _family(int(child))


def _memory(pid: int) -> float:
    """Bytes; what processes share is counted in each of them."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0.0


def fetched(site: Path) -> str:
    """The first page from the built-in server: the median of some requests."""
    with server(site, 0) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        seconds = []
        for _ in range(9):
            begun = time.monotonic()
            with urllib.request.urlopen(f"http://{HOST}:{listening.server_port}/") as answer:
                size = len(answer.read())
            seconds.append(time.monotonic() - begun)
        listening.shutdown()
    return f"{size / 1e3:.0f} kB in {statistics.median(seconds) * 1e3:.0f} ms"


if __name__ == "__main__":
    main()
