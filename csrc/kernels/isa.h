// SPDX-License-Identifier: BSD-3-Clause
// The host kernels are compiled once per instruction set, the same sources with other flags, and
// the best one is chosen when a driver starts. Everything that a kernel source defines or
// instantiates is in a namespace of that name, so that the linker cannot replace a function by one
// compiled for a newer processor. A compiler for a real device has one instruction set and leaves
// PUONE_ISA at its default.
#pragma once

#ifndef PUONE_ISA
#define PUONE_ISA baseline
#endif
