# SPDX-License-Identifier: BSD-3-Clause
"""Events: recording, querying, waiting, elapsed time, misuse, and leaks."""
