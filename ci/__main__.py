# SPDX-License-Identifier: BSD-3-Clause
"""`python -m ci`: see ci/cli.py."""

from ci.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
