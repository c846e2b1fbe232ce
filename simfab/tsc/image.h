/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An object that is loaded in this process (a program, a library), and the functions in it: image.c what is where,
 * frames.c functions by the tables for unwinding, which nearly all code has, symbols.c by the file's symbols and
 * sections, for the rest. Nothing that an object says about itself is believed before it was found to lie within the
 * object.
 */
#ifndef SIMFAB_TSC_IMAGE_H
#define SIMFAB_TSC_IMAGE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image {
    uintptr_t base; /* what is added to the object's addresses */
    const ElfW(Phdr) * phdr;
    size_t num_phdrs;
    const char *path; /* of its file */
};

/* Code that begins with an instruction: [from, to). */
struct span {
    uintptr_t from, to;
};

/* Are these bytes in a segment that can be read? */
bool image_holds(const struct image *image, uintptr_t at, size_t bytes);
/* The segment of code around AT; false if it is in none. */
bool image_code(const struct image *image, uintptr_t at, struct span *segment);

/* The function around AT. False: the tables do not know; then prev_end is where the one before ends (0: there is none).
 */
bool frames_find(const struct image *image, uintptr_t at, struct span *function, uintptr_t *prev_end);

/* The same by the object's file: a function by its symbol, or else the section, from prev_end on. */
bool symbols_find(const struct image *image, uintptr_t at, uintptr_t prev_end, struct span *function);

#endif
