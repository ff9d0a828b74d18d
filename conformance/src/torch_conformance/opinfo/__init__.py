# SPDX-License-Identifier: BSD-3-Clause
"""The OpInfo tier: PyTorch's own operator database, run against the CPU.

Each module named in TOPICS asks one question of every operator: what to do with a sample. What they
share - making samples, moving them, comparing, excusing, repeating - is `topic.py`.
"""
