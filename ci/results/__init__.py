# SPDX-License-Identifier: BSD-3-Clause
"""`python -m ci results`: reports of the suite and findings of the surface, kept for years."""
