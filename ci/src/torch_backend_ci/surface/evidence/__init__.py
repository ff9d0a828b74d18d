# SPDX-License-Identifier: BSD-3-Clause
"""What a backend uses of PyTorch: collected from its sources and from its shared libraries.

    cpp        headers that its C++ includes, names that it qualifies
    python     modules and names that its Python imports or reads
    libraries  functions that its shared libraries ask the dynamic linker for
    declaring  the headers that declare what the libraries ask for

`torch-backend-ci surface usage` writes the result into surface/collected.yaml; the catalogue
watches all that stands there.
"""
