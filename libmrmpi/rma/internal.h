/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations shared by the files of rma/, from the lowest to the highest. Each file calls only files below. The state
 * of a window is in state.h.
 */
#ifndef MRMPI_RMA_INTERNAL_H
#define MRMPI_RMA_INTERNAL_H

#include "libmrmpi/base/base.h"
#include "libmrmpi/p2p/p2p.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/rma/state.h"
#include "libmrmpi/rma/wire.h"

/* ---- state.c: windows by context, peers, packets, waiting -------------------------------------------------------- */

void mr_win_register(struct mr_win *w);
void mr_win_unregister(struct mr_win *w);
struct mr_win *mr_win_find(uint32_t context);
struct mr_win *mr_win_any(void); /* NULL: there is none */
void mr_win_each(void (*f)(struct mr_win *w, void *arg), void *arg);
struct mr_rma_peer *mr_rma_peer_get(struct mr_win *w, int rank); /* NULL: no memory */
struct mr_vc *mr_rma_vc(const struct mr_win *w, int rank);
/*
 * A process that takes locks in the memory of this node has failed: the lock of a part there may be its own for ever.
 * Nothing tells who shares a lock.
 */
bool mr_win_has_orphans(const struct mr_win *w);
/* The same of that rank's part on another node, as far as this process knows: a process of its node has failed. */
bool mr_win_part_may_be_orphaned(const struct mr_win *w, int rank);
bool mr_win_shares_node(const struct mr_win *w, int rank, const struct mr_vc *vc);
/*
 * A process of the window has failed, or the window is revoked (mr_win_refusal). Others may have seen an error, and
 * never make the call that this process waits for. So from then on nothing waits for MPI_Win_post or MPI_Win_complete
 * of another program.
 */
bool mr_win_lacks_member(const struct mr_win *w);
/*
 * MR_ERR_REVOKED once the communicator that the window was made from is revoked. No epoch begins then, and no call
 * waits for another program; calls that end an epoch or complete operations do so before the error.
 */
enum mr_err mr_win_refusal(const struct mr_win *w);
/* A packet without payload. An error: the peer is lost. */
enum mr_err mr_rma_tell(struct mr_rma_peer *p, enum mr_rma_what what, struct mr_hdr hdr);
enum mr_err mr_rma_lost(const struct mr_rma_peer *p);
/* Until done(p, goal), or the peer is lost. */
enum mr_err mr_rma_await(struct mr_rma_peer *p, bool (*done)(const struct mr_rma_peer *p, uint32_t goal),
                         uint32_t goal);
#define MR_RMA_CALLS 32u /* calls without a wait, one of which polls: a poll costs as much as a short put and flush */
void mr_rma_poll_now(struct mr_win_state *s, bool waits); /* only for mr_rma_poll */
/*
 * Called at the end of a call that a program may repeat to wait for changes of its memory by others (MPI-4.1 section
 * 12.7.3). A poll executes the others' requests. A call without anything to wait for polls once if it seems to be such
 * a wait, because it follows an operation that only queries, or only glances at this process's part; of other calls one
 * in several polls. If ranks share cores, several such polls in a row let others run. polls: the number at the call's
 * beginning. Returns err.
 */
static inline enum mr_err mr_rma_poll(struct mr_win *w, unsigned polls, bool glance, enum mr_err err)
{
    struct mr_win_state *s = w->in;
    bool waits = glance || s->asked;

    if (!waits || polls != mr_progress_polls)
        s->in_vain = 0;
    if (polls != mr_progress_polls)
        s->asked = false;
    else if (waits || ++s->calls % MR_RMA_CALLS == 0)
        mr_rma_poll_now(s, waits);
    return err;
}
/* The first region of a dynamic window that ends behind addr; num_regions: none. */
size_t mr_win_region_at(const struct mr_win_state *s, uintptr_t addr);
/* Memory that lasts until the next call for the same purpose; NULL: none. */
enum mr_scratch { MR_SCRATCH_COMBINE, MR_SCRATCH_DATA, MR_SCRATCH_PACKET, MR_SCRATCH_KINDS };
void *mr_rma_scratch(enum mr_scratch what, size_t bytes);
void mr_rma_scratch_free(void);

/* ---- results.c: results awaited by the origin -------------------------------------------------------------------- */

/* An operation with a request of the program: the number of its parts under way. */
struct mr_rma_job {
    struct mr_win *win;
    struct mr_request *req;
    unsigned parts;
    enum mr_err err;
};
struct mr_rma_job *mr_rma_job_new(struct mr_win *w);              /* with one part; NULL: no memory */
void mr_rma_job_part_done(struct mr_rma_job *j, enum mr_err err); /* NULL is fine */
/* A part of a result, from offset on, that the peer will send. 0: no memory. */
uint64_t mr_result_expect(struct mr_rma_peer *p, struct mr_rma_job *j, const struct mr_rma_data *to, size_t offset,
                          size_t len);
/* The peer has not been asked for the part: the operation has failed. */
void mr_result_forget(struct mr_rma_peer *p, uint64_t id);
void mr_result_arrived(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *data, size_t len);
void mr_results_fail(struct mr_rma_peer *p, enum mr_err err); /* all its outstanding results */
void mr_results_finalize(void);

/* ---- lock.c: the lock of a process's part ------------------------------------------------------------------------ */

