# SPDX-License-Identifier: BSD-3-Clause
"""Loads the plugin for runs from a checkout; an installed suite has it as an entry point.

pytest loads a plugin once for each name, and both ways use the name of the module.
"""

pytest_plugins = ["conformance.plugin"]
