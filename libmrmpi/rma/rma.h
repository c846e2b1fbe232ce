/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided communication (MPI-4.1 chapter 12): windows, put, get and accumulate, and synchronization.
 *
 * Reachable memory, the process's own and that of ranks of its node in windows that MPI allocated, is read and written
 * at once. All else goes over the virtual channels to the target, whose progress engine applies the operation: short
 * data in packets, long data as messages from memory to memory. Packets of a pair of ranks arrive once and in order, so
 * nothing here knows of links or of their faults.
 *
 * api/ calls with the library's lock held; arguments have been checked, except against the window, which is checked
 * here. Functions that wait give the lock away meanwhile. Errors leave the window unchanged; a lost peer is
 * MR_ERR_PROC_FAILED for all operations that need the peer.
 */
#ifndef MRMPI_RMA_H
#define MRMPI_RMA_H

#include "libmrmpi/core/core.h"
#include "libmrmpi/p2p/p2p.h"

enum mr_win_flavor { MR_WIN_CREATE = 1, MR_WIN_ALLOCATE, MR_WIN_DYNAMIC, MR_WIN_SHARED }; /* as in mpi.h */

/* A program's promises about a window (MPI-4.1 section 12.2.1). */
struct mr_win_hints {
    bool no_locks, same_size, same_disp_unit;
    bool same_op_no_op; /* accumulate_ops; false: same_op */
    uint8_t ordering;   /* accumulate_ordering: enum mr_win_order */
    bool noncontiguous; /* alloc_shared_noncontig */
};
enum mr_win_order { MR_ORDER_RAR = 1, MR_ORDER_RAW = 2, MR_ORDER_WAR = 4, MR_ORDER_WAW = 8, MR_ORDER_ALL = 15 };

struct mr_win {
    int handle;
    struct mr_comm *comm; /* a duplicate of the program's: its context names the window in packets */
    struct mr_errhandler *errhandler;
    struct mr_attr *attrs;
    char name[128];
    enum mr_win_flavor flavor;
    struct mr_win_hints hints;
    void *base; /* of this process, as are the other two */
    size_t size;
    ptrdiff_t disp_unit;
    struct {
        int disp_unit, flavor, model;
    } attr;                  /* for api/: the targets of the attributes that MPI defines */
    struct mr_win_state *in; /* rma's own */
};

void mr_rma_init(void);
void mr_rma_finalize(void); /* windows not freed are released, too */

/* ---- windows (window.c, memory.c) -------------------------------------------------------------------------------- */

/* A process's contribution to a window. */
struct mr_win_part {
    void *base; /* MR_WIN_CREATE */
    size_t size;
    ptrdiff_t disp_unit;
    struct mr_win_hints hints;
};
/*
 * Collective. *out has the errhandler of new windows and no name. MR_ERR_RMA_SHARED: not all share memory. `wrong`: an
 * error of the caller that ends the call for all.
 */
enum mr_err mr_win_make(struct mr_comm *c, enum mr_win_flavor flavor, const struct mr_win_part *part, enum mr_err wrong,
                        struct mr_win **out);
/*
 * The program is told of err, by a call or a request. A target, or an adapter, may know of a failure before this
 * process does: a program that leaves its epoch then may free the window nevertheless.
 */
void mr_win_note(struct mr_win *w, enum mr_err err);
/* MR_ERR_RMA_SYNC: an epoch is open, and no failure is known. */
enum mr_err mr_win_may_close(const struct mr_win *w);
/* Collective: all requested operations are done, everywhere. The window is gone, whatever the result. */
enum mr_err mr_win_close(struct mr_win *w);
/* Drops the window, although others may still have it; no peer is asked. */
void mr_win_put(struct mr_win *w);
/*
 * After an error of a collective operation on the window: drops the window. If a member has failed, as this process
 * knows or as err says, others may not have seen the error: the window still answers them, without the program's
 * memory, and is gone when all living members have closed or abandoned theirs. Waits for nobody.
 */
void mr_win_abandon(struct mr_win *w, enum mr_err err);
/* MR_WIN_DYNAMIC, local. Memory may be attached once only. */
enum mr_err mr_win_attach(struct mr_win *w, void *base, size_t size);
enum mr_err mr_win_detach(struct mr_win *w, const void *base);
/* The open epochs at this process, and the awaited ranks, in words; "": none (epoch.c). */
void mr_win_describe(const struct mr_win *w, char *out, size_t cap);
/*
 * The part of a rank as seen by this process: its size and its address here, or 0 and NULL if loads and stores do not
 * reach it. MR_PROC_NULL: the first reachable part. MR_ERR_RMA_FLAVOR: a dynamic window.
 */
