/* SPDX-License-Identifier: BSD-3-Clause */
/* What is written the same way in every room. */
#ifndef MRMPI_IDIOMS_H
#define MRMPI_IDIOMS_H

#include <stddef.h>

/* The struct of that type whose member ptr points to. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Of a global that is not seen outside its shared object: it is reached without the table of others' addresses. */
#define MR_OWN __attribute__((visibility("hidden")))

#endif
