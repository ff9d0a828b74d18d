# SPDX-License-Identifier: BSD-3-Clause
"""``python -m conformance VERB``: what is done before and after a run, which is pytest's."""

from __future__ import annotations

import sys

from conformance.cli import main

sys.exit(main())