/* A process without access to our mutex asks for our lock, and returns it, or its adapter does. */
void mr_lock_ask(struct mr_rma_peer *p, const struct mr_hdr *asked);
void mr_lock_release(struct mr_rma_peer *p);
void mr_lock_forget(struct mr_rma_peer *p); /* the peer is lost */
void mr_lock_end(struct mr_win *w);         /* no waiters any more */
void mr_lock_init(void);
int mr_lock_serve_all(void); /* waiting processes; number of locks given */
/* The peer wants to take our lock by our adapter; and: the peer does not know the state of its words there. */
void mr_lock_slot_asked(struct mr_rma_peer *p);
void mr_lock_clear_asked(struct mr_rma_peer *p, uint32_t delegated);
void mr_lock_withdraw(struct mr_rma_peer *p, uint32_t serial, bool delegated); /* delegated: the lock is returned so */

/* ---- attached.c: keys of memory in dynamic windows ----------------------------------------------------------------
 */

/*
 * Origin: keys of [addr, addr + len) of p's memory; *serial names this knowledge. False: unknown, and requested, or
 * there are none.
 */
bool mr_attached_find(struct mr_rma_peer *p, uint64_t addr, size_t len, struct mr_remote *there, uint32_t *serial);
/* The same for p->writer, which gets the keys of that memory; *at: the place in the memory. */
bool mr_attached_aim(struct mr_rma_peer *p, uint64_t addr, size_t len, uint64_t *at);
/* The serial of the received keys; 0: there are no keys. */
uint32_t mr_attached_are(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_attached_gone(struct mr_rma_peer *p, const struct mr_hdr *hdr);
void mr_attached_refused(struct mr_rma_peer *p,
                         uint32_t serial);      /* useless, until the target reports that they are gone */
void mr_attached_forget(struct mr_rma_peer *p); /* all */
/* Target. */
void mr_attached_asked(struct mr_rma_peer *p, uint64_t addr);
void mr_attached_withdraw(struct mr_win_region *r, bool tell); /* tell: first tell the peers with its keys */

/* ---- direct.c: by RDMA ------------------------------------------------------------------------------------------- */

/*
 * Writes or reads len bytes at addr in p's part; counts as open until done. False: the operation has to be done by
 * other means. The first call only asks for the keys.
 */
bool mr_direct_move(struct mr_rma_peer *p, struct mr_rma_job *j, void *buf, size_t len, uint64_t addr, bool write);
bool mr_direct_moves(struct mr_rma_peer *p, uint64_t addr, size_t len); /* possibly true for this range */
/* The same for a short write without a completion for the program. False: the write has to be done by other means. */
#define MR_LISTS_MOST 16u /* lists under way to a target; then the program waits */
void mr_direct_wait(struct mr_net_writer *w);
static inline bool mr_direct_write(struct mr_rma_peer *p, const void *buf, size_t len, uint64_t addr)
{
    struct mr_net_writer *w = p->writer;

    if (!w || len > w->most)
        return false;
    if (unlikely(w->open > MR_LISTS_MOST))
        mr_direct_wait(w);
    if (p->win->flavor == MR_WIN_DYNAMIC && !mr_attached_aim(p, addr, len, &addr))
        return false;
    return !mr_net_write_short(w, addr, buf, len);
}
void mr_direct_keys_asked(struct mr_rma_peer *p, const struct mr_hdr *hdr);
void mr_direct_keys_are(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);
/*
 * Repeats by other means, without waiting, an operation that RDMA could not do, because memory has been detached. The
 * data of writes of up to MR_WRITER_MOST bytes is copied.
 */
typedef enum mr_err mr_direct_again_fn(struct mr_rma_peer *p, struct mr_rma_job *j, void *buf, size_t len,
                                       uint64_t addr, bool write);
void mr_direct_init(mr_direct_again_fn *again);
void mr_direct_drop(struct mr_rma_peer *p); /* at the window's end */
void mr_direct_finalize(void);

/* ---- target.c: requests of others -------------------------------------------------------------------------------- */

/*
 * The place of addr in this process's part, perhaps no address of its memory: with absolute addresses in a datatype
 * addr is 0. False: not all of [addr + lo, addr + hi) is in the part.
 */
bool mr_win_place(const struct mr_win *w, uint64_t addr, int64_t lo, int64_t hi, char **out);
/* The same for its pieces, which span [lo, hi): in a dynamic window each may be in another region. */
bool mr_win_place_pieces(const struct mr_win *w, uint64_t addr, const struct mr_rma_piece *piece, unsigned num,
                         int64_t lo, int64_t hi, char **out);
/* Applies an operation to reachable memory. */
enum mr_err mr_rma_apply(struct mr_rma_mutex *g, char *mem, const struct mr_pieces *p, unsigned op,
                         struct mr_type *basic, const void *in, void *old);
void mr_target_packet(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);

/* ---- flush.c ----------------------------------------------------------------------------------------------------- */

/* p has sent the facts for taking its lock by its adapter. */
void mr_lock_slot_is(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);
/* All that adapters do for locks of the window is done. */
void mr_lock_settle(struct mr_win *w);
/* Begins to ask for our lock at p; and: it is held. */
enum mr_err mr_lock_begin(struct mr_rma_peer *p);
enum mr_err mr_lock_ensure(struct mr_rma_peer *p);
/* All operations that we requested there are done; of all peers. */
enum mr_err mr_rma_flush(struct mr_rma_peer *p);
enum mr_err mr_rma_flush_peers(struct mr_win *w);
enum mr_err mr_rma_flush_local(struct mr_rma_peer *p);
/* An error reported by the target, once. */
enum mr_err mr_rma_take_refusal(struct mr_rma_peer *p);

/* ---- epoch.c ----------------------------------------------------------------------------------------------------- */

/* An operation on this rank may begin. *p: its peer. */
enum mr_err mr_epoch_admit(struct mr_win *w, int rank, struct mr_rma_peer **p);
/* None is open, but for a fence's. */
bool mr_epoch_is_over(const struct mr_win *w);
/* Ends what the program has left open in a window that lacks a member: locks are given back. */
void mr_epoch_abandon(struct mr_win *w);

#endif
