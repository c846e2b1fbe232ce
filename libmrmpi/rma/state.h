/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a window, in this process: its targets, its peers, its epochs.
 *
 * An operation for another process counts (issued). The target counts executed operations (done), and reports the count
 * on request (FLUSH, UNLOCK, COMPLETE). Operations that still need the origin's own buffers, or await a result, count
 * too (open), and so do lists of short writes (writer->open); these end without a request. `flush_local` is thus open
 * == 0, and `flush` is open == 0 and flushed == issued.
 */
#ifndef MRMPI_RMA_STATE_H
#define MRMPI_RMA_STATE_H

#include "libmrmpi/rma/rma.h"
#include "libmrmpi/rma/winmem/winmem.h"
#include "libmrmpi/net/net.h"
#include "libmrmpi/rma/winlock/far.h"

enum mr_hold { MR_HOLD_NONE, MR_HOLD_SHARED, MR_HOLD_EXCLUSIVE };

/* This process's relation to another process in a window; made by the first operation to it or from it. */
struct mr_rma_peer {
    struct mr_rma_peer *next; /* of the window's */
    struct mr_win *win;
    int rank;
    int error; /* negative errno: the peer is lost */
    /* we are the origin, the peer is the target */
    uint32_t issued, flushed, asked; /* asked: the count in the last FLUSH */
    unsigned open, awaited;          /* awaited: the part of open that a RESULT ends */
    uint32_t next_tag;
    enum mr_err refused; /* the target has refused something; told once */
    enum mr_hold wanted; /* the lock wanted by our epoch, and the lock held... */
    bool held, locking;  /* ...; the lock has been requested */
    bool unchecked;      /* MPI_MODE_NOCHECK: there is nothing to ask for */
    bool far_asked;
    struct mr_far *far; /* its lock, taken by the adapter there; NULL: requested by packets */
    bool started;       /* in our access epoch, MPI_Win_start's */
    uint32_t posts;     /* its unused POSTs */
    bool keys_asked;
    struct mr_rma_known *known; /* regions of a dynamic window with known keys (attached.c): sorted */
    size_t num_known, room_known;
    unsigned polled;              /* mr_progress_polls at our last wait for the peer */
    uint32_t next_known, aimed;   /* aimed: the number of the region that writer is for; 0: no known region */
    uint32_t again;               /* operations impossible by RDMA and done by other means */
    struct mr_remote *keys;       /* of its part; NULL: not known, or there are none */
    struct mr_net_writer *writer; /* for short writes to the peer; NULL: they go like others */
    /* the peer is the origin, we are the target */
    struct mr_region *region; /* our part, in reach of the peer; NULL: not requested */
    uint32_t done;
    enum mr_err wrong; /* the error of its refused request */
    bool owes_flushed; /* FLUSHED is to be said when done == due */
    bool owes_unlock;  /* its lock ends with this */
    bool exposed;      /* in our exposure epoch */
    bool completed;    /* it has sent COMPLETE: its epoch is over when done == complete_at */
    uint32_t due, complete_at;
    enum mr_hold holds; /* its lock here */
    uint32_t slots;     /* and 1: its slot in our lock; 0: none */
    uint32_t delegated; /* the serial number of its last request for our lock, which was delegated */
};

/* Of a rank: the whole cost of a silent rank. */
struct mr_win_target {
    size_t size;
    ptrdiff_t disp_unit;
    char *local;                /* its memory in our address space; NULL: out of reach, or a dynamic window's */
    struct mr_rma_mutex *mutex; /* NULL: out of reach */
    struct mr_rma_peer *peer;   /* NULL: nothing has been between us */
};

_Static_assert(sizeof(struct mr_win_target) <= 64, "a silent rank");

/*
 * Of a process's part: in memory shared by the node, whose ranks take the lock themselves. Others have the adapter take
 * the lock, or ask the process, which polls for waiting processes. The slots of the lock are behind; without shared
 * memory there are none, until a process asks for slots (lock.c).
 */
struct mr_rma_mutex {
    _Alignas(64) uint32_t holder; /* the accumulating process; 0: none */
    _Alignas(64) struct mr_lock_part lock;
};

/* Memory attached to a dynamic window. */
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
    struct mr_winmem *memory;     /* NULL: none is shared */
    void *own;                    /* memory allocated by MPI for this process alone */
    struct mr_win_region *region; /* sorted, without overlaps */
    size_t num_regions, room;
    /* epochs of this process */
    bool fenced; /* a fence has begun an epoch, which is still open */
    struct mr_group *access, *exposure;
    bool lock_all, all_unchecked;
    bool abandoned;                /* the program has not got the window: mr_win_abandon */
    bool failed;                   /* the program knows of a failure, perhaps earlier than we */
    bool asked;                    /* the last operation may have been to see whether something has changed: */
    unsigned in_vain;              /* polls in vain, in a row */
    unsigned calls;                /* that had nothing to wait for, and seemed to be no wait */
    unsigned num_locked;           /* by mr_win_lock */
    unsigned answering;            /* long operations of others under way in our memory */
    struct mr_rma_mutex mutex;     /* of this process's part, where no memory is shared */
    struct mr_rma_mutex *guard;    /* the same with slots; NULL: no process has asked for slots */
    struct mr_region *lock_region; /* the lock, in reach of adapters, */
    struct mr_remote lock_keys;    /* and its keys; none: not reachable by adapters */
    bool lock_told;                /* a process has asked */
    struct mr_lock_waiter *waiters, **waiters_end;
    struct mr_win_state *next_waiting; /* in the list of windows polled for their waiters */
    bool listed;                       /* in the list */
};

/* True while an operation of ours is under way to the peer, or from it. */
static inline bool mr_rma_is_busy(const struct mr_rma_peer *p)
{
    return p->open || (p->writer && p->writer->open);
}

/* True if operations on its part may begin without any preparation. */
static inline bool mr_epoch_is_open(const struct mr_win_state *s, const struct mr_rma_peer *p)
{
    if (p->wanted)
        return (p->held || p->unchecked) && !p->error;
    return (s->fenced || p->started) && !s->lock_all && !p->error;
}

#endif
