# SPDX-License-Identifier: BSD-3-Clause
"""Python imports this module at every start: mutants in Python ask a builtin."""

import builtins

import mutant_switch

builtins.__mutants__ = mutant_switch  # type: ignore[attr-defined]  # no builtin has this name
