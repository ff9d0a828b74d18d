# SPDX-License-Identifier: BSD-3-Clause
"""What is done with finished reports: read, judge, show, compare, merge, bundle, verify."""
