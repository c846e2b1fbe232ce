/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch: the identity of this process in its job. The folder's only header.
 *
 * mr_launch_init() finds the launcher that started this process (PMIx: mrrun, Slurm, Open MPI; PMI-1 and PMI-2: Hydra,
 * Slurm) and asks it for the rank, the size and the node map; without a launcher the process is rank 0 of 1. A launcher
 * without a usable client is an error. The folder owns struct mr_launch and all its memory, from init to finalize;
 * others read it.
 *
 * The launcher decides which ranks share a node, not names from gethostname(): simulated hosts share one machine.
 *
 * Addresses: mr_launch_put() stages a value, mr_launch_fence() publishes it and waits until every rank of the job has
 * come, mr_launch_get() fetches a peer's value on demand (nothing is sent to ranks that do not ask). Functions return 0
 * or a negative errno, may be called from any thread after init has returned, and block, so they do not belong on the
 * path of a message. A launcher's fault, found by its client, is in mr_launch_why(), and in the log too once init has
 * returned.
 */
#ifndef MRMPI_LAUNCH_LAUNCH_H
#define MRMPI_LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mr_launch {
    int rank, size;             /* in the world of this job */
    int local_rank, local_size; /* among the ranks on this node */
    int appnum;                 /* number of the part of the launcher's command line; negative: not known */
    int num_nodes;
    const int *node_of;     /* [size] node of each world rank: 0 .. num_nodes-1, in order of first appearance by rank */
    const int *local_ranks; /* [local_size] world ranks on this node, ascending; local_ranks[local_rank] == rank */
    const char *space;      /* the launcher's namespace for the ranks of this job, and no others; "": no launcher */
    const char *job_id;     /* as the launcher names the job; "" for a process without launcher */
    const char *node_name;  /* the launcher's name of this node; "": none */
};

/* *out stays valid until mr_launch_finalize(). */
int mr_launch_init(const struct mr_launch **out);
/* The same; NULL before init and after finalize. */
const struct mr_launch *mr_launch_info(void);

/* The value is copied; it is visible to peers after the next fence. */
int mr_launch_put(const char *key, const void *data, size_t len);

/* Publishes staged values and waits for all ranks. */
int mr_launch_fence(void);
/*
 * The same in steps, for a rank with other work meanwhile: after begin, call done until it returns another value than
 * -EAGAIN, or call end, which waits. One fence at a time; until the fence is over, put and get may return -EBUSY (under
 * PMI, questions and answers take turns).
 */
int mr_launch_fence_begin(void);
int mr_launch_fence_done(void);
int mr_launch_fence_end(void);

/* A peer's value, as of its last fence. -ENOENT: it published none under this key; -EMSGSIZE: longer than cap (*len
 * says how long). */
int mr_launch_get(int rank, const char *key, void *buf, size_t cap, size_t *len);

/*
 * 0 without failure; -ECONNRESET when the launcher is gone, -ECONNABORTED when it reported the death of a process of
 * the job. For waiting loops that would otherwise wait for ever; cheap (one atomic load, under PMI a check of a
 * socket).
 */
int mr_launch_failed(void);

/*
 * Ends of other processes of the job, told by a launcher that goes on without them (mrrun --recover). *mr_launch_ends()
 * is not NULL while there are some to take. mr_launch_next_end: a world rank, or -1: none. By the program's threads,
 * one at a time.
 */
void *const *mr_launch_ends(void);
void mr_launch_note_end(int rank); /* another process has ended, somebody says; by any thread */
int mr_launch_next_end(void);

/*
 * Guests: processes of other jobs, known since the two jobs were connected. This process numbers all processes: its own
 * job has the world ranks, 0 .. size-1; guests have the numbers from mr_guest_first() on, each the first free one at
 * the acquaintance (size itself stands for nobody: mr_vc_nowhere). Other jobs number the same processes differently, so
 * no message to a guest carries a number; processes are described by their cards. Under the library's lock.
 */
#define MR_CARD_ADDRESSES 4
struct mr_card {
    uint64_t job, host;   /* host: processes with the same one share a loopback interface; 0: not known */
    uint64_t node;        /* the host's name, hashed: simulated hosts differ in their names only */
    uint64_t secret[2];   /* of the process; connections to the process begin with the secret */
    uint32_t rank;        /* in its job */
    uint16_t port;        /* its TCP port, */
    uint16_t num_address; /* and its IPv6 addresses, or IPv4 addresses in their form (RFC 4291, 2.5.5.2) */
    uint8_t address[MR_CARD_ADDRESSES][16];
};
_Static_assert(sizeof(struct mr_card) == 112, "on the wire, and fits into the name of a port");
static inline bool mr_cards_share_host(const struct mr_card *a, const struct mr_card *b)
{
    return a->host && a->host == b->host && a->node == b->node;
}

