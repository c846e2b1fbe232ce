/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scheduling policies: how the messages of one class are spread over the subchannels to a peer (Liu, Vishnu and Panda,
 * SC 2004, section 4.4). Pure: from a text to a struct mr_policy, from that and a host's rails to weights and sets.
 * conn/route/sched.h schedules by what is decided here; the table of policies is in policy.c.
 *
 * A policy is NAME or NAME:ARGUMENTS. Multiplexing policies give each message to one subchannel; striping policies,
 * for large messages only, cut it over all of them.
 *
 *   fair                  the subchannel that has carried the fewest bytes for its weight
 *   soonest               the subchannel whose port will have sent it first, by what that has to send and its rate
 *   round-robin           each in turn, whatever the length of messages
 *   weighted-round-robin[:WEIGHTS]   the same, as often as its weight says
 *   window:N, window:NK   the next one after N messages, or after N KiB (or MiB, with M)
 *   binding[:spread]      one rail for each process: the k-th process of a node takes the k-th rail
 *   binding:near          the same, among the rails that are nearest to the process
 *   binding:RAIL,...      the same, among these rails
 *   near                  fair among the nearest rails; the others only while those have no room
 *   even                  equal stripes
 *   weighted[:WEIGHTS]    stripes as long as the ports' rates say, or the user
 *   adaptive              stripes as long as each has been seen to carry (conn/route/adapt.h)
 *   eq3[:TOTAL]           the paper's adaptive striping, Equation 3: integer weights, TOTAL in sum
 *   eq4[:ALPHA[:TOTAL]]   the same with Equation 4: a part ALPHA of each message's weights, the rest from before
 *
 * RAIL is DEVICE or DEVICE:PORT. WEIGHTS are numbers in the order of the host's rails, or RAIL=WEIGHT. A bound process
 * uses the other rails while its own are down.
 */
#ifndef MRMPI_POLICY_H
#define MRMPI_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_POLICY_RAILS  16 /* that a policy can name */
#define MR_POLICY_RAIL   40 /* longest name of one, with its end */
#define MR_POLICY_TEXT   256
#define MR_POLICY_WEIGHT 1000000u /* largest weight of a rail */
#define MR_POLICY_TOTAL  65536u   /* largest sum of weights of eq3 and eq4 */

enum mr_policy_class { MR_POLICY_SMALL, MR_POLICY_LARGE, MR_POLICY_CLASSES };

/* How the next subchannel is found (conn/route/sched.c). */
enum mr_policy_turn { MR_TURN_FAIR, MR_TURN_ROUND, MR_TURN_WEIGHTED, MR_TURN_WINDOW, MR_TURN_SOONEST };
/* Which subchannels may be taken. */
enum mr_policy_where { MR_WHERE_ALL, MR_WHERE_BOUND, MR_WHERE_NEAR };
/* Where weights are from, and what changes them. */
enum mr_policy_weights {
    MR_WEIGHTS_RATE,  /* the ports' rates, or what the policy's text says */
    MR_WEIGHTS_EVEN,  /* all the same */
    MR_WEIGHTS_RUNS,  /* the ports' rates, then conn/route/adapt.h */
    MR_WEIGHTS_PAPER, /* all the same, then conn/route/feedback.h */
};

struct mr_policy;

struct mr_policy_kind {
    const char *name;
    const char *arguments; /* as the manual writes them; "": none */
    const char *help;
    bool small; /* small messages may have it; large ones may have any but near */
    bool large;
    bool stripes;
    enum mr_policy_turn turn;
    enum mr_policy_where where;
    enum mr_policy_weights weights;
    bool prefers_near; /* small messages: far rails are for what near ones have no time for */
    /* Reads what follows the colon, "" if nothing does. False: it says why in what. NULL: nothing may follow. */
    bool (*parse)(const char *text, struct mr_policy *out, char *what, size_t size);
};

struct mr_policy_rail {
    char name[MR_POLICY_RAIL]; /* "": the next one in the host's order */
    uint32_t weight;
};

struct mr_policy {
    const struct mr_policy_kind *kind;
    enum mr_policy_class of;
    uint32_t window_messages, window_bytes; /* the one that is not 0 */
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

/* False: what (size bytes) says why, in the words of the text; *out is as it was. */
bool mr_policy_parse(const char *text, enum mr_policy_class c, struct mr_policy *out, char *what, size_t size);

/* The text of the policy that holds where nobody says another one. */
const char *mr_policy_standard(enum mr_policy_class c);

/* Row i of the table; NULL: there are no more. */
const struct mr_policy_kind *mr_policy_kind(size_t i);

/* Must it be known how far rails are from the process? */
bool mr_policy_needs_distance(const struct mr_policy *p);

/*
 * Do the weights fit the host's rails? Not if they name one that is not among them, or are more than there are rails:
 * then what says so.
 */
bool mr_policy_fits(const struct mr_policy *p, const struct mr_policy_port port[], unsigned n, char *what, size_t size);

/*
 * The rails that a process shall use: set of numbers in port[]. The local_rank-th process of the node. 0: the policy
 * names rails, and this host has none of them.
 */
uint32_t mr_policy_rails(const struct mr_policy *p, const struct mr_policy_port port[], unsigned n,
                         unsigned local_rank);

/* The weight that the policy's text gives this rail; 0: it gives none. */
uint32_t mr_policy_weight(const struct mr_policy *p, const struct mr_policy_port port[], unsigned n, unsigned i);

#endif
