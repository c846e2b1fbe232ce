/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scheduling policies: the distribution of one class's messages over the subchannels to a peer (Liu, Vishnu and Panda,
 * SC 2004, section 4.4). Pure: from a text to a struct mr_policy, from that and a host's rails to weights and sets.
 * conn/route/sched.h schedules by the result; the table of policies is in policy.c.
 *
 * A policy is NAME or NAME:ARGUMENTS. Multiplexing policies give each message to one subchannel; striping policies, for
 * large messages only, cut a message over all of them.
 *
 *     fair                  the subchannel that has carried the fewest bytes for its weight
 *     soonest               the subchannel whose port will have sent the message first, by its queue and its rate
 *     round-robin           each in turn, whatever the length of messages
 *     weighted-round-robin[:WEIGHTS]   the same, as often as its weight says
 *     window:N, window:NK   the next one after N messages, or after N KiB (or MiB, with M)
 *     binding[:spread]      one rail for each process: the k-th process of a node takes the k-th rail
 *     binding:near          the same, among the rails nearest to the process
 *     binding:RAIL,...      the same, among these rails
 *     near                  fair among the nearest rails; the others only while the nearest have no room
 *     even                  equal stripes
 *     weighted[:WEIGHTS]    stripes by the ports' rates, or by the user
 *     adaptive              stripes by the observed rate of each (net/stripe/adapt.h)
 *     eq3[:TOTAL]           the paper's adaptive striping, Equation 3: integer weights, TOTAL in sum
 *     eq4[:ALPHA[:TOTAL]]   the same with Equation 4: a part ALPHA of each message's weights, the rest from before
 *
 * RAIL is DEVICE or DEVICE:PORT. WEIGHTS are numbers in the order of the host's rails, or RAIL=WEIGHT. A bound process
 * uses the other rails while its own are down.
 */
#ifndef MRMPI_POLICY_H
#define MRMPI_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_POLICY_RAILS  16 /* named by a policy at most */
#define MR_POLICY_RAIL   40 /* longest name of a rail, with its end */
#define MR_POLICY_TEXT   256
#define MR_POLICY_WEIGHT 1000000u /* largest weight of a rail */
#define MR_POLICY_TOTAL  65536u   /* largest sum of weights of eq3 and eq4 */

enum mr_policy_class { MR_POLICY_SMALL, MR_POLICY_LARGE, MR_POLICY_CLASSES };

/* How the next subchannel is found (conn/route/sched.c). */
enum mr_policy_turn { MR_TURN_FAIR, MR_TURN_ROUND, MR_TURN_WEIGHTED, MR_TURN_WINDOW, MR_TURN_SOONEST };
/* The allowed subchannels. */
enum mr_policy_where { MR_WHERE_ALL, MR_WHERE_BOUND, MR_WHERE_NEAR };
/* The source of weights, and their changes. */
enum mr_policy_weights {
    MR_WEIGHTS_RATE,  /* the ports' rates, or the policy's text */
    MR_WEIGHTS_EVEN,  /* all the same */
    MR_WEIGHTS_RUNS,  /* the ports' rates, then net/stripe/adapt.h */
    MR_WEIGHTS_PAPER, /* all the same, then net/stripe/feedback.h */
};

struct mr_policy;

struct mr_policy_kind {
    const char *name;
    const char *arguments; /* in the manual's notation; "": none */
    const char *help;
    bool small; /* small messages may have the policy; large messages may have any but near */
    bool large;
    bool stripes;
    enum mr_policy_turn turn;
    enum mr_policy_where where;
    enum mr_policy_weights weights;
    bool prefers_near; /* small messages: far rails only for messages without room on near rails */
    /* Reads the text behind the colon, "" if there is none. False: the reason is in what. NULL: no text is allowed. */
    bool (*parse)(const char *text, struct mr_policy *out, char *what, size_t size);
};

struct mr_policy_rail {
    char name[MR_POLICY_RAIL]; /* "": the next rail in the host's order */
    uint32_t weight;
};

struct mr_policy {
    const struct mr_policy_kind *kind;
    enum mr_policy_class of;
    uint32_t window_messages, window_bytes; /* the value that is not 0 */
    double alpha;
    uint32_t total;
    bool by_distance; /* binding:near */
    unsigned num_rails;
    struct mr_policy_rail rail[MR_POLICY_RAILS];
};

/* A rail of this host. */
struct mr_policy_port {
    const char *device;
    unsigned port;
    unsigned distance; /* from the process; smaller is nearer. All the same if nothing is known */
};

/* False: what (size bytes) has the reason, in the words of the text; *out is unchanged. */
bool mr_policy_parse(const char *text, enum mr_policy_class c, struct mr_policy *out, char *what, size_t size);

/* The text of the default policy. */
const char *mr_policy_standard(enum mr_policy_class c);

/* Row i of the table; NULL: there are no more. */
const struct mr_policy_kind *mr_policy_kind(size_t i);

/* Must it be known how far rails are from the process? */
bool mr_policy_needs_distance(const struct mr_policy *p);

/*
 * True if the weights fit the host's rails. False for an unknown rail, or for more weights than rails: then what has
 * the reason.
 */
bool mr_policy_fits(const struct mr_policy *p, const struct mr_policy_port port[], unsigned n, char *what, size_t size);

/*
 * The rails for a process: set of numbers in port[]. The local_rank-th process of the node. 0: the policy names rails,
 * and this host has none of them.
 */
uint32_t mr_policy_rails(const struct mr_policy *p, const struct mr_policy_port port[], unsigned n,
                         unsigned local_rank);

/* The weight of this rail in the policy's text; 0: none. */
uint32_t mr_policy_weight(const struct mr_policy *p, const struct mr_policy_port port[], unsigned n, unsigned i);

#endif
