# SPDX-License-Identifier: BSD-3-Clause
"""Lives of changes, nights and releases, as our workflows live them."""
