/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs and libraries as ELF images, loaded or as files: the functions that they define for others, and whether
 * their code makes system calls that unmap memory. Pure. A damaged image, or an image of another machine, defines
 * nothing.
 */
#ifndef MRMPI_IMAGE_H
#define MRMPI_IMAGE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mr_image {
    uintptr_t base;    /* loaded: the loader's offset of addresses; else the file's first byte */
    size_t file_bytes; /* 0: loaded */
    const ElfW(Phdr) * headers;
    int num_headers;
};

/* From dl_iterate_phdr. */
struct mr_image mr_image_loaded(const struct dl_phdr_info *info);
/* A file in memory. False: it is none of this machine's. */
bool mr_image_of_file(const void *file, size_t bytes, struct mr_image *out);
bool mr_image_contains(const struct mr_image *m, uintptr_t start, uintptr_t end); /* loaded: some of [start, end) */
bool mr_image_defines(const struct mr_image *m, const char *function);
/* True if its code has instructions that ask the kernel to unmap memory, outside of the C library's functions. */
bool mr_image_unmaps(const struct mr_image *m);

#endif
