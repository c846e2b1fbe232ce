/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of one-sided communication. All are of the kind MR_PKT_ABOVE; their headers have the window's context as
 * ctx, the sender's rank in the window, and their kind as tag. O is the origin of operations, T their target.
 *
 * - O PUT, ACC: an operation, pieces, data. T does it. An operation too long for one packet is several. - O FETCH (as
 * ACC), SWAP, GET: rreq names the result. T RESULT(rreq; sreq: where in it this data belongs)... - O PUT_LONG,
 * GET_LONG: an operation on memory in one piece, whose data goes as a message with the tag rreq - O FLUSH(sreq:
 * operations so far); T FLUSHED(sreq; rreq: an error class), as soon as it has done so many - O LOCK(flags: exclusive);
 * T LOCKED. O UNLOCK(as FLUSH); T FLUSHED, if requested in flags - O SLOT; T SLOT_IS(sreq: the slot, rreq: how many
 * there are), its payload the struct mr_remote of the lock; none: adapters do not take the lock. Then O LOCK(flags: 2
 * as well; sreq: a serial number); T LOCK_QUEUED(sreq; rreq: how many are ahead), T LOCKED(flags: 2; rreq: the number):
 * it is delegated. O WITHDRAW(sreq); T WITHDRAWN: the question is void; a lock delegated for it O gives back by the
 * adapter, or, with flags: 2, T takes it back. O CLEAR(sreq); T CLEARED: nothing of the lock is O's by the adapter any
 * more, nor delegated so - T POST; O COMPLETE(sreq: operations so far) - T REFUSED(rreq; sreq: an error class): instead
 * of RESULT - O KEYS; T KEYS_ARE, its payload the struct mr_remote of its part; none: the part cannot be reached by
 * RDMA - of a dynamic window: O KEYS(sreq: an address); T KEYS_ARE(sreq, rreq: the region's first byte and the one
 * behind its last; both 0: it is in none), of that region. T KEYS_GONE(as KEYS_ARE): it is detached
 */
#ifndef MRMPI_RMA_WIRE_H
#define MRMPI_RMA_WIRE_H

#include <stdint.h>

enum mr_rma_what {
    MR_RMA_PUT = 1,
    MR_RMA_ACC,
    MR_RMA_FETCH,
    MR_RMA_SWAP,
    MR_RMA_GET,
    MR_RMA_RESULT,
    MR_RMA_REFUSED,
    MR_RMA_PUT_LONG,
    MR_RMA_GET_LONG,
    MR_RMA_FLUSH,
    MR_RMA_FLUSHED,
    MR_RMA_LOCK,
    MR_RMA_LOCKED,
    MR_RMA_UNLOCK,
    MR_RMA_POST,
    MR_RMA_COMPLETE,
    MR_RMA_KEYS,
    MR_RMA_KEYS_ARE,
    MR_RMA_KEYS_GONE,
    MR_RMA_SLOT,
    MR_RMA_SLOT_IS,
    MR_RMA_CLEAR,
    MR_RMA_CLEARED,
    MR_RMA_LOCK_QUEUED,
    MR_RMA_WITHDRAW,
    MR_RMA_WITHDRAWN,
};

#define MR_RMA_ALONE    1 /* flags of LOCK, */
#define MR_RMA_DELEGATE 2 /* and of LOCKED and WITHDRAW */

/* The beginning of an operation's payload. Pieces follow, then data. */
struct mr_rma_op {
    uint64_t addr;   /* bytes from the window's beginning; in a dynamic window an address */
    uint64_t bytes;  /* of data */
    uint16_t pieces; /* 0: addr is the place of all data */
    uint8_t op;      /* enum mr_op_id */
    uint8_t basic;   /* enum mr_basic: the type of the operation */
    uint32_t unused;
};
_Static_assert(sizeof(struct mr_rma_op) == 24, "on the wire");

#endif