int mr_guest_identify(struct mr_card *card); /* job, host and rank of this process; the rest is 0. 0 or -EIO */
int mr_guest_random(void *out, size_t len);  /* 0 or -EIO */
/* The number of that process, which becomes a guest if unknown and of another job. -EPROTO: not a card; -ENOMEM. */
int mr_guest_number(const struct mr_card *card);
int mr_guest_first(void);
int mr_guest_end(void);                          /* behind the last number */
const struct mr_card *mr_guest_card(int number); /* NULL: no guest. Valid until the next mr_guest_number() */
/*
 * A guest that has ended is forgotten (p2p/guest.c), unless held by a caller that knows the number while no group
 * names the guest. again: the next guest may have the number.
 */
void mr_guest_hold(int number);
void mr_guest_release(int number);
bool mr_guest_is_held(int number);
void mr_guest_forget(int number, bool again);
/* By job and rank: the same order, and the same name, in all processes. */
int mr_guest_compare(int a, int b);
uint64_t mr_guest_name(int number);

/*
 * Names of services that the launcher keeps for all processes under it. -EOPNOTSUPP: this launcher keeps none. Publish:
 * -EEXIST; look-up and removal: -ENOENT; look-up: -EMSGSIZE.
 */
int mr_launch_publish_name(const char *name, const char *value);
int mr_launch_look_up_name(const char *name, char *value, size_t cap);
int mr_launch_unpublish_name(const char *name);

/* For how many processes there is room in all (MPI_UNIVERSE_SIZE); 0: the launcher does not say. */
int mr_launch_universe(void);
/* The ranks of each part of the launcher's command line, an array that the caller frees. Parts, or 0: not known. */
int mr_launch_parts(int **ranks);

/*
 * Jobs started by this process: by its launcher, where the launcher can, or by mrrun (started.c). Each part is a
 * program and its ranks, with the keys of MPI-4.1 section 11.8.4 and of other MPIs.
 */
struct mr_launch_part {
    const char *program;
    char *const *argv; /* NULL: no arguments */
    int ranks;         /* wanted */
    /* NULL: not given. Lists of hosts and files of hosts in the form of mrrun's; path: directories, separated by ":";
     * env: NAME=VALUE in each line; soft: numbers of ranks that will do (triplets.h); arch: as uname -m names it */
    const char *wdir, *path, *host, *hostfile, *add_host, *add_hostfile, *env, *soft, *arch;
};
struct mr_launch_order {
    const struct mr_launch_part *part;
    int parts;
    const char *parent; /* the name of a port, for the ranks' MRMPI_PARENT */
};
#define MR_PARENT_VARIABLE "MRMPI_PARENT"
/* The process of an mrrun; 0: the launcher starts the job; or a negative errno, with mr_launch_why(). */
int mr_launch_start(const struct mr_launch_order *order);
/* The launcher in whose place mrrun starts jobs; NULL: none, or mrrun itself. */
const char *mr_launch_replaced(void);
/* How many ranks are started if there is room for all that are wanted. */
int mr_launch_most(const struct mr_launch_part *part);
/* The port of the program that had the launcher start this job. -ENOENT: the launcher knows none. */
int mr_launch_parent(char *port, size_t cap);
/*
 * A launcher does not tell of the ends of such jobs. True: the launcher is gone, or processes that have not called
 * MPI_Init since the first call, MRMPI_LAUNCHER_TIMEOUT_S ago, are not waited for any longer.
 */
struct mr_launch_wait {
    int64_t clock_ms, waited_ms; /* 0 at first */
};
bool mr_launch_waited(struct mr_launch_wait *w);
/* True once, when that mrrun has ended; *status: its exit status, 128 + a signal, or -1: not known. */
bool mr_launch_started_ended(int pid, int *status);
void mr_launch_started_lives(int pid); /* its job has begun: the end matters to nobody any more */
/* At the end of this process: waits for their end, unless they can go on alone. */
void mr_launch_started_end(void);

/* A sentence about the last failure of this thread: the launcher, the fault and the remedy, or the error's name. */
const char *mr_launch_why(int err);

/* End the whole job with this exit code. The launcher prints why; a process without launcher prints it itself. */
_Noreturn void mr_launch_abort(int code, const char *why);

/* Part from the launcher. Not a barrier. */
int mr_launch_finalize(void);

#endif
