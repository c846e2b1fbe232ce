/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows (MPI-4.1 sections 12.2 and 12.5): hints, freeing, memory of dynamic windows, names, and synchronization.
 * Creation and operations are in rma.c; attributes in attr.c.
 */
#include "libmrmpi/api/api.h"

#include <stdio.h>
#include <string.h>

#include "libmrmpi/api/win.h"

/* ---- hints (MPI-4.1 section 12.2.1) ---- */

static bool is_true(const char *value)
{
    return strcmp(value, "true") == 0;
}

static const char *truth(bool b)
{
    return b ? "true" : "false";
}

static const struct {
    const char *name;
    uint8_t bit;
} orders[] = {{"rar", MR_ORDER_RAR}, {"raw", MR_ORDER_RAW}, {"war", MR_ORDER_WAR}, {"waw", MR_ORDER_WAW}};
enum { ORDERS = sizeof(orders) / sizeof(orders[0]) };

/* "none", or names with commas between; unknown names are ignored. */
static uint8_t read_ordering(const char *value)
{
    uint8_t set = 0;
    while (*value) {
        size_t len = strcspn(value, ",");
        for (int i = 0; i < ORDERS; i++)
            if (len == 3 && strncmp(value, orders[i].name, 3) == 0)
                set |= orders[i].bit;
        value += len;
        value += *value == ',';
    }
    return set;
}

static void read_truth(const struct mr_info *i, const char *key, bool *to)
{
    const char *value = mr_info_find(i, key);
    if (value)
        *to = is_true(value);
}

static void read_win_hints(const struct mr_info *i, struct mr_win_hints *h)
{
    const char *order = mr_info_find(i, "accumulate_ordering"), *ops = mr_info_find(i, "accumulate_ops");
    read_truth(i, "no_locks", &h->no_locks);
    read_truth(i, "same_size", &h->same_size);
    read_truth(i, "same_disp_unit", &h->same_disp_unit);
    read_truth(i, "alloc_shared_noncontig", &h->noncontiguous);
    if (order)
        h->ordering = read_ordering(order);
    if (ops)
        h->same_op_no_op = strcmp(ops, "same_op") != 0;
}

enum mr_err api_win_hints(MPI_Info info, struct mr_win_hints *h)
{
    struct mr_info *i;
    enum mr_err err = info == MPI_INFO_NULL ? MR_SUCCESS : api_info(info, &i);
    if (!err && info != MPI_INFO_NULL)
        read_win_hints(i, h);
    return err;
}

static void write_ordering(uint8_t set, char *to, size_t room)
{
    size_t at = 0;
    for (int i = 0; i < ORDERS; i++)
        if (set & orders[i].bit)
            at += (size_t)snprintf(to + at, room - at, "%s%s", at ? "," : "", orders[i].name);
    if (!at)
        snprintf(to, room, "none");
}

/* All known hints, with the values in force; and the source of progress at a passive target. */
static struct mr_info *list_win_hints(const struct mr_win_hints *h)
{
    struct mr_info *i = mr_info_new();
    char order[16];
    write_ordering(h->ordering, order, sizeof(order));
    if (i && mr_info_set(i, "no_locks", truth(h->no_locks)) && mr_info_set(i, "accumulate_ordering", order) &&
        mr_info_set(i, "accumulate_ops", h->same_op_no_op ? "same_op_no_op" : "same_op") &&
        mr_info_set(i, "same_size", truth(h->same_size)) &&
        mr_info_set(i, "same_disp_unit", truth(h->same_disp_unit)) &&
        mr_info_set(i, "alloc_shared_noncontig", truth(h->noncontiguous)) &&
        mr_info_set(i, "mrmpi_async_progress", truth(mr_config.async_progress)))
        return i;
    mr_info_put(i);
    return NULL;
}

MPI_FN(int, Win_set_info, (MPI_Win win, MPI_Info info))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    struct mr_win_hints hints = w->hints;
    CHECK(api_win_hints(info, &hints));
    hints.noncontiguous = w->hints.noncontiguous; /* where the memory is has been settled */
    w->hints = hints;
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_get_info, (MPI_Win win, MPI_Info *info_used))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    NOT_NULL(info_used);
    err = api_new_info(list_win_hints(&w->hints), info_used);
    API_LEAVE_WIN(w);
}

/* ---- freeing, names, memory of dynamic windows ---- */

MPI_FN(int, Win_free, (MPI_Win * win))
{
    struct mr_win *w = NULL;
    int user_error;
    API_ENTER();
    NOT_NULL(win);
    CHECK(api_win(*win, &w));
    CHECK(mr_win_may_close(w));
    api_in_callback++;
    err = mr_attr_delete_all(&w->attrs, w, &user_error);
    api_in_callback--;
    CHECK(err);
    struct mr_errhandler *h = mr_errhandler_get(w->errhandler);
    err = mr_win_close(w);
    w = NULL;
    api_handle_free(ABI_WIN, abi_number(*win));
    *win = MPI_WIN_NULL;
    if (!err) {
        mr_errhandler_put(h);
        goto out;
    }
    int code = api_fail_with(h, NULL, err, __func__ + 1);
    api_lock();
    mr_errhandler_put(h);
    api_unlock();
    return code;
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_attach, (MPI_Win win, void *base, MPI_Aint size))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    if (size < 0)
        CHECK(mr_fail(MR_ERR_SIZE, "size is %ld", size));
    if (!base && size)
        CHECK(mr_fail(MR_ERR_BASE, "base is a null pointer, size is %ld", size));
    err = mr_win_attach(w, base, (size_t)size);
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_detach, (MPI_Win win, const void *base))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    err = mr_win_detach(w, base);
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_get_group, (MPI_Win win, MPI_Group *group))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    NOT_NULL(group);
    err = api_new_group(mr_group_get(w->comm->group), group);
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_set_name, (MPI_Win win, const char *win_name))
{
    struct mr_win *w = NULL;
    int len;
    API_ENTER();
    CHECK(api_win(win, &w));
    NOT_NULL(win_name);
    api_string(w->name, sizeof(w->name), win_name, &len);
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_get_name, (MPI_Win win, char *win_name, int *resultlen))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    NOT_NULL(win_name);
    NOT_NULL(resultlen);
    api_string(win_name, MPI_MAX_OBJECT_NAME, w->name, resultlen);
    API_LEAVE_WIN(w);
}

