# SPDX-License-Identifier: BSD-3-Clause
"""The upstream surface: what of PyTorch an out-of-tree backend is built on.

    snapshot  one torch -> its declarations (extract/)
    diff      two snapshots -> findings (diff/), shown as text, JSON, Markdown, SARIF (report/)
    check     a pinned torch and a PR -> findings, without building PyTorch (check/)
    probe     a second opinion: one translation unit that overrides everything (probe/)
    coupling  which files of a torch are coupled to one vendor (coupling/)

Which declarations belong to which surface is data: surface/surfaces.yaml.
"""
