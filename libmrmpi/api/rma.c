/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided communication: windows made, and operations (MPI-4.1 sections 12.2 and 12.3). */
#include "libmrmpi/api/api.h"

#include <string.h>

#include "libmrmpi/api/request.h"
#include "libmrmpi/api/win.h"

/* ---- making windows ---- */

static enum mr_err check_part(MPI_Aint size, int64_t disp_unit)
{
    if (size < 0)
        return mr_fail(MR_ERR_SIZE, "size is %ld", size);
    if (disp_unit <= 0)
        return mr_fail(MR_ERR_DISP, "disp_unit is %lld", (long long)disp_unit);
    return MR_SUCCESS;
}

/* *win is MPI_WIN_NULL after an error. */
static enum mr_err make_window(struct mr_comm *c, enum mr_win_flavor flavor, struct mr_win_part part, MPI_Info info,
                               enum mr_err wrong, MPI_Win *win, struct mr_win **out)
{
    ALSO_NOT_NULL(win);
    if (win)
        *win = MPI_WIN_NULL;
    part.hints = (struct mr_win_hints){.ordering = MR_ORDER_ALL, .same_op_no_op = true};
    ALSO(api_win_hints(info, &part.hints));
    enum mr_err err = mr_win_make(c, flavor, &part, wrong, out);
    return err ? err : api_new_win(*out, win);
}

MPI_COUNT_FN(int, Win_create,
             (void *base, MPI_Aint size, api_displ disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win))
{
    struct mr_comm *c = NULL;
    struct mr_win *w;
    enum mr_err wrong;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_intra(c));
    wrong = check_part(size, disp_unit);
    if (!base && size)
        ALSO(mr_fail(MR_ERR_BASE, "base is a null pointer, size is %ld", size));
    err =
        make_window(c, MR_WIN_CREATE, (struct mr_win_part){.base = base, .size = (size_t)size, .disp_unit = disp_unit},
                    info, wrong, win, &w);
    API_LEAVE(c);
}

static enum mr_err allocate_window(struct mr_comm *c, enum mr_win_flavor flavor, MPI_Aint size, int64_t disp_unit,
                                   MPI_Info info, void *baseptr, MPI_Win *win)
{
    struct mr_win *w;
    enum mr_err err = api_intra(c), wrong = check_part(size, disp_unit);
    ALSO_NOT_NULL(baseptr);
    if (!err)
        err = make_window(c, flavor, (struct mr_win_part){.size = (size_t)size, .disp_unit = disp_unit}, info, wrong,
                          win, &w);
    if (!err)
        memcpy(baseptr, &w->base, sizeof(w->base));
    return err;
}

MPI_COUNT_FN(int, Win_allocate,
             (MPI_Aint size, api_displ disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    err = allocate_window(c, MR_WIN_ALLOCATE, size, disp_unit, info, baseptr, win);
    API_LEAVE(c);
}

MPI_COUNT_FN(int, Win_allocate_shared,
             (MPI_Aint size, api_displ disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    err = allocate_window(c, MR_WIN_SHARED, size, disp_unit, info, baseptr, win);
    API_LEAVE(c);
}

#ifndef API_LARGE
MPI_FN(int, Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win))
{
    struct mr_comm *c = NULL;
    struct mr_win *w;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_intra(c));
    err = make_window(c, MR_WIN_DYNAMIC, (struct mr_win_part){.disp_unit = 1}, info, MR_SUCCESS, win, &w);
    API_LEAVE(c);
}
#endif

MPI_COUNT_FN(int, Win_shared_query, (MPI_Win win, int rank, MPI_Aint *size, api_displ *disp_unit, void *baseptr))
{
    struct mr_win *w = NULL;
    struct mr_win_part part;
    API_ENTER();
    CHECK(api_win(win, &w));
    NOT_NULL(size);
    NOT_NULL(disp_unit);
    NOT_NULL(baseptr);
    rank = abi_rank_in(rank);
    if ((unsigned)rank >= (unsigned)w->comm->size && rank != MR_PROC_NULL)
        CHECK(mr_fail(MR_ERR_RANK, "rank %d is not in the window", abi_rank_out(rank)));
    CHECK(mr_win_shared(w, rank, &part));
    *size = (MPI_Aint)part.size;
    *disp_unit = (api_displ)part.disp_unit;
    memcpy(baseptr, &part.base, sizeof(part.base));
    API_LEAVE_WIN(w);
}

/* ---- operations ---- */

