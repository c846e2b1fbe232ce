/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files (MPI-4.1 chapter 14): opening, views, pointers, and moving data between memory and files, by one process or by
 * all processes of a communicator together. POSIX files underneath.
 *
 * api/ calls with the library's lock held; arguments have been checked. Functions that wait give the lock away
 * meanwhile. All members of the file's communicator call collective functions; an error of one member is an error of
 * all. Offsets are in etypes of the view unless marked as bytes.
 */
#ifndef MRMPI_IO_H
#define MRMPI_IO_H

#include "libmrmpi/io/datarep.h"
#include "libmrmpi/io/tiling.h"

/* As in mpi.h. */
enum mr_file_mode {
    MR_FILE_CREATE = 1,
    MR_FILE_RDONLY = 2,
    MR_FILE_WRONLY = 4,
    MR_FILE_RDWR = 8,
    MR_FILE_DELETE_ON_CLOSE = 16,
    MR_FILE_UNIQUE_OPEN = 32,
    MR_FILE_EXCL = 64,
    MR_FILE_APPEND = 128,
    MR_FILE_SEQUENTIAL = 256,
};

/* Whether something is done: if it seems to pay, always, never. */
enum mr_when { MR_WHEN_IT_PAYS, MR_ALWAYS, MR_NEVER };

/* A program's hints for a file (MPI-4.1 section 14.2.8, and ROMIO's names). */
struct mr_file_hints {
    int64_t cb_buffer_size;         /* bytes of a file that an aggregator holds at a time, */
    int cb_nodes;                   /* and how many aggregators there are; 0: one on each node */
    int64_t read_size, write_size;  /* bytes of a file moved at once for many pieces of a process */
    int64_t striping_unit;          /* aggregators' parts begin at multiples; 0: unknown */
    enum mr_when cb_read, cb_write; /* collective accesses go through aggregators; */
    enum mr_when ds_read, ds_write; /* pieces are moved together with the holes between */
};

enum mr_file_split {
    MR_SPLIT_NONE,
    MR_SPLIT_READ,
    MR_SPLIT_WRITE,
    MR_SPLIT_READ_ORDERED,
    MR_SPLIT_WRITE_ORDERED,
    MR_SPLIT_READ_AT,
    MR_SPLIT_WRITE_AT
};

struct mr_file {
    int handle;
    struct mr_comm *comm; /* a duplicate of the program's */
    struct mr_errhandler *errhandler;
    char *name;
    int fd;
    unsigned amode; /* enum mr_file_mode */
    bool may_read;  /* the descriptor may read the parts that it writes */
    bool atomic;    /* MPI_File_set_atomicity */
    bool near;      /* all members are on one node, and share the pages of a local file */
    bool guarded;   /* some member writes around holes: all writers lock their ranges */
    struct mr_file_hints hints;
    struct mr_tiling view;
    struct mr_type *etype, *filetype;             /* in the form of the file */
    struct mr_type *given_etype, *given_filetype; /* in the form of memory, as the program knows them */
    bool overlaps;        /* a rank's view shows bytes twice: all read by themselves, piece by piece */
    uint64_t tile_pieces; /* stretches of a filetype */
    const struct mr_datarep *datarep;
    int64_t at;               /* the individual pointer */
    enum mr_file_split split; /* a split collective under way; its buffer, and bytes moved */
    const void *split_buf;
    size_t split_bytes;
    int num_aggregators; /* ranks that hold parts of the file in collective accesses, in order */
    int *aggregators;
    struct mr_win *shared; /* the shared pointer, at rank 0; NULL: a file of one process, whose pointer is */
    int64_t shared_at;     /* this */
    struct mr_file *next;  /* all open files */
};

void mr_io_finalize(void); /* closes files left open */

/* ---- files (file.c) ---------------------------------------------------------------------------------------------- */

void mr_file_default_hints(struct mr_file_hints *h);
/*
 * Collective over c. `wrong`, here and in other collective functions: an error found by the caller in its arguments.
 * The caller takes part, so that no rank waits in vain; all fail, and nothing changes.
 */
enum mr_err mr_file_open(struct mr_comm *c, const char *name, unsigned amode, const struct mr_file_hints *hints,
                         struct mr_errhandler *errhandler, enum mr_err wrong, struct mr_file **out);
/* Collective; for hints of all ranks, the first rank's value counts. cb_nodes is fixed when the file is open. */
enum mr_err mr_file_set_hints(struct mr_file *f, const struct mr_file_hints *hints, enum mr_err wrong);
enum mr_err mr_file_close(struct mr_file *f); /* collective; the file is gone, whatever the result */
enum mr_err mr_file_delete(const char *name);
enum mr_err mr_file_set_size(struct mr_file *f, int64_t bytes, enum mr_err wrong);    /* collective */
enum mr_err mr_file_preallocate(struct mr_file *f, int64_t bytes, enum mr_err wrong); /* collective */
enum mr_err mr_file_size(struct mr_file *f, int64_t *bytes);
enum mr_err mr_file_sync(struct mr_file *f);                    /* collective */
enum mr_err mr_file_set_atomic(struct mr_file *f, bool atomic); /* collective */

/* ---- views and pointers (view.c, shared.c) ----------------------------------------------------------------------- */

struct mr_file_view {
    int64_t disp; /* bytes */
    struct mr_type *etype, *filetype;
    const struct mr_datarep *datarep;
};
/* Collective; both pointers are 0 then. With it go the hints. */
enum mr_err mr_file_set_view(struct mr_file *f, const struct mr_file_view *v, const struct mr_file_hints *hints,
                             enum mr_err wrong);
/* MR_ERR_ARG: no file is so long. */
enum mr_err mr_file_byte_offset(const struct mr_file *f, int64_t offset, int64_t *bytes);
/* The offset behind the last whole etype of the file, as the view sees it. */
enum mr_err mr_file_end(struct mr_file *f, int64_t *offset);
enum mr_err mr_file_shared_get(struct mr_file *f, int64_t *offset);
enum mr_err mr_file_shared_set(struct mr_file *f, int64_t offset, enum mr_err wrong); /* collective */
/* Takes n etypes for one process: *offset is the first. */
enum mr_err mr_file_shared_take(struct mr_file *f, int64_t n, int64_t *offset);
/* The same for all, in the order of ranks; collective. */
enum mr_err mr_file_shared_take_ordered(struct mr_file *f, int64_t n, int64_t *offset);

/* ---- data (access.c, together.c) --------------------------------------------------------------------------------- */

/* The data to move, and its memory. */
struct mr_file_data {
    void *buf; /* const when writing */
    size_t count;
    struct mr_type *type;
};
/* How many bytes of the file, and etypes, the data fills. MR_ERR_ARG: no whole number of etypes. */
enum mr_err mr_file_data_size(const struct mr_file *f, const struct mr_file_data *d, size_t *bytes, int64_t *etypes);
/* *bytes: how many of the data's, as they are in memory, have been moved. Reading ends where the file does. */
enum mr_err mr_file_access(struct mr_file *f, bool write, int64_t offset, const struct mr_file_data *d, size_t *bytes);
enum mr_err mr_file_access_all(struct mr_file *f, bool write, int64_t offset, const struct mr_file_data *d,
                               enum mr_err wrong, size_t *bytes);

#endif
