// SPDX-License-Identifier: BSD-3-Clause
// The host kernels are compiled once per instruction set, the same sources with other flags, and
// the best one is chosen when a driver starts. Everything a kernel source defines or instantiates
// lies in a namespace of that name, so that no function compiled for a newer processor can stand in
// for another's. A compiler for a real device has one instruction set and leaves PUONE_ISA alone.
#pragma once

#ifndef PUONE_ISA
#define PUONE_ISA baseline
#endif
