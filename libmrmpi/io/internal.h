/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of io/ have of each other. */
#ifndef MRMPI_IO_INTERNAL_H
#define MRMPI_IO_INTERNAL_H

#include "libmrmpi/io/disk.h"
#include "libmrmpi/io/io.h"

/* agree.c: what all members do together. */
enum mr_err mr_io_barrier(const struct mr_file *f);
/* Each gives `bytes` bytes, and gets those of all in the order of ranks. */
enum mr_err mr_io_gather(const struct mr_file *f, const void *mine, void *all, size_t bytes);
/* `to` of the root becomes everybody's. */
enum mr_err mr_io_tell(const struct mr_file *f, void *to, size_t bytes);
/* Did all succeed? The own error, or that somebody else has one. */
enum mr_err mr_io_agree(const struct mr_file *f, enum mr_err err);
/* Those of rank 0 become everybody's. */
enum mr_err mr_io_take_hints(struct mr_file *f, const struct mr_file_hints *hints);

/* shared.c */
enum mr_err mr_io_shared_open(struct mr_file *f);
enum mr_err mr_io_shared_close(struct mr_file *f);

/* access.c: bytes of the view, from the nth on. */
enum mr_err mr_io_move(struct mr_file *f, bool write, uint64_t nth, char *data, size_t len, size_t *done);
/* What is moved, as bytes of the view: the memory itself, or a part of it in a buffer of the caller's. */
struct mr_io_bytes {
    const struct mr_file_data *d;
    char *whole;  /* all of it in one stretch; NULL: it is not */
    bool foreign; /* converted: `whole` is ours */
    size_t len;
};
enum mr_err mr_io_bytes_begin(const struct mr_file *f, bool write, const struct mr_file_data *d, size_t len,
                              struct mr_io_bytes *b);
void mr_io_bytes_end(struct mr_io_bytes *b, bool write, size_t moved);
/* Bytes [from, from + n) for writing: where they are, perhaps in `room`. And what has been read. */
const char *mr_io_bytes_get(const struct mr_io_bytes *b, size_t from, size_t n, char *room);
void mr_io_bytes_put(const struct mr_io_bytes *b, size_t from, size_t n, const char *data);
/* So many bytes of the file are so many in memory. */
size_t mr_io_in_memory(const struct mr_file *f, const struct mr_file_data *d, size_t bytes);
/* The first of len bytes at an offset. MR_ERR_ARG: no file is so long, or the filetype's copies overlap. */
enum mr_err mr_io_first(const struct mr_file *f, int64_t offset, size_t len, uint64_t *nth);
/* Reading: no more than the file has. */
enum mr_err mr_io_clip(struct mr_file *f, uint64_t nth, size_t *len);

/* What all know of a collective access: where in the file each rank's part begins and ends. */
struct mr_io_span {
    int64_t from, to;
    uint64_t len; /* bytes of data; 0: the rest says nothing */
};
/* two_phase.c: through aggregators; `all` has the spans of all ranks, in any order. What an aggregator meets is its
 * error alone. */
enum mr_err mr_io_two_phase(struct mr_file *f, bool write, uint64_t nth, const struct mr_io_bytes *b,
                            const struct mr_io_span *all);

/* A call of the system costs as much as moving so many bytes of holes through memory. (Measured on ext4: pieces of 4
 * KiB that are 16 KiB apart are written in 70 ms with the holes, in 110 by themselves.) */
#define MR_IO_CALL_BYTES 32768

/* Locks of a handle do not exclude threads that use the same one: in atomic mode the library's lock has to. (Around
 * holes threads cannot meet: what two of them write in one view does not interleave.) */
static inline struct mr_disk mr_io_disk(const struct mr_file *f)
{
    return (struct mr_disk){f->fd, f->name, !f->atomic};
}

static inline bool mr_io_alone(const struct mr_file *f)
{
    return f->comm->size == 1;
}

#endif
