/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the makers of communicators share (comm.c, intercomm.c, topo.c): agreeing on context ids, and the object itself.
 *
 * Members of a communicator to be made agree on ids that are free at all of them. An agreement goes in rounds, each a
 * reduction over `local`; with a bridge the leaders of two groups exchange what each group found, and tell it.
 */
#ifndef MRMPI_CORE_COMM_H
#define MRMPI_CORE_COMM_H

#include "libmrmpi/core/objects.h"

enum { MR_CONTEXT_WORDS = 64, MR_CONTEXT_MAX = MR_CONTEXT_WORDS * 64, MR_CONTEXT_NONE = 1 /* ids are even */, MR_CONTEXT_NO_PARENT = 4 };

/*
 * Tags of what is not a collective of the communicator itself, among its messages of collectives (context | 1), whose
 * tags are below 0x40000000.
 */
enum {
    MR_TAG_CREATE_GROUP = 0x40000000, /* + 256 * some bits of the user's tag */
    MR_TAG_NONBLOCKING = 0x60000000,  /* + 256 * some bits of the count of collectives */
    MR_TAG_LEADERS = 0x70000000,      /* + some bits of the user's tag */
};

struct mr_context_mask {
    uint64_t all_offer, all_well, free[MR_CONTEXT_WORDS];
};

struct mr_agreement {
    struct mr_comm *local;  /* all of its members take part */
    struct mr_comm *bridge; /* where the leader reaches the other group's leader; NULL: there is no other group */
    int leader, remote_leader, bridge_tag;
    uint64_t key;      /* of several agreements the lowest goes first: alike at all members, different for each */
    int want;          /* ids: 1 or 2 */
    bool take;         /* this process will be a member */
    bool nonblocking;  /* others may be under way meanwhile */
    uint32_t ids[2];   /* the result */
    enum mr_err error; /* and how it ended */

    /* the rest belongs to context.c */
    struct mr_agreement *next;
    enum { MR_AGREE_BEGIN, MR_AGREE_REDUCED, MR_AGREE_BRIDGED, MR_AGREE_DECIDE, MR_AGREE_DONE } stage;
    bool all_came, offering;
    struct mr_request *req[2];
    struct mr_context_mask mine, theirs;
};

void mr_context_init(void); /* ids of the world and of self are taken */
void mr_context_finalize(void);
void mr_context_release(uint32_t id);
void mr_agreement_start(struct mr_agreement *a);
bool mr_agreement_step(struct mr_agreement *a); /* as far as it goes; true: done, a may be freed */
enum mr_err mr_agreement_run(struct mr_agreement *a);
/* The agreement of all members of c, of both groups if it is an intercommunicator; `take` and `want` are the caller's. */
struct mr_agreement mr_agreement_of(struct mr_comm *c);

/*
 * A communicator, and an intercommunicator, whose local group gets ids[1]. They take over the groups (NULL: there was no
 * memory for one) and the ids, whatever happens.
 */
enum mr_err mr_comm_make(uint32_t id, struct mr_group *group, const struct mr_comm *parent, struct mr_comm **out);
enum mr_err mr_inter_make(const uint32_t *ids, struct mr_group *group, struct mr_group *remote,
                          const struct mr_comm *parent, struct mr_comm **out);
/* What a duplicate has of the original, attributes apart. */
enum mr_err mr_comm_make_dup(struct mr_comm *c, const uint32_t *ids, struct mr_comm **out);
/* A communicator that lives while another is made: context of c, members of g, and these tags. NULL: no memory. */
struct mr_comm *mr_comm_passing(struct mr_comm *c, struct mr_group *g, uint32_t first_tag);

void mr_idup_finalize(void);

/* intercomm.c: the forms for intercommunicators of what comm.c has */
enum mr_err mr_inter_split(struct mr_comm *c, int color, int key, struct mr_comm **out);
enum mr_err mr_inter_create(struct mr_comm *c, struct mr_group *g, struct mr_comm **out);
/* The members of g that have the color, in order of their keys; entries: color and key of each member. NULL: no memory. */
struct mr_group *mr_split_group(const struct mr_group *g, const int (*entries)[2], int color);

#endif
