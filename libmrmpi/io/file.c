/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing of files, and operations on whole files. */
#include "libmrmpi/io/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/base/lock.h"
#include "libmrmpi/coll/coll.h"

#define CB_BUFFER  (16 << 20)
#define READ_SIZE  (4 << 20)
#define WRITE_SIZE (1 << 20)

static struct mr_file *open_files;

void mr_file_default_hints(struct mr_file_hints *h)
{
    *h = (struct mr_file_hints){.cb_buffer_size = CB_BUFFER, .read_size = READ_SIZE, .write_size = WRITE_SIZE};
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* A kind of file system before the name, as in ROMIO ("ufs:/tmp/x"): there is one kind here. */
static const char *without_kind(const char *name)
{
    static const char *const kinds[] = {"ufs:", "nfs:", "xfs:", "lustre:", "gpfs:", "panfs:", "testfs:"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strncmp(name, kinds[i], strlen(kinds[i])))
            return name + strlen(kinds[i]);
    return name;
}

static int flags_of(unsigned amode, bool first)
{
    int flags = O_CLOEXEC;

    flags |= amode & MR_FILE_RDONLY ? O_RDONLY : O_RDWR; /* writing around holes reads them */
    if (first && amode & MR_FILE_CREATE)
        flags |= O_CREAT | (amode & MR_FILE_EXCL ? O_EXCL : 0);
    return flags;
}

/* A write-only file is opened so: holes are left alone then. */
static int open_by_mode(struct mr_file *f, bool first)
{
    int flags = flags_of(f->amode, first);

    f->may_read = true;
    f->fd = open(f->name, flags, 0666);
    if (f->fd < 0 && errno == EACCES && f->amode & MR_FILE_WRONLY) {
        f->may_read = false;
        f->fd = open(f->name, (flags & ~O_ACCMODE) | O_WRONLY, 0666);
    }
    return f->fd < 0 ? errno : 0;
}

/* The first rank makes the file if need be, then the others find it. */
static enum mr_err open_together(struct mr_file *f)
{
    int errno_first = f->comm->rank ? 0 : open_by_mode(f, true), errno_mine;
    enum mr_err err = mr_io_tell(f, &errno_first, sizeof(errno_first));

    if (err)
        return err;
    errno_mine = errno_first;
    if (!errno_first && f->comm->rank)
        errno_mine = open_by_mode(f, false);
    return mr_io_agree(f, errno_mine ? mr_disk_fail(errno_mine, "open", f->name) : MR_SUCCESS);
}

static enum mr_err same_mode(struct mr_file *f)
{
    unsigned first = f->amode;
    enum mr_err err = mr_io_tell(f, &first, sizeof(first));

    if (!err && first != f->amode)
        err = mr_fail(MR_ERR_AMODE, "amode of \"%s\" is 0x%x here and 0x%x at rank 0", f->name, f->amode, first);
    return mr_io_agree(f, err);
}

/* One on each node, or as many as the program wants, spread over the nodes in turn. */
static enum mr_err choose_aggregators(struct mr_file *f)
{
    const struct mr_place *p = mr_comm_place(f->comm);
    int size = f->comm->size, nodes = p->each ? p->nodes : size, wanted = f->hints.cb_nodes ? f->hints.cb_nodes : nodes;

    f->num_aggregators = wanted < size ? wanted : size;
    f->aggregators = malloc((size_t)f->num_aggregators * sizeof(*f->aggregators));
    if (!f->aggregators)
        return mr_fail(MR_ERR_NO_MEM, "no memory for \"%s\"", f->name);
    for (int i = 0; i < f->num_aggregators; i++)
        f->aggregators[i] = p->each ? mr_place_rank(p, i % p->nodes, i / p->nodes) : i;
    return MR_SUCCESS;
}

enum mr_err mr_file_set_hints(struct mr_file *f, const struct mr_file_hints *hints, enum mr_err wrong)
{
    enum mr_err err = mr_io_agree(f, wrong);

    return err ? err : mr_io_take_hints(f, hints);
}

static void forget_file(struct mr_file *f)
{
    for (struct mr_file **at = &open_files; *at; at = &(*at)->next)
        if (*at == f) {
            *at = f->next;
            break;
        }
    if (f->fd >= 0)
        close(f->fd);
    struct mr_type *types[] = {f->etype, f->filetype, f->given_etype, f->given_filetype};
    for (int i = 0; i < 4; i++)
        if (types[i])
            mr_type_put(types[i]);
    if (f->errhandler)
        mr_errhandler_put(f->errhandler);
    if (f->comm)
        mr_comm_put(f->comm);
    free(f->aggregators);
    free(f->name);
    free(f);
}

static struct mr_file *new_file(const char *name, unsigned amode, struct mr_errhandler *errhandler)
{
    struct mr_file *f = calloc(1, sizeof(*f));

    if (!f || !(f->name = strdup(without_kind(name)))) {
        free(f);
        return NULL;
    }
    f->fd = -1;
    f->amode = amode;
    f->errhandler = mr_errhandler_get(errhandler);
    f->etype = f->filetype = f->given_etype = f->given_filetype = mr_type_get(mr_type_byte);
    f->view.type = f->filetype;
    f->datarep = mr_datarep_native;
    f->next = open_files;
    return open_files = f;
}

static enum mr_err find_out_near(struct mr_file *f)
{
    const struct mr_disk d = mr_io_disk(f);
    int near = mr_disk_is_local(&d);
    enum mr_err err = mr_io_tell(f, &near, sizeof(near));

    f->near = near && mr_comm_on_one_node(f->comm);
    return err;
}

/* Each step is the same for all: an error of one is everybody's. */
static enum mr_err begin_file(struct mr_file *f, const struct mr_file_hints *hints)
{
    enum mr_err err = same_mode(f);

    if (!err)
        err = mr_io_take_hints(f, hints);
    if (!err)
        err = mr_io_agree(f, choose_aggregators(f));
    if (!err)
        err = open_together(f);
    if (!err)
        err = find_out_near(f);
    if (!err)
        err = mr_io_shared_open(f);
    return err;
}

enum mr_err mr_file_open(struct mr_comm *c, const char *name, unsigned amode, const struct mr_file_hints *hints,
                         struct mr_errhandler *errhandler, enum mr_err wrong, struct mr_file **out)
{
    struct mr_file *f = wrong ? NULL : new_file(name, amode, errhandler);
    struct mr_comm *own;
    enum mr_err err;

    *out = NULL;
    if (!f && !wrong)
        wrong = mr_fail(MR_ERR_NO_MEM, "no memory for \"%s\"", name);
    err = mr_comm_dup(c, wrong, &own);
    if (!f)
        return err;
    f->comm = own;
    if (!err) {
        mr_comm_set_source(own, c);
        err = begin_file(f, hints);
    }
    if (!err && amode & MR_FILE_APPEND) {
        err = mr_file_end(f, &f->at);
        err = mr_file_shared_set(f, f->at, err);
    }
    if (err) {
        mr_io_shared_abandon(f, err);
        forget_file(f);
        return err;
    }
    *out = f;
    return MR_SUCCESS;
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

enum mr_err mr_file_close(struct mr_file *f)
{
    enum mr_err err = mr_io_shared_close(f), met;
    int fd = f->fd;

    f->fd = -1;
    if (close(fd) && !err)
        err = mr_disk_fail(errno, "close", f->name);
    met = mr_io_barrier(f);
    if (f->amode & MR_FILE_DELETE_ON_CLOSE && !f->comm->rank && unlink(f->name) && !err)
        err = mr_disk_fail(errno, "delete", f->name);
    if (f->amode & MR_FILE_DELETE_ON_CLOSE && !met)
        met = mr_io_barrier(f);
    forget_file(f);
    return err ? err : met;
}

void mr_io_finalize(void)
{
    while (open_files)
        forget_file(open_files);
    mr_datarep_finalize();
}

/* ---- whole files ------------------------------------------------------------------------------------------------- */

enum mr_err mr_file_delete(const char *name)
{
    const char *path = without_kind(name);

    return unlink(path) ? mr_disk_fail(errno, "delete", path) : MR_SUCCESS;
}

static enum mr_err agree_on_size(const struct mr_file *f, int64_t bytes, enum mr_err wrong)
{
    int64_t first = bytes;
    enum mr_err err = mr_io_tell(f, &first, sizeof(first));

    if (!err && first != bytes && first >= 0) /* less than 0 is wrong at rank 0 itself */
        err = mr_fail(MR_ERR_NOT_SAME, "size is %lld here and %lld at rank 0", (long long)bytes, (long long)first);
    return mr_io_agree(f, wrong ? wrong : err);
}

/* Work of the first rank for all. */
static enum mr_err by_first(const struct mr_file *f, int64_t bytes, enum mr_err wrong, int (*what)(int fd, off_t bytes),
                            const char *doing)
{
    enum mr_err err = agree_on_size(f, bytes, wrong);
    int error;

    if (err)
        return err;
    error = f->comm->rank ? 0 : what(f->fd, bytes);
    return mr_io_agree(f, error ? mr_disk_fail(error, doing, f->name) : MR_SUCCESS);
}

static int truncate_file(int fd, off_t bytes)
{
    return ftruncate(fd, bytes) ? errno : 0;
}

enum mr_err mr_file_set_size(struct mr_file *f, int64_t bytes, enum mr_err wrong)
{
    return by_first(f, bytes, wrong, truncate_file, "set the size of");
}

static int allocate_file(int fd, off_t bytes)
{
    return bytes ? posix_fallocate(fd, 0, bytes) : 0;
}

enum mr_err mr_file_preallocate(struct mr_file *f, int64_t bytes, enum mr_err wrong)
{
    return by_first(f, bytes, wrong, allocate_file, "allocate space for");
}

enum mr_err mr_file_size(struct mr_file *f, int64_t *bytes)
{
    const struct mr_disk d = mr_io_disk(f);

    return mr_disk_size(&d, bytes);
}

enum mr_err mr_file_sync(struct mr_file *f)
{
    int error;

    mr_unlock();
    error = fsync(f->fd) ? errno : 0;
    mr_lock();
    return mr_io_agree(f, error ? mr_disk_fail(error, "write to its device", f->name) : MR_SUCCESS);
}

enum mr_err mr_file_set_atomic(struct mr_file *f, bool atomic)
{
    const struct mr_disk d = mr_io_disk(f);
    int first = atomic;
    enum mr_err err = mr_io_tell(f, &first, sizeof(first));

    if (!err && first != (int)atomic)
        err = mr_fail(MR_ERR_NOT_SAME, "flag is %d here and %d at rank 0", (int)atomic, first);
    if (!err && atomic && !(f->amode & MR_FILE_RDONLY) && !mr_disk_can_lock(&d))
        err = mr_fail(MR_ERR_UNSUPPORTED_OPERATION, "the file system of \"%s\" has no locks", f->name);
    err = mr_io_agree(f, err);
    if (!err)
        f->atomic = atomic;
    return err;
}
