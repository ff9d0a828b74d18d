# SPDX-License-Identifier: BSD-3-Clause
"""The verdict for each kind of reader. What it quotes was chosen by anybody."""
