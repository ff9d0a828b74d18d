# SPDX-License-Identifier: BSD-3-Clause
"""What leaves the machine does not tell where its files lie."""

from __future__ import annotations

import pytest

from torch_conformance.results.locations import without_folders


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ("/home/me/build/lib/libchip.so", "libchip.so"),
        ("C:\\Users\\me\\chip.dll", "chip.dll"),
        ("cannot open '/opt/chip/lib/a.so': no such file", "cannot open 'a.so': no such file"),
        ("/opt/a/b.so, /opt/a/c.so", "b.so, c.so"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("lib/chip/a.so", "lib/chip/a.so"),
        ("../lib/a.so", "../lib/a.so"),
        ("10 GB/s / 2", "10 GB/s / 2"),
        ("/dev", "/dev"),
        ("", ""),
    ],
)
def test_only_the_last_name_of_an_absolute_path_is_told(told: str, left: str) -> None:
    assert without_folders(told) == left


def test_paths_are_found_wherever_they_are_in_plain_values() -> None:
    told = {"path": "/a/b.so", "all": [{"x": "/c/d"}], "n": 1, "none": None, "yes": True}
    left = {"path": "b.so", "all": [{"x": "d"}], "n": 1, "none": None, "yes": True}
    assert without_folders(told) == left
