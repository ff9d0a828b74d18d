# SPDX-License-Identifier: BSD-3-Clause
"""Random programs, compared with their steps one after another.

Other chapters ask one thing at a time. Here steps are mixed at random, the same for the same seed.
"""
