# SPDX-License-Identifier: BSD-3-Clause
"""The reference backend as one whose import starts threads, which a fork would lose."""

import threading

import torch_puone  # noqa: F401 - registers the device

_never = threading.Event()
for _ in range(3):
    threading.Thread(target=_never.wait, daemon=True).start()
