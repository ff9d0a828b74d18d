/* SPDX-License-Identifier: BSD-3-Clause */
/* The extension "ipc" of hal.h: device memory that several processes use. */
#ifndef PUONE_HAL_IPC_H
#define PUONE_HAL_IPC_H

#include "hal/hal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Name and version of the extension, for get_extension(). */
#define PUONE_IPC_EXTENSION "ipc"
#define PUONE_IPC_VERSION 1u

/* Names a block of device memory to other processes of the same user on the same machine. Plain
 * bytes that any channel may carry; two handles of one block are equal. It names the block until
 * the block is freed or the process that exported it ends, and never another one. */
typedef struct puone_ipc_memory_handle {
  uint8_t bytes[64]; /* the driver's; compared and copied only */
} puone_ipc_memory_handle;

/* All entries are thread-safe. They order nothing between processes: the exporting process waits
 * for the work that writes the memory before it hands the handle on, and the other one waits for
 * its own work before it says that it is done. */
typedef struct puone_ipc_api {
  uint32_t struct_size;
  uint32_t version;

  /* The handle of a block, `block` being what malloc() returned. The block stays the caller's, at
   * its address, with its contents. May wait for work that runs. Errors: INVALID_ARGUMENT (not a
   * live block's start, or memory that open_memory() returned), OUT_OF_MEMORY, DEVICE_LOST. */
  puone_status (*export_memory)(void* block, puone_ipc_memory_handle* out);

  /* Map the block of another process, which is on `device` here. *out is then device memory like a
   * malloc() result with the size of the block, except that close_memory() releases it and free()
   * does not. Its contents stay after the other process frees the block or ends. A block is mapped
   * once at a time. Errors: INVALID_ARGUMENT (the handle names no block any more, one of this
   * process, one of another device, or one that is mapped already), OUT_OF_MEMORY, INVALID_DEVICE,
   * DEVICE_LOST. */
  puone_status (*open_memory)(int32_t device, const puone_ipc_memory_handle* handle, void** out);

  /* Release what open_memory() returned. Waits for queued work of the device first. NULL is a
   * no-op. Errors: INVALID_ARGUMENT. */
  puone_status (*close_memory)(void* ptr);
} puone_ipc_api;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_HAL_IPC_H */
