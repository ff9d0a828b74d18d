# SPDX-License-Identifier: BSD-3-Clause
"""Registration: the device type, the module `torch.<type>`, generated methods, loading and exit."""
