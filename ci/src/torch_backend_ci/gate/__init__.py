# SPDX-License-Identifier: BSD-3-Clause
"""The gate: a run of the suite against the run before, by a policy, as one verdict."""