enum mr_err mr_win_shared(struct mr_win *w, int rank, struct mr_win_part *out);

/* ---- operations (origin.c) --------------------------------------------------------------------------------------- */

/* Data of this process. */
struct mr_rma_data {
    void *buf; /* const for data that is only sent */
    size_t count;
    struct mr_type *type;
};
/* Data in a window. */
struct mr_rma_place {
    int rank; /* may be MR_PROC_NULL */
    ptrdiff_t disp;
    size_t count;
    struct mr_type *type;
};

/*
 * req NULL: completed by the synchronization of the window. Else *req is complete when the origin's buffers may be used
 * again, and results have arrived. MR_ERR_RMA_SYNC: no epoch is open for the operation; MR_ERR_RMA_RANGE: not all of it
 * is in the window; MR_ERR_ARG: the two sides have different amounts of data; then nothing has happened.
 */
enum mr_err mr_put(struct mr_win *w, const struct mr_rma_data *from, const struct mr_rma_place *to,
                   struct mr_request **req);
enum mr_err mr_get(struct mr_win *w, const struct mr_rma_data *to, const struct mr_rma_place *from,
                   struct mr_request **req);
/*
 * The same for bytes (not 0) in one piece, without a request, in a few instructions if possible. rank is a rank of the
 * window, disp not negative.
 */
enum mr_err mr_put_bytes(struct mr_win *w, const void *data, size_t bytes, int rank, ptrdiff_t disp);
enum mr_err mr_get_bytes(struct mr_win *w, void *data, size_t bytes, int rank, ptrdiff_t disp);
/* result NULL: accumulate; else the former values go there. With MR_OP_NO_OP `from` is ignored. */
enum mr_err mr_accumulate(struct mr_win *w, const struct mr_rma_data *from, const struct mr_rma_data *result,
                          const struct mr_rma_place *to, const struct mr_op *op, struct mr_request **req);
/*
 * The same for count elements (not 0) of a contiguous basic type, equal on both sides, without a request, in a few
 * instructions if possible. Not MR_OP_NO_OP; rank is a rank of the window, disp not negative.
 */
enum mr_err mr_update_elements(struct mr_win *w, const void *in, void *result, size_t count, struct mr_type *t,
                               int rank, ptrdiff_t disp, const struct mr_op *op);
enum mr_err mr_compare_and_swap(struct mr_win *w, const void *value, const void *compare, void *result,
                                const struct mr_rma_place *at);

/* ---- synchronization (epoch.c, lock.c) --------------------------------------------------------------------------- */

enum mr_win_assert {
    MR_MODE_NOCHECK = 1,
    MR_MODE_NOSTORE = 2,
    MR_MODE_NOPUT = 4,
    MR_MODE_NOPRECEDE = 8,
    MR_MODE_NOSUCCEED = 16
};

/* MR_ERR_RMA_SYNC where the calls before do not allow it. */
enum mr_err mr_win_fence(struct mr_win *w, unsigned assert);
enum mr_err mr_win_post(struct mr_win *w, struct mr_group *g, unsigned assert);
enum mr_err mr_win_start(struct mr_win *w, struct mr_group *g, unsigned assert);
enum mr_err mr_win_complete(struct mr_win *w);
enum mr_err mr_win_wait(struct mr_win *w);
enum mr_err mr_win_test(struct mr_win *w, bool *done);
enum mr_err mr_win_lock(struct mr_win *w, int rank, bool exclusive, unsigned assert);
enum mr_err mr_win_unlock(struct mr_win *w, int rank);
enum mr_err mr_win_lock_all(struct mr_win *w, unsigned assert);
enum mr_err mr_win_unlock_all(struct mr_win *w);
enum mr_err mr_win_flush(struct mr_win *w, int rank);
enum mr_err mr_win_flush_all(struct mr_win *w);
enum mr_err mr_win_flush_local(struct mr_win *w, int rank);
enum mr_err mr_win_flush_local_all(struct mr_win *w);
enum mr_err mr_win_sync(struct mr_win *w);

#endif
