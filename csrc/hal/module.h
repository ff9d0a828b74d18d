/* SPDX-License-Identifier: BSD-3-Clause */
/* The extension "module" of hal.h: kernels that are compiled while the program runs. */
#ifndef PUONE_HAL_MODULE_H
#define PUONE_HAL_MODULE_H

#include "hal/hal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Name and version of the extension, for get_extension(). */
#define PUONE_MODULE_EXTENSION "module"
#define PUONE_MODULE_VERSION 1u

/* Source is C++ in the dialect of csrc/kernels/module.h, one text for every driver. compile() makes
 * an image of it: plain bytes, which load() of the same driver takes, also in another process. The
 * kernels of a loaded module are ordinary ones for kernel_launch() and all other entries, except
 * that they end with their module and run on its device only. */
typedef struct puone_module_s* puone_module;

/* What images are compiled for. Filled by target(). */
typedef struct puone_module_target {
  uint32_t struct_size;
  uint32_t reserved;
  char name[PUONE_NAME_MAX];     /* "v4", "sm_90": for puone_module_options.target */
  char flavour[PUONE_NAME_MAX];  /* of the dialect: "host" or "simt" */
  char identity[PUONE_NAME_MAX]; /* hexadecimal digits that change with whatever decides about an
                                  * image besides source and options: the compiler, its flags, the
                                  * dialect. A part of the key of every cache of images. */
} puone_module_target;

/* Flags of puone_module_options. */
PUONE_ENUM(puone_module_flags, uint32_t){
    /* The compiler may contract a * b + c into one rounding. */
    PUONE_MODULE_DEFAULT = 0,
    /* a * b + c is rounded twice, so that all targets give equal bits. */
    PUONE_MODULE_UNCONTRACTED = 1u << 0};

/* How compile() makes an image. */
typedef struct puone_module_options {
  uint32_t struct_size;
  uint32_t flags;     /* puone_module_flags */
  const char* target; /* name of a target; NULL for that of target(-1) */
} puone_module_options;

/* How many errors a kernel can distinguish. */
#define PUONE_MODULE_MAX_ERRORS 4

/* The first member of the argument struct of each kernel of a module. */
typedef struct puone_module_arguments {
  void* error;                             /* the driver's: NULL */
  int64_t count;                           /* indices of a map, or blocks; not negative */
  int64_t work;                            /* elements that a block handles, about; 0 for a map */
  uint32_t codes[PUONE_MODULE_MAX_ERRORS]; /* the driver's: 0 */
} puone_module_arguments;

/* A number of a declaration: `value`, or, if `argument` is not 0, what the launch's arguments have
 * there: an int64_t, `argument` bytes from their start. */
typedef struct puone_module_number {
  int64_t value;     /* the number, if `argument` is 0 */
  uint64_t argument; /* bytes from the start of the launch's arguments, or 0 */
} puone_module_number;

/* One dimension of the elements of an operand. */
typedef struct puone_module_step {
  puone_module_number size;   /* elements */
  puone_module_number stride; /* bytes; may be 0 or negative */
} puone_module_step;

/* Flags of puone_module_access. */
PUONE_ENUM(puone_module_access_flags, uint32_t){
    /* The kernel reads, or writes, the elements. */
    PUONE_MODULE_READ = 1u << 0,
    PUONE_MODULE_WRITE = 1u << 1,
    /* A part of the elements, and only the kernel knows which. */
    PUONE_MODULE_PARTIAL = 1u << 2};

/* What a kernel does with one address among its arguments. */
typedef struct puone_module_access {
  const char* name;    /* of the operand, for people */
  uint64_t pointer;    /* where the address is in the arguments, in bytes: a multiple of 8 */
  uint32_t flags;      /* puone_module_access_flags */
  uint32_t element;    /* bytes of an element */
  uint64_t step_count; /* of `steps` */
  const puone_module_step* steps; /* of no steps there is one element */
} puone_module_access;

/* What the caller says of a kernel. */
typedef struct puone_module_kernel {
  uint32_t struct_size;
  uint32_t error_count;  /* at most PUONE_MODULE_MAX_ERRORS */
  const char* name;      /* as in the source */
  uint64_t args_size;    /* bytes of its argument struct */
  uint64_t access_count; /* every address among the arguments has an access; a kernel may not use
                          * one that has none. An address may be NULL where the kernel does not
                          * use it. */
  const puone_module_access* accesses; /* `access_count` of them */
  const char* const* errors; /* texts of the errors 0, 1, ... that the kernel raises; up to two "{}"
                              * are replaced by the numbers that it raises with them */
} puone_module_kernel;

/* All entries are thread-safe. */
typedef struct puone_module_api {
  uint32_t struct_size;
  uint32_t version;

  /* What images for `device` are compiled for; for -1, those that name no target. Device -1 needs
   * no device. May take as long as starting the compiler. Errors: UNSUPPORTED (the machine has no
   * compiler; the text says what was looked for), INVALID_DEVICE. */
  puone_status (*target)(int32_t device, puone_module_target* out);

  /* Compile. Needs no device, and takes seconds, or almost no time if a cache has the image: the
   * directory PUONE_MODULE_CACHE, "none" for no cache. `source` is NUL-terminated; `options` may be
   * NULL. The caller owns the image. Errors: INVALID_ARGUMENT (the source does not compile: the
   * text is the compiler's, in which the first line of `source` is line 1 of "source"; or the
   * target or a flag is unknown), UNSUPPORTED as of target(), OUT_OF_MEMORY, INTERNAL (the compiler
   * cannot be run). */
  puone_status (*compile)(
      const char* source, const puone_module_options* options, void** image, size_t* bytes);

  /* Release what compile() returned. NULL is a no-op. */
  puone_status (*free_image)(void* image);

  /* Load an image on a device; `image` is not needed afterwards. The caller owns the module.
   * Errors: INVALID_ARGUMENT (the image is damaged, incomplete, for another driver, another version
   * of it or another target), INVALID_DEVICE, OUT_OF_MEMORY, DEVICE_LOST, INTERNAL. */
  puone_status (*load)(int32_t device, const void* image, size_t bytes, puone_module* out);

  /* The kernel of this name. `kernel` is copied. Each call gives a handle of its own, which is
   * valid until unload() of the module; names in messages and traces stay valid until shutdown().
   * Errors: UNSUPPORTED (the module has no such kernel), INVALID_ARGUMENT (its argument struct has
   * another size), DEVICE_LOST. */
  puone_status (*find)(puone_module module, const puone_module_kernel* kernel, puone_kernel* out);

  /* What find() was given for a kernel, valid as long as the kernel. Errors: UNSUPPORTED for a
   * kernel of kernel_find(). */
  puone_status (*declaration)(puone_kernel kernel, const puone_module_kernel** out);

  /* Release a module. Waits for queued work of its device first. NULL is a no-op. Errors:
   * INVALID_ARGUMENT if a graph that is not destroyed, or a capture that goes on, has a launch of
   * one of its kernels; then nothing has changed. */
  puone_status (*unload)(puone_module module);
} puone_module_api;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PUONE_HAL_MODULE_H */
