# SPDX-License-Identifier: BSD-3-Clause
"""`python -m ci dashboard`: a static site from a results store."""