/* Data of the origin, with the names of its arguments. */
static inline enum mr_err origin_data(const void *buf, int64_t count, MPI_Datatype datatype, const char *const names[3],
                                      struct mr_rma_data *out)
{
    struct mr_type *t;
    enum mr_err err = api_type_named(datatype, &t, names[2]);
    if (!err)
        err = api_buffer_named(buf, count, t, names[0], names[1], names[2]);
    if (!err)
        *out = (struct mr_rma_data){.buf = (void *)(uintptr_t)buf, .count = (size_t)count, .type = t};
    return err;
}
#define ORIGIN(out)                                                                                                    \
    origin_data(origin_addr, origin_count, origin_datatype,                                                            \
                (const char *const[]){"origin_addr", "origin_count", "origin_datatype"}, out)
#define RESULT(out)                                                                                                    \
    origin_data(result_addr, result_count, result_datatype,                                                            \
                (const char *const[]){"result_addr", "result_count", "result_datatype"}, out)

static enum mr_err bad_rank(const struct mr_win *w, int rank)
{
    return mr_fail(MR_ERR_RANK, "target_rank %d is not in the window, which has ranks 0 to %d", abi_rank_out(rank),
                   w->comm->size - 1);
}

static inline enum mr_err target_place(const struct mr_win *w, int rank, MPI_Aint disp, int64_t count,
                                       MPI_Datatype datatype, struct mr_rma_place *out)
{
    struct mr_type *t;
    enum mr_err err = api_type_named(datatype, &t, "target_datatype");
    if (err)
        return err;
    if (unlikely(count < 0))
        return api_bad_count((long)count, "target_count");
    if (unlikely(!t->committed))
        return api_bad_type(t, "target_datatype");
    rank = abi_rank_in(rank);
    if (unlikely((unsigned)rank >= (unsigned)w->comm->size && rank != MR_PROC_NULL))
        return bad_rank(w, rank);
    if (unlikely(disp < 0) && w->flavor != MR_WIN_DYNAMIC && rank != MR_PROC_NULL)
        return mr_fail(MR_ERR_DISP, "target_disp is %ld", disp);
    *out = (struct mr_rma_place){.rank = rank, .disp = disp, .count = (size_t)count, .type = t};
    return MR_SUCCESS;
}
#define TARGET(w, out) target_place(w, target_rank, target_disp, target_count, target_datatype, out)

/* An operation of MPI, not of the program. */
static enum mr_err op_of(MPI_Op op, struct mr_op **out)
{
    enum mr_err err = api_op(op, out);
    if (!err && (*out)->id == MR_OP_USER)
        err = mr_fail(MR_ERR_OP, "op was made by the program: only those of MPI work on windows");
    return err;
}

#define PUT_ARGS                                                                                                       \
    const void *origin_addr, api_count origin_count, MPI_Datatype origin_datatype, int target_rank,                    \
        MPI_Aint target_disp, api_count target_count, MPI_Datatype target_datatype
#define GET_ARGS                                                                                                       \
    void *origin_addr, api_count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,    \
        api_count target_count, MPI_Datatype target_datatype
#define FETCH_ARGS                                                                                                     \
    const void *origin_addr, api_count origin_count, MPI_Datatype origin_datatype, void *result_addr,                  \
        api_count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,                   \
        api_count target_count, MPI_Datatype target_datatype

/* The arguments by their names in all of these functions. */
#define PUT_NAMES origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype
#define FETCH_NAMES                                                                                                    \
    origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank, target_disp,  \
        target_count, target_datatype

/*
 * Bytes of a transfer with equal numbers of elements of the same basic datatype on both sides, the common case; 0:
 * another transfer, or a possible error.
 */
static inline size_t fast_bytes(const void *origin_addr, int64_t origin_count, MPI_Datatype origin_datatype,
                                int64_t target_count, MPI_Datatype target_datatype)
{
    const struct mr_type *t = abi_basic(origin_datatype);
    if (unlikely(!t || origin_datatype != target_datatype || origin_count != target_count || origin_count < 0 ||
                 abi_no_address(origin_addr) || !t->contiguous))
        return 0;
    return (size_t)origin_count * t->size;
}
#define FAST_BYTES fast_bytes(origin_addr, origin_count, origin_datatype, target_count, target_datatype)

/* Arguments of mr_put_bytes, mr_get_bytes and mr_update_elements. */
static inline bool is_target_place(const struct mr_win *w, int rank, MPI_Aint disp)
{
    return (unsigned)rank < (unsigned)w->comm->size && disp >= 0;
}

/* An operation of MPI with an effect; NULL: another operation. */
static inline struct mr_op *fast_op(MPI_Op op)
{
    return op == MPI_NO_OP ? NULL : abi_builtin_op(op);
}

/* r NULL: there is no request. So in all of these. */
static __attribute__((noinline)) enum mr_err put_it(struct mr_win *w, PUT_ARGS, struct mr_request **r)
{
    struct mr_rma_data from;
    struct mr_rma_place to;
    enum mr_err err = ORIGIN(&from);
    if (!err)
        err = TARGET(w, &to);
    return err ? err : mr_put(w, &from, &to, r);
}

