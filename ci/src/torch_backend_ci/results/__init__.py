# SPDX-License-Identifier: BSD-3-Clause
"""`torch-backend-ci results`: reports of the suite and findings of the surface, kept for years."""
