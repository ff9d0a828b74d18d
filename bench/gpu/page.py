# SPDX-License-Identifier: BSD-3-Clause
"""``python -m bench.gpu.page``: what people read of the results, written from the JSON files.

Rewrites the markdown beside every docs/results/*.json and the table in docs/results/README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "results"
NOT_YET = "not yet measured"
UNITS = {True: ("TFLOP/s", 1e-6), False: ("GB/s", 1e-3)}


def main() -> int:
    """Rewrite."""
    argparse.ArgumentParser(
        prog="python -m bench.gpu.page",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    refresh(FOLDER)
    return 0


def refresh(folder: Path) -> None:
    """Write every page of a folder of results."""
    for file, text in pages(folder).items():
        file.write_text(text)


def pages(folder: Path) -> dict[Path, str]:
    """What the markdown files of a folder of results have to say, by file."""
    results = {file: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}
    written = {file.with_suffix(".md"): markdown(value) for file, value in results.items()}
    return {**written, folder / "README.md": index(results)}


# ---- the table of all results ----


def index(results: dict[Path, dict[str, Any]]) -> str:
    """The README of a folder of results, newest first."""
    rows = [_index_row(file, results[file]) for file in sorted(results, reverse=True)]
    header = ("result", "GPU", "torch", "driver", "steps done", "targets met")
    return "\n".join(
        [
            "# Results on real hardware",
            "",
            "This page lists what was measured on real hardware. `make gpu` writes it: [how to run "
            "and read it](../gpu.md).",
            "",
            *_table(header, rows or [(NOT_YET, *[""] * (len(header) - 1))]),
            "",
        ]
    )


def _index_row(file: Path, result: dict[str, Any]) -> tuple[str, ...]:
    machine = result["machine"]
    promised = [row["met"] for row in result["measurements"] if row["target"]]
    done = sum(step["status"] == "done" for step in result["steps"])
    kernel = machine["gpus"][0]["driver"] if machine["gpus"] else "unknown"
    return (
        f"[{file.stem}]({file.stem}.md)" + ("" if result["complete"] else ", cut short"),
        machine["gpu"] or "none",
        machine["torch"] or "unknown",
        kernel,
        f"{done} of {len(result['steps'])}",
        f"{promised.count(True)} of {len(promised)}" if promised else NOT_YET,
    )


# ---- one result ----


def markdown(result: dict[str, Any]) -> str:
    """One result as a page."""
    lines = [f"# {_title(result)}", "", *_about(result), "", "## Steps", ""]
    lines += _table(("step", "status", "seconds", "found"), map(_step_row, result["steps"]))
    if result["measurements"]:
        lines += ["", "## Measurements", "", *_explained(), *_common_problems(result)]
    for group, rows in groupby(result["measurements"], key=lambda row: row["group"]):
        header = ("", "puone us", "torch.cuda us", "ratio", "target", "met", "rate", "of limit")
        cells = [_row(row, _common(result)) for row in rows]
        lines += ["", f"### {group.capitalize()}", "", *_table(header, cells)]
    return "\n".join(lines) + "\n"


def _title(result: dict[str, Any]) -> str:
    where = result["machine"]["gpu"] or "no GPU"
    kind = "Rehearsal, not a measurement" if result["rehearsal"] else "Results"
    return f"{kind}: {where}, {result['started'][:10]}"


def _about(result: dict[str, Any]) -> list[str]:
    machine, source = result["machine"], result["source"]
    cards = ", ".join(f"{card['memory']}, driver {card['driver']}" for card in machine["gpus"])
    changed = {True: " with changes", False: "", None: ""}[source["dirty"]]
    facts = {
        "GPU": f"{machine['gpu']} ({cards})" if cards else "none",
        "torch": f"{machine['torch']}, CUDA {machine['torch_cuda'] or 'none'}",
        "nvcc": machine["nvcc"] or "none",
        "Python": f"{machine['python']}, {machine['cores']} cores",
        "source": f"{source['commit'] or 'unknown'}{changed}",
        "run": f"{result['seconds']:.0f} s" if result["complete"] else "cut short",
    }
    return [f"- {name}: {text}" for name, text in facts.items()]


def _explained() -> list[str]:
    return [
        "Medians. The ratio is torch.cuda's time by ours where speed is promised (more is better),",
        "and ours by torch.cuda's where a cost is bounded (less is better). The limit is what the",
        "same run saw the hardware do at best: bytes by the fastest copy, operations by the",
        "fastest product of matrices of that type.",
    ]


def _step_row(step: dict[str, Any]) -> tuple[str, ...]:
    found = ", ".join(f"{key}: {_told(value)}" for key, value in step["data"].items() if value)
    reason = step["reason"].splitlines()[0] if step["reason"] else ""
    status = f"{step['status']}: {reason}" if reason else step["status"]
    return step["name"], status, f"{step['seconds']:.0f}", found


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key} {part}" for key, part in value.items())
    if isinstance(value, list):
        return f"{len(value)} ({', '.join(map(str, value[:5]))})"
    return str(value)


def _common(result: dict[str, Any]) -> dict[str, str]:
    """What every measurement says of a side: said once."""
    first, *others = [row["problems"].items() for row in result["measurements"]]
    return dict(set(first).intersection(*others))


def _common_problems(result: dict[str, Any]) -> list[str]:
    return [f"\nEverywhere, {side}: {why}." for side, why in _common(result).items()]


def _row(row: dict[str, Any], common: dict[str, str]) -> tuple[str, ...]:
    problems = "; ".join(
        f"{side}: {why.splitlines()[0]}"
        for side, why in row["problems"].items()
        if common.get(side) != why
    )
    name = f"{row['name']} ({problems})" if problems else row["name"]
    times = [f"{row[side]['median_us']:.4g}" if row[side] else "-" for side in ("puone", "cuda")]
    ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
    met = {True: "yes", False: "**no**", None: "-"}[row["met"]]
    share = "-" if row["of_limit"] is None else f"{row['of_limit']:.0%}"
    return name, *times, ratio, row["target"] or "-", met, _rate(row), share


def _rate(row: dict[str, Any]) -> str:
    if not row["work"] or not row["puone"]:
        return "-"
    unit, scale = UNITS[row["resource"].endswith("arithmetic")]
    return f"{row['work'] / row['puone']['median_us'] * scale:.4g} {unit}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [header, ["---"] * len(header), *body]
    return [f"| {' | '.join(line)} |" for line in lines]


if __name__ == "__main__":
    sys.exit(main())
