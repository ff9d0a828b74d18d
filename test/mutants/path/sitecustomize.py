# SPDX-License-Identifier: BSD-3-Clause
"""Python imports this module at every start."""

import mutant_switch

mutant_switch.install()
