# SPDX-License-Identifier: BSD-3-Clause
"""The chapters of the suite: a file, or a package of files, for each surface.

Every function registered with ``@check`` is a check, or several.
"""
