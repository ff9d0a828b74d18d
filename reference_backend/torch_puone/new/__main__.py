# SPDX-License-Identifier: BSD-3-Clause
"""`python -m torch_puone.new`; in a checkout that is not built, `python .../torch_puone/new`."""

import importlib.util
import sys
from pathlib import Path

if not __package__:
    # By its path alone: the package around it loads torch, and the extension that is not there yet.
    __package__ = "torch_puone_new"
    spec = importlib.util.spec_from_file_location(
        __package__, Path(__file__).with_name("__init__.py")
    )
    assert spec
    sys.modules[__package__] = importlib.util.module_from_spec(spec)

from .command import main

sys.exit(main())
