# SPDX-License-Identifier: BSD-3-Clause
"""Python imports this module at every start: the place where a package can load itself unasked.

Vendors do it with a path file (*.pth) of their wheel. Here it happens in one lie only.
"""

import os

import editable

editable.forget()
if os.environ.get("PUONE_LIE") == "a_path_file_loads_the_backend":
    import torch_puone  # noqa: F401 - loading it is the lie
