/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations shared by the files of io/. */
#ifndef MRMPI_IO_INTERNAL_H
#define MRMPI_IO_INTERNAL_H

#include "libmrmpi/io/disk.h"
#include "libmrmpi/io/io.h"

/* agree.c: common steps of all members. */
enum mr_err mr_io_barrier(const struct mr_file *f);
/* Each gives `bytes` bytes, and gets the bytes of all in the order of ranks. */
enum mr_err mr_io_gather(const struct mr_file *f, const void *mine, void *all, size_t bytes);
/* `to` of the root becomes that of all ranks. */
enum mr_err mr_io_tell(const struct mr_file *f, void *to, size_t bytes);
/* Success if all members succeeded; else the own error, or the fact that another member has one. */
enum mr_err mr_io_agree(const struct mr_file *f, enum mr_err err);
/* The hints of rank 0 become the hints of all. */
enum mr_err mr_io_take_hints(struct mr_file *f, const struct mr_file_hints *hints);

/* shared.c */
enum mr_err mr_io_shared_open(struct mr_file *f);
/* The file could not be opened because of err; waits for nobody. */
void mr_io_shared_abandon(struct mr_file *f, enum mr_err err);
enum mr_err mr_io_shared_close(struct mr_file *f);

/* access.c: bytes of the view, from the nth on. */
enum mr_err mr_io_move(struct mr_file *f, bool write, uint64_t nth, char *data, size_t len, size_t *done);
/* The moved data, as bytes of the view: the memory itself, or a part in a buffer of the caller's. */
struct mr_io_bytes {
    const struct mr_file_data *d;
    char *whole;                      /* all bytes in one stretch; NULL: not in one stretch */
    const struct mr_datarep *datarep; /* converted: `whole` is ours; or NULL */
    size_t len;
};
enum mr_err mr_io_bytes_begin(const struct mr_file *f, bool write, const struct mr_file_data *d, size_t len,
                              struct mr_io_bytes *b);
enum mr_err mr_io_bytes_end(struct mr_io_bytes *b, bool write, size_t moved);
/* Bytes [from, from + n) for writing: their place, perhaps in `room`. And for bytes that were read. */
const char *mr_io_bytes_get(const struct mr_io_bytes *b, size_t from, size_t n, char *room);
void mr_io_bytes_put(const struct mr_io_bytes *b, size_t from, size_t n, const char *data);
/* The bytes in memory for so many bytes of the file. */
size_t mr_io_in_memory(const struct mr_file *f, const struct mr_file_data *d, size_t bytes);
/* The first of len bytes at an offset. MR_ERR_ARG: no file is so long, or the filetype's copies overlap. */
enum mr_err mr_io_first(const struct mr_file *f, int64_t offset, size_t len, uint64_t *nth);
/* Reading: no more than the file has. */
enum mr_err mr_io_clip(struct mr_file *f, uint64_t nth, size_t *len);

/* The common facts of a collective access: the beginning and the end of each rank's part in the file. */
struct mr_io_span {
    int64_t from, to;
    uint64_t len; /* bytes of data; 0: the rest says nothing */
};
/*
 * two_phase.c: through aggregators; `all` has the spans of all ranks, in any order. An error of an aggregator is its
 * error alone.
 */
enum mr_err mr_io_two_phase(struct mr_file *f, bool write, uint64_t nth, const struct mr_io_bytes *b,
                            const struct mr_io_span *all);

/*
 * A system call costs as much as moving so many bytes of holes through memory. (Measured on ext4: pieces of 4 KiB, 16
 * KiB apart, are written in 70 ms with the holes, in 110 ms one by one.)
 */
#define MR_IO_CALL_BYTES 32768

/*
 * Locks of a handle do not exclude threads that use the same handle; in atomic mode the library's lock does. (Around
 * holes threads cannot meet: writes of two threads in one view do not interleave.)
 */
static inline struct mr_disk mr_io_disk(const struct mr_file *f)
{
    return (struct mr_disk){f->fd, f->name, !f->atomic};
}

static inline bool mr_io_alone(const struct mr_file *f)
{
    return f->comm->size == 1;
}

#endif
