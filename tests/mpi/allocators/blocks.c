/* SPDX-License-Identifier: BSD-3-Clause */
/* A library with an allocator of its own (RTLD_DEEPBIND), whose memory goes when the library is unloaded. */
#include <stdlib.h>

__attribute__((visibility("default"))) void *get_block(size_t n);
__attribute__((visibility("default"))) void give_block(void *p);
__attribute__((visibility("default"))) extern char unloaded[];

char unloaded[200000];

void *get_block(size_t n)
{
    return malloc(n);
}

void give_block(void *p)
{
    free(p);
}
