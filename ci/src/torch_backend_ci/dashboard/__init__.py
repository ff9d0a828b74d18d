# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci dashboard`: a static site from a results store."""
