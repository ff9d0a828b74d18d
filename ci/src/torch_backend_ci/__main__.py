# SPDX-License-Identifier: BSD-3-Clause
"""`python -m torch_backend_ci`: see cli.py."""

from torch_backend_ci.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
