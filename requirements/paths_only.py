# SPDX-License-Identifier: BSD-3-Clause
"""Makes the link to this checkout one of paths only: see build/.installed in the Makefile.

A link by scikit-build-core is a list of paths and a module that is imported at every start. The
distribution has a plugin of pytest, which warns in every run that it cannot rewrite that module.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

site = Path(sysconfig.get_path("purelib"))
link = site / "_editable_skbc_torch_puone.pth"
paths = [line for line in link.read_text().splitlines() if not line.startswith("import ")]
link.write_text("\n".join(dict.fromkeys(paths)) + "\n")
site.joinpath("_editable_skbc_torch_puone.py").unlink(missing_ok=True)
