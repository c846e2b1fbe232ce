/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An object loaded in this process (a program, a library), and its functions. image.c finds the parts; frames.c finds
 * functions by the tables for unwinding, present in nearly all code; symbols.c uses the file's symbols and sections for
 * the rest. Offsets in an object are used only after a check that they lie within the object.
 */
#ifndef SIMFAB_TSC_IMAGE_H
#define SIMFAB_TSC_IMAGE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image {
    uintptr_t base; /* added to the object's addresses */
    const ElfW(Phdr) * phdr;
    size_t num_phdrs;
    const char *path; /* of its file */
};

/* Code whose first byte begins an instruction: [from, to). */
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