/* ---- synchronization ---- */

static enum mr_err check_assert(int assert, unsigned allowed)
{
    if (assert & ~(int)allowed)
        return mr_fail(MR_ERR_ASSERT, "assert is %d: %#x in it are no assertions of this function", assert,
                       (unsigned)assert & ~allowed);
    return MR_SUCCESS;
}

MPI_FN(int, Win_fence, (int assert, MPI_Win win))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    CHECK(check_assert(assert, MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED));
    err = mr_win_fence(w, abi_assertions(assert));
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_post, (MPI_Group group, int assert, MPI_Win win))
{
    struct mr_win *w = NULL;
    struct mr_group *g;
    API_ENTER();
    CHECK(api_win(win, &w));
    CHECK(api_group(group, &g));
    CHECK(check_assert(assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT));
    err = mr_win_post(w, g, abi_assertions(assert));
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_start, (MPI_Group group, int assert, MPI_Win win))
{
    struct mr_win *w = NULL;
    struct mr_group *g;
    API_ENTER();
    CHECK(api_win(win, &w));
    CHECK(api_group(group, &g));
    CHECK(check_assert(assert, MPI_MODE_NOCHECK));
    err = mr_win_start(w, g, abi_assertions(assert));
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_test, (MPI_Win win, int *flag))
{
    struct mr_win *w = NULL;
    bool done = false;
    API_ENTER();
    CHECK(api_win(win, &w));
    NOT_NULL(flag);
    err = mr_win_test(w, &done);
    *flag = done;
    API_LEAVE_WIN(w);
}

/* The rank as core/ numbers it; MR_PROC_NULL: there is nothing to do. */
static enum mr_err check_rank(const struct mr_win *w, int *rank)
{
    *rank = abi_rank_in(*rank);
    return (unsigned)*rank < (unsigned)w->comm->size || *rank == MR_PROC_NULL
               ? MR_SUCCESS
               : mr_fail(MR_ERR_RANK, "rank %d is not in the window, which has ranks 0 to %d", abi_rank_out(*rank),
                         w->comm->size - 1);
}

MPI_FN(int, Win_lock, (int lock_type, int rank, int assert, MPI_Win win))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    if (lock_type != MPI_LOCK_SHARED && lock_type != MPI_LOCK_EXCLUSIVE)
        CHECK(mr_fail(MR_ERR_LOCKTYPE, "lock_type is %d, neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE", lock_type));
    CHECK(check_rank(w, &rank));
    CHECK(check_assert(assert, MPI_MODE_NOCHECK));
    if (rank != MR_PROC_NULL)
        err = mr_win_lock(w, rank, lock_type == MPI_LOCK_EXCLUSIVE, abi_assertions(assert));
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_lock_all, (int assert, MPI_Win win))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    CHECK(check_assert(assert, MPI_MODE_NOCHECK));
    err = mr_win_lock_all(w, abi_assertions(assert));
    API_LEAVE_WIN(w);
}

#define AT_RANK(name, function)                                                                                        \
    MPI_FN(int, name, (int rank, MPI_Win win))                                                                         \
    {                                                                                                                  \
        struct mr_win *w = NULL;                                                                                       \
        API_ENTER();                                                                                                   \
        CHECK(api_win(win, &w));                                                                                       \
        CHECK(check_rank(w, &rank));                                                                                   \
        if (rank != MR_PROC_NULL)                                                                                      \
            err = function(w, rank);                                                                                   \
        API_LEAVE_WIN(w);                                                                                              \
    }
AT_RANK(Win_unlock, mr_win_unlock)           /* MPI_Win_unlock */
AT_RANK(Win_flush, mr_win_flush)             /* MPI_Win_flush */
AT_RANK(Win_flush_local, mr_win_flush_local) /* MPI_Win_flush_local */

#define OF_WINDOW(name, function)                                                                                      \
    MPI_FN(int, name, (MPI_Win win))                                                                                   \
    {                                                                                                                  \
        struct mr_win *w = NULL;                                                                                       \
        API_ENTER();                                                                                                   \
        CHECK(api_win(win, &w));                                                                                       \
        err = function(w);                                                                                             \
        API_LEAVE_WIN(w);                                                                                              \
    }
OF_WINDOW(Win_complete, mr_win_complete)               /* MPI_Win_complete */
OF_WINDOW(Win_wait, mr_win_wait)                       /* MPI_Win_wait */
OF_WINDOW(Win_unlock_all, mr_win_unlock_all)           /* MPI_Win_unlock_all */
OF_WINDOW(Win_flush_all, mr_win_flush_all)             /* MPI_Win_flush_all */
OF_WINDOW(Win_flush_local_all, mr_win_flush_local_all) /* MPI_Win_flush_local_all */
OF_WINDOW(Win_sync, mr_win_sync)                       /* MPI_Win_sync */