static __attribute__((noinline)) enum mr_err get_it(struct mr_win *w, GET_ARGS, struct mr_request **r)
{
    struct mr_rma_data to;
    struct mr_rma_place from;
    enum mr_err err = ORIGIN(&to);
    if (!err)
        err = TARGET(w, &from);
    return err ? err : mr_get(w, &to, &from, r);
}

static enum mr_err accumulate_it(struct mr_win *w, PUT_ARGS, MPI_Op op, struct mr_request **r)
{
    struct mr_rma_data from;
    struct mr_rma_place to;
    struct mr_op *o = fast_op(op);
    enum mr_err err;
    if (likely(o && !r && FAST_BYTES) && is_target_place(w, target_rank, target_disp))
        return mr_update_elements(w, origin_addr, NULL, (size_t)origin_count, abi_basic(origin_datatype), target_rank,
                                  target_disp, o);
    err = op_of(op, &o);
    if (!err)
        err = ORIGIN(&from);
    if (!err)
        err = TARGET(w, &to);
    return err ? err : mr_accumulate(w, &from, NULL, &to, o, r);
}

/* With MPI_NO_OP the origin's arguments are not checked. */
static enum mr_err fetch_it(struct mr_win *w, FETCH_ARGS, MPI_Op op, struct mr_request **r)
{
    struct mr_rma_data from = {0}, result;
    struct mr_rma_place to;
    struct mr_op *o;
    enum mr_err err = op_of(op, &o);
    if (!err && o->id != MR_OP_NO_OP)
        err = ORIGIN(&from);
    if (!err)
        err = RESULT(&result);
    if (!err)
        err = TARGET(w, &to);
    return err ? err : mr_accumulate(w, &from, &result, &to, o, r);
}

/*
 * Put and get are called often. The fast path runs with nothing kept for the time after except the window; locking,
 * errors and all else are in a function of their own.
 */
#define TRANSFER_FN(name, params, bytes_fn, it)                                                                        \
    static __attribute__((noinline)) int name##_guarded params                                                         \
    {                                                                                                                  \
        size_t bytes = FAST_BYTES;                                                                                     \
        struct mr_win *w = NULL;                                                                                       \
        enum mr_err err;                                                                                               \
        if (!api_fast)                                                                                                 \
            api_enter(API_NAME(name));                                                                                 \
        err = api_win(win, &w);                                                                                        \
        if (!err && bytes && is_target_place(w, target_rank, target_disp))                                             \
            err = bytes_fn(w, origin_addr, bytes, target_rank, target_disp);                                           \
        else if (!err)                                                                                                 \
            err = it(w, PUT_NAMES, NULL);                                                                              \
        if (unlikely(err))                                                                                             \
            return api_fail_win(w, err, API_NAME(name));                                                               \
        if (!api_fast)                                                                                                 \
            api_unlock();                                                                                              \
        return MPI_SUCCESS;                                                                                            \
    }                                                                                                                  \
    MPI_COUNT_FN(int, name, params)                                                                                    \
    {                                                                                                                  \
        size_t bytes = FAST_BYTES;                                                                                     \
        struct mr_win *w;                                                                                              \
        enum mr_err err;                                                                                               \
        if (unlikely(!api_fast || !bytes || !(w = api_find(ABI_WIN, abi_number(win))) ||                               \
                     !is_target_place(w, target_rank, target_disp)))                                                   \
            return name##_guarded(PUT_NAMES, win);                                                                     \
        err = bytes_fn(w, origin_addr, bytes, target_rank, target_disp);                                               \
        return likely(!err) ? MPI_SUCCESS : api_fail_win(w, err, API_NAME(name));                                      \
    }

TRANSFER_FN(Put, (PUT_ARGS, MPI_Win win), mr_put_bytes, put_it) /* MPI_Put */
TRANSFER_FN(Get, (GET_ARGS, MPI_Win win), mr_get_bytes, get_it) /* MPI_Get */

/* Longer operations. */
#define WITHOUT_REQUEST(work)                                                                                          \
    struct mr_win *w = NULL;                                                                                           \
    API_ENTER();                                                                                                       \
    CHECK(api_win(win, &w));                                                                                           \
    err = work;                                                                                                        \
    API_LEAVE_WIN(w)
#define WITH_REQUEST(work)                                                                                             \
    struct mr_win *w = NULL;                                                                                           \
    struct mr_request *r;                                                                                              \
    API_ENTER();                                                                                                       \
    CHECK(api_win(win, &w));                                                                                           \
    NOT_NULL(request);                                                                                                 \
    *request = MPI_REQUEST_NULL;                                                                                       \
    CHECK(work);                                                                                                       \
    err = api_first_handle(r, request);                                                                                \
    API_LEAVE_WIN(w)

