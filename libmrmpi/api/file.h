/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations shared by the files about files. */
#ifndef MRMPI_API_FILE_H
#define MRMPI_API_FILE_H

#include "libmrmpi/api/api.h"

enum api_file_at { API_FILE_AT, API_FILE_OWN, API_FILE_SHARED, API_FILE_ORDERED };

/* A kind of access. */
struct api_file_access {
    bool write, all; /* all: collective, and waits for others */
    enum api_file_at at;
    enum mr_file_split split; /* begun here, and ended by another call */
};

/* file.c: checks of a call; and hints: hints without a name in info stay. */
enum mr_err api_file_hints(MPI_Info info, struct mr_file_hints *h);
enum mr_err api_file_may_write(const struct mr_file *f);
enum mr_err api_file_may_read(const struct mr_file *f);
enum mr_err api_file_anywhere(const struct mr_file *f); /* with MPI_MODE_SEQUENTIAL only the shared pointer leads */
enum mr_err api_file_no_split(const struct mr_file *f); /* no split collective access has begun */
enum mr_err api_file_not_negative(MPI_Offset n, const char *name);

/*
 * file_move.c. Arguments except the file's have been checked: `wrong`, with which a collective access still takes part.
 * `offset` is for API_FILE_AT.
 */
enum mr_err api_file_move(struct mr_file *f, const struct api_file_access *a, MPI_Offset offset,
                          const struct mr_file_data *d, enum mr_err wrong, struct mr_status *st);
/* The same with a request, which is complete: the file system offers no faster way. */
enum mr_err api_file_start(struct mr_file *f, const struct api_file_access *a, MPI_Offset offset,
                           const struct mr_file_data *d, MPI_Request *request);
enum mr_err api_file_split_end(struct mr_file *f, enum mr_file_split split, const void *buf, MPI_Status *status);
/* file_view.c: bytes from one element to the next in the file. */
enum mr_err api_file_type_extent(const struct mr_file *f, struct mr_type *t, ptrdiff_t *extent);

#endif
