/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations shared by the creators of communicators: agreement on context ids, and the exchange between two groups.
 *
 * Members of a future communicator agree on ids that are free at all of them. An agreement goes in rounds, each a
 * reduction over `local`; with a bridge the leaders of two groups exchange the results of each group, and pass them on.
 */
#ifndef MRMPI_COMM_INTERNAL_H
#define MRMPI_COMM_INTERNAL_H

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/core/core.h"

/*
 * Contexts of messages that create communicators outside of collectives. Each is or-ed with the context of the parent;
 * the tags are the program's, with all their bits. (0x40000000 and 0x80000000 alone belong to p2p/derived/part.c.)
 */
enum {
    MR_CONTEXT_LEADERS = 0x08000000,     /* between the leaders of two groups */
    MR_CONTEXT_NONBLOCKING = 0x10000000, /* tags: the count of collectives */
    MR_CONTEXT_GROUP = 0x20000000,       /* among some members of the parent */
    MR_CONTEXT_NO_PARENT = 0x60000000,   /* | bits of a name instead */
    MR_CONTEXT_NAME_BITS = 0x07fffffe,
};

/* all_well: bit e is clear if a member has the error e (enum mr_err); bit 0, if the leaders did not reach each other.
 */
struct mr_context_mask {
    uint64_t all_offer, all_well, free[MR_CONTEXT_WORDS];
};

/* Some ids, carried by other messages of members: the 64 from `word` on, of which `free` are free; 0: none. */
struct mr_context_offer {
    uint64_t word, free;
};

/* The way from one group to the other: its leader sends to the other's leader. */
struct mr_bridge {
    struct mr_comm *local, *comm; /* comm: that of the leaders; others may have anything here */
    uint32_t context;
    int leader, remote_leader, tag;
};

/*
 * Of several agreements the lowest goes first: alike at all members, different for all agreements of a process at a
 * time.
 */
struct mr_agreement_key {
    uint64_t messages; /* context and tag */
    uint64_t leaders;  /* of two groups: their places in the world, since others do not share the context. Else 0 */
};

struct mr_agreement {
    struct mr_comm *local;   /* all of its members take part */
    struct mr_bridge bridge; /* comm NULL: there is no other group */
    struct mr_agreement_key key;
    int want;          /* ids: 1 or 2 */
    bool take;         /* this process will be a member */
    enum mr_err wrong; /* with this process's arguments: all members fail with it */
    bool nonblocking;  /* others may be under way meanwhile */
    uint32_t ids[2];   /* the result */
    enum mr_err error; /* and its result */

    /* the rest belongs to agree.c */
    struct mr_agreement *next;
    enum { MR_AGREE_BEGIN, MR_AGREE_REDUCED, MR_AGREE_BRIDGED, MR_AGREE_DECIDE, MR_AGREE_DONE } stage;
    bool all_came, offering;
    struct mr_request *req[2];
    struct mr_context_mask mine, theirs;
};

void mr_agreements_finalize(void);
void mr_shrinks_finalize(void); /* shrink.c */
void mr_ports_finalize(void);   /* connect.c */
void mr_agreement_start(struct mr_agreement *a);
bool mr_agreement_step(struct mr_agreement *a); /* as far as it goes; true: done, a may be freed */
enum mr_err mr_agreement_run(struct mr_agreement *a);
/*
 * In place of the first round, and of its start: all members learn all offers, or fail to (error). Then
 * mr_agreement_end has the result, with further rounds if there is no common id.
 */
struct mr_context_offer mr_agreement_offer(struct mr_agreement *a);
void mr_agreement_offered(struct mr_agreement *a, uint64_t word, uint64_t free_at_all, enum mr_err error);
enum mr_err mr_agreement_end(struct mr_agreement *a);
/*
 * The agreement of all members of c, of both groups if it is an intercommunicator; `take`, `want` and `wrong` are the
 * caller's.
 */
struct mr_agreement mr_agreement_of(struct mr_comm *c);
/* Errors of members, ANDed over them: bit e is clear if a member has the error e. Used to tell the others. */
uint64_t mr_well_but(enum mr_err wrong);
enum mr_err mr_refused_by_other(enum mr_err wrong);

/* The bridge of an intercommunicator; takes a tag of it. */
struct mr_bridge mr_bridge_of(struct mr_comm *c);

/* An error of one process is an error of its group. Nobody need know a leader for this: a leader may be wrong. */
enum mr_err mr_agree_in_group(struct mr_comm *c, enum mr_err wrong);
/* Between the leaders, before or after the intercommunicator is made. */
enum mr_err mr_send_to_leader(const struct mr_bridge *b, const void *data, size_t bytes);
enum mr_err mr_receive_from_leader(const struct mr_bridge *b, void *data, size_t bytes);

/* intercomm.c: of b->local and the group beyond the bridge; the forms of make.c for intercommunicators */
/* b->remote_leader MR_PROC_NULL at the leader: an error, and the leader does not know the other group's leader. */
enum mr_err mr_inter_connect(const struct mr_bridge *b, enum mr_err wrong, struct mr_comm **out);
enum mr_err mr_inter_split(struct mr_comm *c, int color, int key, enum mr_err wrong, struct mr_comm **out);
enum mr_err mr_inter_create(struct mr_comm *c, struct mr_group *g, enum mr_err wrong, struct mr_comm **out);

#endif
