/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a window, in this process: its targets, its peers, its epochs.
 *
 * An operation that goes to another process counts (issued). The target counts what it has done (done), and says so
 * when it is asked (FLUSH, UNLOCK, COMPLETE). What the origin still needs its own buffers for, or awaits a result of,
 * counts too (open), as do lists of short writes (writer->open); that is over without a question. So `flush_local` is
 * that nothing is under way, and `flush` is that and flushed == issued.
 */
#ifndef MRMPI_RMA_STATE_H
#define MRMPI_RMA_STATE_H

#include "libmrmpi/rma/rma.h"
#include "libmrmpi/rma/share/share.h"
#include "libmrmpi/channel/vc/vc.h"
#include "libmrmpi/channel/vc/writer.h"
#include "libmrmpi/rma/winlock/far.h"

enum mr_hold { MR_HOLD_NONE, MR_HOLD_SHARED, MR_HOLD_EXCLUSIVE };

/* What this process has to do with another one in a window; made when something goes to it or comes from it. */
struct mr_rma_peer {
    struct mr_rma_peer *next; /* of the window's */
    struct mr_win *win;
    int rank;
    int error; /* negative errno: it is lost */
    /* we are the origin, it is the target */
    uint32_t issued, flushed, asked; /* asked: the last FLUSH was about so many */
    unsigned open, awaited;          /* awaited: those of open that a RESULT ends */
    uint32_t next_tag;
    enum mr_err refused; /* the target has refused something; told once */
    enum mr_hold wanted; /* the lock that our epoch wants, and has... */
    bool held, locking;  /* ...; it has been asked for */
    bool unchecked;      /* MPI_MODE_NOCHECK: there is nothing to ask for */
    bool far_asked;
    struct mr_far *far; /* its lock, taken by the adapter there; NULL: it is asked for by packets */
    bool started;        /* in our access epoch, MPI_Win_start's */
    uint32_t posts;      /* its POSTs that we have not used */
    bool keys_asked;
    struct mr_rma_known *known; /* regions of a dynamic window of which it has told the keys (attached.c): sorted */
    size_t num_known, room_known;
    unsigned looked; /* mr_progress_looks when we last waited for it */
    uint32_t next_known, aimed;  /* aimed: which of them writer is for; 0: for none that is known */
    uint32_t again;              /* operations that RDMA could not do in the end, and that went another way */
    struct mr_remote *keys;      /* of its part; NULL: not known, or there are none */
    struct mr_vc_writer *writer; /* for short writes to it; NULL: they go as others do */
    /* it is the origin, we are the target */
    struct mr_region *region; /* our part, as it reaches that; NULL: it has not asked for it */
    uint32_t done;
    enum mr_err wrong; /* what it asked for and does not get */
    bool owes_flushed; /* FLUSHED is to be said when done == due */
    bool owes_unlock;  /* its lock ends with that */
    bool exposed;      /* in our exposure epoch */
    bool completed;    /* it has said COMPLETE: its epoch is over when done == complete_at */
    uint32_t due, complete_at;
    enum mr_hold holds; /* its lock here */
    uint32_t slots;     /* and 1: the slot of our lock is its own; 0: it has none */
    uint32_t lent;      /* the serial number with which it has asked for our lock last, and got it lent */
};

/* Of a rank, and all that a silent one costs. */
struct mr_win_target {
    size_t size;
    ptrdiff_t disp_unit;
    char *local;                /* its memory in our address space; NULL: out of reach, or a dynamic window's */
    struct mr_rma_mutex *mutex; /* NULL: out of reach */
    struct mr_rma_peer *peer;   /* NULL: nothing has been between us */
};

_Static_assert(sizeof(struct mr_win_target) <= 64, "a silent rank");

/*
 * Of a process's part: in memory that the node shares its ranks take them themselves. Others have the adapter take the
 * lock, or ask the process for it, which polls for those that wait. The slots of the lock are behind it; there are none
 * where memory is not shared, until a process asks for them (lock.c).
 */
struct mr_rma_mutex {
    _Alignas(64) uint32_t holder; /* the process that accumulates; 0: none */
    _Alignas(64) struct mr_part lock;
};

/* Memory that is attached to a dynamic window. */
struct mr_win_region {
    uintptr_t start, end;
    struct mr_rma_exposed *exposed; /* NULL: no peer has asked for its keys (attached.c) */
};

struct mr_lock_waiter;

struct mr_win_state {
    struct mr_win *win;
    struct mr_win_state *next;    /* in the table of windows */
    struct mr_win_target *target; /* [comm->size] */
    struct mr_rma_peer *peers;
    struct mr_share *memory;       /* NULL: none is shared */
    void *own;                     /* memory that MPI allocated for this process alone */
    struct mr_win_region *region;  /* sorted; that do not overlap */
    size_t num_regions, room;
    /* epochs of this process */
    bool fenced; /* a fence has begun one, which nothing has ended */
    struct mr_group *access, *exposure;
    bool lock_all, all_unchecked;
    bool asked;                /* the last operation may have been to see whether something has changed: */
    unsigned in_vain;          /* so many looks in a row */
    unsigned calls;            /* that had nothing to wait for, and seemed to be no wait */
    unsigned num_locked;       /* by mr_win_lock */
    unsigned answering;        /* long operations of others under way in our memory */
    struct mr_rma_mutex mutex; /* of this process's part, where no memory is shared */
    struct mr_rma_mutex *guard; /* the same with slots; NULL: nobody has asked for them */
    struct mr_region *lock_region; /* the lock, as adapters reach it, */
    struct mr_remote lock_keys;    /* and how; no keys: they do not */
    bool lock_told;                /* somebody has asked */
    struct mr_lock_waiter *waiters, **waiters_end;
    struct mr_win_state *next_waiting; /* in the list of those that are looked at for their waiters */
    bool looked_at;                    /* it is in it */
};

/* Something of ours is under way to it, or from it. */
static inline bool mr_rma_is_busy(const struct mr_rma_peer *p)
{
    return p->open || (p->writer && p->writer->open);
}

/* Operations on its part may begin, and nothing is to be done for that first. */
static inline bool mr_epoch_is_open(const struct mr_win_state *s, const struct mr_rma_peer *p)
{
    if (p->wanted)
        return (p->held || p->unchecked) && !p->error;
    return (s->fenced || p->started) && !s->lock_all && !p->error;
}

#endif
