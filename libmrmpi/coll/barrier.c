/* SPDX-License-Identifier: BSD-3-Clause */
/* Barrier by dissemination: in round k everybody tells the rank 2^k further on. */
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/inter.h"

void mr_alg_barrier(struct mr_schedule *s, struct mr_comm *c)
{
    int p = c->size, r = c->rank;
    for (int k = 1; k < p; k <<= 1) {
        mr_schedule_recv(s, NULL, 0, mr_type_byte, (r - k + p) % p);
        mr_schedule_send(s, NULL, 0, mr_type_byte, (r + k) % p);
        mr_schedule_fence(s);
    }
}

enum mr_err mr_coll_barrier(struct mr_comm *c, struct mr_schedule **built)
{
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    if (mr_comm_is_inter(c))
        mr_inter_barrier(s, c);
    else
        mr_alg_barrier(s, c);
    return mr_schedule_built(s, built);
}