MPI_COUNT_FN(int, Accumulate, (PUT_ARGS, MPI_Op op, MPI_Win win)) /* MPI_Accumulate */
{
    WITHOUT_REQUEST(accumulate_it(w, PUT_NAMES, op, NULL));
}

MPI_COUNT_FN(int, Get_accumulate, (FETCH_ARGS, MPI_Op op, MPI_Win win)) /* MPI_Get_accumulate */
{
    WITHOUT_REQUEST(fetch_it(w, FETCH_NAMES, op, NULL));
}

MPI_COUNT_FN(int, Rput, (PUT_ARGS, MPI_Win win, MPI_Request *request)) /* MPI_Rput */
{
    WITH_REQUEST(put_it(w, PUT_NAMES, &r));
}

MPI_COUNT_FN(int, Rget, (GET_ARGS, MPI_Win win, MPI_Request *request)) /* MPI_Rget */
{
    WITH_REQUEST(get_it(w, PUT_NAMES, &r));
}

MPI_COUNT_FN(int, Raccumulate, (PUT_ARGS, MPI_Op op, MPI_Win win, MPI_Request *request)) /* MPI_Raccumulate */
{
    WITH_REQUEST(accumulate_it(w, PUT_NAMES, op, &r));
}

MPI_COUNT_FN(int, Rget_accumulate, (FETCH_ARGS, MPI_Op op, MPI_Win win, MPI_Request *request)) /* MPI_Rget_accumulate */
{
    WITH_REQUEST(fetch_it(w, FETCH_NAMES, op, &r));
}

#ifndef API_LARGE
/* One element of a basic datatype. */
static enum mr_err element_of(const struct mr_win *w, MPI_Datatype datatype, int rank, MPI_Aint disp,
                              struct mr_rma_place *out)
{
    enum mr_err err = target_place(w, rank, disp, 1, datatype, out);
    if (!err && !out->type->builtin)
        err = mr_fail(MR_ERR_TYPE, "datatype is a derived one: it must be one of MPI's");
    return err;
}

MPI_FN(int, Fetch_and_op,
       (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
        MPI_Op op, MPI_Win win))
{
    struct mr_win *w = NULL;
    struct mr_rma_place to;
    struct mr_op *o = fast_op(op);
    struct mr_type *t = abi_basic(datatype);
    API_ENTER();
    CHECK(api_win(win, &w));
    if (likely(o && t && t->contiguous && t->size && !abi_no_address(origin_addr) && !abi_no_address(result_addr)) &&
        is_target_place(w, target_rank, target_disp)) {
        err = mr_update_elements(w, origin_addr, result_addr, 1, t, target_rank, target_disp, o);
        goto out;
    }
    CHECK(op_of(op, &o));
    CHECK(element_of(w, datatype, target_rank, target_disp, &to));
    if (o->id != MR_OP_NO_OP)
        CHECK(api_buffer_named(origin_addr, 1, to.type, "origin_addr", "the count", "datatype"));
    CHECK(api_buffer_named(result_addr, 1, to.type, "result_addr", "the count", "datatype"));
    struct mr_rma_data from = {.buf = (void *)(uintptr_t)origin_addr, .count = 1, .type = to.type};
    struct mr_rma_data result = {.buf = result_addr, .count = 1, .type = to.type};
    err = mr_accumulate(w, &from, &result, &to, o, NULL);
    API_LEAVE_WIN(w);
}

/* MPI-4.1 section 12.3.4: C integers, Fortran integers, logicals, multi-language types, bytes. */
static bool can_be_compared(const struct mr_type *t)
{
    return mr_op_allows(&mr_op_builtin[MR_OP_BAND], t) ||
           (mr_op_allows(&mr_op_builtin[MR_OP_LAND], t) && !mr_op_allows(&mr_op_builtin[MR_OP_SUM], t));
}

MPI_FN(int, Compare_and_swap,
       (const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
        MPI_Aint target_disp, MPI_Win win))
{
    struct mr_win *w = NULL;
    struct mr_rma_place at;
    API_ENTER();
    CHECK(api_win(win, &w));
    CHECK(element_of(w, datatype, target_rank, target_disp, &at));
    if (!can_be_compared(at.type))
        CHECK(mr_fail(MR_ERR_TYPE, "%s is neither an integer, a logical nor a byte", mr_type_name(at.type)));
    CHECK(api_buffer_named(origin_addr, 1, at.type, "origin_addr", "the count", "datatype"));
    CHECK(api_buffer_named(compare_addr, 1, at.type, "compare_addr", "the count", "datatype"));
    CHECK(api_buffer_named(result_addr, 1, at.type, "result_addr", "the count", "datatype"));
    err = mr_compare_and_swap(w, origin_addr, compare_addr, result_addr, &at);
    API_LEAVE_WIN(w);
}
#endif
