/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective access in two phases: declarations shared by its rounds (two_phase.c) and an aggregator (aggregator.c).
 */
#ifndef MRMPI_IO_PHASES_H
#define MRMPI_IO_PHASES_H

#include "libmrmpi/io/internal.h"

/* One side of an exchange: bytes for, or from, each rank, one after the other unless `at` is set. */
struct mr_io_side {
    int64_t *len;
    ptrdiff_t *at;
    char *data;
    size_t room;
};

struct mr_io_phases {
    struct mr_file *f;
    bool write;
    uint64_t nth; /* of the view's bytes, the first that this rank wants */
    const struct mr_io_bytes *b;
    int64_t start, each, stretch;  /* aggregator i's part begins at start + i * each; a round of it has `stretch` */
    struct mr_io_side lists, data; /* this rank's, for aggregators: pieces; and where their bytes are among its own */
    struct mr_io_side packed;      /* the same bytes in a row, if the program's are not */
    struct mr_io_side their_lists, their_data; /* of all, at an aggregator */
    int64_t (*lengths)[2]; /* of lists and data: this rank's for each, and each one's for this rank */
    struct mr_stretches pieces;
    char *image, *covered; /* an aggregator's; a bit for each byte that is written */
    enum mr_err err;       /* an aggregator's with the file: it goes on for the others' sake */
};

/* The wanted part of an aggregator's stretch: bytes [from, to), in so many pieces. */
struct mr_io_wanted {
    int64_t from, to;
    uint64_t pieces, bytes;
};
/* Lists that make no sense are no rank's of ours: MR_ERR_INTERN. */
enum mr_err mr_io_wanted_of(const struct mr_io_phases *p, struct mr_io_wanted *w);
/* Their data is written to the file, or read from it; base: where the stretch begins. */
enum mr_err mr_io_stretch_write(const struct mr_io_phases *p, const struct mr_io_wanted *w, int64_t base);
enum mr_err mr_io_stretch_read(const struct mr_io_phases *p, const struct mr_io_wanted *w, int64_t base);

#endif
