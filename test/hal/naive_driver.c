// SPDX-License-Identifier: BSD-3-Clause
// A driver that is right but for one thing. With RUNS_AT_ONCE it runs host functions on the calling
// thread; with OPEN_MEMORY the host can access device memory; with INITS=n a process may initialise
// it n times, and dies or hangs at the next; each time its id goes to the file LOG. TARGET is the
// driver that does everything else.
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/hal.h"

static puone_hal_api table, target;

#ifdef RUNS_AT_ONCE
static puone_status host_func(puone_stream stream, puone_host_func function, void* data) {
  const puone_status status = target.stream_synchronize(stream);
  if (status == PUONE_OK) function(data);
  return status;
}
#endif

#ifdef OPEN_MEMORY
static puone_status open_malloc(int32_t device, size_t bytes, void** out) {
  const puone_status status = target.malloc(device, bytes, out);
  const uintptr_t page = 4096;
  if (status == PUONE_OK && *out != NULL) {
    const uintptr_t begin = (uintptr_t)*out / page * page;
    mprotect((void*)begin, (uintptr_t)*out + bytes - begin, PROT_READ | PROT_WRITE);
  }
  return status;
}
#endif

#ifdef INITS
static puone_status few_inits(void) {
  static int inits = 0;
  FILE* log = fopen(LOG, "a");
  fprintf(log, "%d\n", (int)getpid());
  fclose(log);
  if (++inits <= INITS) return target.init();
#ifdef HANGS
  for (;;) pause();
#endif
  abort();
}
#endif

puone_status puone_hal_get(uint32_t abi_major, const puone_hal_api** out) {
  void* library = dlopen(TARGET, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return PUONE_INTERNAL;
  puone_status (*get)(uint32_t, const puone_hal_api**) =
      (puone_status (*)(uint32_t, const puone_hal_api**))dlsym(library, "puone_hal_get");
  const puone_hal_api* given = NULL;
  const puone_status status = get(abi_major, &given);
  if (status != PUONE_OK) return status;
  table = target = *given;
#ifdef RUNS_AT_ONCE
  table.stream_host_func = host_func;
#endif
#ifdef OPEN_MEMORY
  table.malloc = open_malloc;
#endif
#ifdef INITS
  table.init = few_inits;
#endif
  *out = &table;
  return PUONE_OK;
}
