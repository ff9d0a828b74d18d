# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers: seeding, state, independence, the Generator object, and sane distributions."""
