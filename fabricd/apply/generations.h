/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbered directories below STATE/generations, and the link STATE/current to one of them.
 *
 * A directory is written as ".new", synced, and renamed to its number: a numbered directory is complete, and its files
 * never change. The file `sums` has the length and a digest of each file, which reveals damage by disks or people.
 * Later facts (`result`, `found`) are added as files of their own, without a sum.
 *
 * A number names one policy. A second directory of the same number (the policy's lock has changed, or another host
 * counts anew) is called N.1, N.2 and so on. Numbers of failed attempts are not given out again.
 *
 * Errors are negative errnos.
 */
#ifndef FABRICD_GENERATIONS_H
#define FABRICD_GENERATIONS_H

#include "fabricd/base/text.h"

#define GENERATION_NAME_MAX 48
#define GENERATIONS_KEPT    32

struct generation_file {
    const char *name, *text;
    size_t len;
};

/* Writes a directory of this number, complete and synced; name gets its name. */
int generation_write(const char *state, uint64_t number, const struct generation_file *file, unsigned n,
                     char name[GENERATION_NAME_MAX]);

/* A fact that is known later. Replaced at once or not at all. */
int generation_add(const char *state, const char *name, const char *file, const struct text *text);

/* Reads a file of a generation. -ENOENT: missing; -EUCLEAN: damaged, and why names the file and the damage. */
int generation_read(const char *state, const char *name, const char *file, size_t max, struct text *out,
                    struct text *why);
/* Reads an added fact, which has no sum. */
int generation_read_fact(const char *state, const char *name, const char *file, size_t max, struct text *out);

/* The link is replaced at once. An error of the sync comes after the change. name NULL: no generation is current. */
int generation_set_current(const char *state, const char *name);
/* -ENOENT: none; -EUCLEAN: the link leads to no generation, and why has its target. */
int generation_current(const char *state, char name[GENERATION_NAME_MAX], struct text *why);

/* The highest number given out; 0: none. */
uint64_t generation_last(const char *state);
uint64_t generation_number(const char *name);
/* The latest directory of a number. -ENOENT. */
int generation_find(const char *state, uint64_t number, char name[GENERATION_NAME_MAX]);

/* Called for each, oldest first; the latest directory of a number only. */
typedef void generation_visit(void *arg, const char *name, uint64_t number);
void generation_each(const char *state, generation_visit *visit, void *arg);

/* Removes the oldest beyond GENERATIONS_KEPT; neither the current one, nor number 0, nor damaged directories. */
void generation_prune(const char *state);

#endif
