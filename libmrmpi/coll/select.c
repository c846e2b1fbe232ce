/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The selection table. The last row of each collective always matches.
 *
 * Measured by bench/coll.sh on simulated hosts with HDR adapters, 8 with two rails and 32 with one, and inside a host
 * with two ranks. Computing is free there; reductions were added to the measured costs at 8 GB/s, and 0.25 us of
 * software for a message at each end. Hence a reduction leaves the tree for the pieces earlier than a broadcast, and
 * trees begin with more ranks than on the wire alone. Sending everything at once is fastest while messages are few,
 * because an adapter overlaps them; steps that wait for each other cost a latency each: among eight ranks a barrier
 * takes 1.3 us instead of 3.0, an allreduce of 1 KiB 1.9 instead of 4.9.
 *
 * Two levels, on nodes with several ranks, send everything over the network once, instead of once for each rank:
 * bench/coll_rails.sh. Small collectives go through memory on the node (hierarchical): four ranks on each of eight
 * hosts have a barrier in 2.5 us, by messages in 5.0. An alltoall of 1 MiB blocks takes 301.5 us among eight if all
 * exchange at once, 307 by four at a time; among sixteen 643 and 659.
 *
 * Data longer than a piece is better copied once, by messages, if only two ranks share a node and one of them has the
 * data: bcast 16 KiB 1.96 us against 2.18, 1 MiB 39 against 47, gather 64 KiB 5.8 against 7.2, 1 MiB 53 against 64. If
 * both ranks have data, this holds up to 16 KiB, because such a message needs no answer: allgather 16 KiB 2.0 against
 * 2.6, 64 KiB 7.5 against 7.3; and again for long data, which the receiver reads: 128 KiB 11.2 against 11.0, 256 KiB
 * 18.4 against 20.6, 1 MiB 79 against 94, 2 MiB 155 against 208. A scattering root writes everything itself either way,
 * and its messages go through more memory: 64 KiB to each of 4 ranks on 2 cores 18 us against 24, 1 MiB 200 against
 * 400, to 8 ranks .38 ms against 1.1.
 */
#include "libmrmpi/coll/select.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/coll/place.h"
#include "libmrmpi/coll/schedule/sched.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/launch/launch.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANY SIZE_MAX
#define KiB *1024ul

static const struct rule {
    enum mr_coll coll;
    enum mr_alg alg;
    size_t bytes_max;
    int ranks_min;
    unsigned needs;
} rules[] = {
    {MR_COLL_BARRIER, MR_ALG_HIERARCHICAL, ANY, 0, MR_HAS_GRID_AREAS},
    {MR_COLL_BARRIER, MR_ALG_NODE, ANY, 0, MR_HAS_NODE},
    {MR_COLL_BARRIER, MR_ALG_SPREAD, ANY, 0, MR_HAS_FEW_RANKS},
    {MR_COLL_BARRIER, MR_ALG_DISSEMINATION, ANY, 0, 0},

    {MR_COLL_BCAST, MR_ALG_HIERARCHICAL, 4 KiB - 1, 0, MR_HAS_GRID_AREAS},
    {MR_COLL_BCAST, MR_ALG_NODE, 8 KiB, 0, MR_HAS_NODE},
    {MR_COLL_BCAST, MR_ALG_NODE, ANY, 3, MR_HAS_NODE},
    {MR_COLL_BCAST, MR_ALG_LINEAR, 4 KiB - 1, 0, MR_HAS_FEW_RANKS},
    {MR_COLL_BCAST, MR_ALG_BINOMIAL, 4 KiB - 1, 0, 0},
    {MR_COLL_BCAST, MR_ALG_TWO_LEVEL, ANY, 3, MR_HAS_CONTIGUOUS | MR_HAS_GRID | MR_HAS_LONG_PARTS},
    {MR_COLL_BCAST, MR_ALG_LINEAR, 16 KiB, 0, MR_HAS_FEW_RANKS},
    {MR_COLL_BCAST, MR_ALG_BINOMIAL, 384 KiB, 0, 0},
    {MR_COLL_BCAST, MR_ALG_SCATTER_ALLGATHER, ANY, 4, MR_HAS_CONTIGUOUS},
    {MR_COLL_BCAST, MR_ALG_BINOMIAL, ANY, 0, 0},

    {MR_COLL_REDUCE, MR_ALG_HIERARCHICAL, 2 KiB, 0, MR_HAS_GRID_AREAS | MR_HAS_COMMUTATIVE},
    {MR_COLL_REDUCE, MR_ALG_NODE, ANY, 0, MR_HAS_NODE},
    {MR_COLL_REDUCE, MR_ALG_LINEAR, 2 KiB, 0, MR_HAS_FEW_RANKS},
    {MR_COLL_REDUCE, MR_ALG_BINOMIAL, 4 KiB - 1, 0, 0},
    {MR_COLL_REDUCE, MR_ALG_TWO_LEVEL, ANY, 3, MR_HAS_COMMUTATIVE | MR_HAS_GRID | MR_HAS_LONG_PARTS},
    {MR_COLL_REDUCE, MR_ALG_BINOMIAL, 32 KiB, 0, 0},
    {MR_COLL_REDUCE, MR_ALG_RING, ANY, 4, MR_HAS_COMMUTATIVE},
    {MR_COLL_REDUCE, MR_ALG_BINOMIAL, ANY, 0, 0},

    {MR_COLL_ALLREDUCE, MR_ALG_HIERARCHICAL, 2 KiB, 0, MR_HAS_GRID_AREAS | MR_HAS_COMMUTATIVE},
    {MR_COLL_ALLREDUCE, MR_ALG_NODE, ANY, 0, MR_HAS_NODE},
    {MR_COLL_ALLREDUCE, MR_ALG_SPREAD, 2 KiB, 0, MR_HAS_FEW_RANKS},
    {MR_COLL_ALLREDUCE, MR_ALG_RECURSIVE_DOUBLING, 4 KiB - 1, 0, 0},
    {MR_COLL_ALLREDUCE, MR_ALG_TWO_LEVEL, ANY, 3, MR_HAS_COMMUTATIVE | MR_HAS_GRID | MR_HAS_LONG_PARTS},
    {MR_COLL_ALLREDUCE, MR_ALG_RECURSIVE_DOUBLING, 8 KiB, 0, 0},
    {MR_COLL_ALLREDUCE, MR_ALG_HALVING, 256 KiB, 2, MR_HAS_COMMUTATIVE},
    {MR_COLL_ALLREDUCE, MR_ALG_HALVING, ANY, 2, MR_HAS_COMMUTATIVE | MR_HAS_POWER_OF_TWO},
    {MR_COLL_ALLREDUCE, MR_ALG_RING, ANY, 2, MR_HAS_COMMUTATIVE},
    {MR_COLL_ALLREDUCE, MR_ALG_RECURSIVE_DOUBLING, ANY, 0, 0},

    {MR_COLL_GATHER, MR_ALG_HIERARCHICAL, 1 KiB, 0, MR_HAS_GRID_AREAS},
    {MR_COLL_GATHER, MR_ALG_NODE, 8 KiB, 0, MR_HAS_NODE},
    {MR_COLL_GATHER, MR_ALG_NODE, ANY, 3, MR_HAS_NODE},
    {MR_COLL_GATHER, MR_ALG_BINOMIAL, 1 KiB, 48, 0},
    {MR_COLL_GATHER, MR_ALG_LINEAR, ANY, 0, 0},
    {MR_COLL_SCATTER, MR_ALG_HIERARCHICAL, 512, 0, MR_HAS_GRID_AREAS},
    {MR_COLL_SCATTER, MR_ALG_NODE, 8 KiB, 0, MR_HAS_NODE},
    {MR_COLL_SCATTER, MR_ALG_NODE, 32 KiB, 3, MR_HAS_NODE},
    {MR_COLL_SCATTER, MR_ALG_LINEAR, ANY, 3, MR_HAS_NODE},
    {MR_COLL_SCATTER, MR_ALG_LINEAR, 64 KiB, 0, MR_HAS_NODE},
    {MR_COLL_SCATTER, MR_ALG_NODE, 1024 KiB, 0, MR_HAS_NODE},
    {MR_COLL_SCATTER, MR_ALG_BINOMIAL, 1 KiB, 48, 0},
    {MR_COLL_SCATTER, MR_ALG_LINEAR, ANY, 0, 0},

    {MR_COLL_ALLGATHER, MR_ALG_HIERARCHICAL, 2 KiB, 0, MR_HAS_GRID_AREAS},
    {MR_COLL_ALLGATHER, MR_ALG_NODE, 8 KiB, 0, MR_HAS_NODE},
    {MR_COLL_ALLGATHER, MR_ALG_NODE, ANY, 3, MR_HAS_NODE},
    {MR_COLL_ALLGATHER, MR_ALG_SPREAD, 16 KiB, 0, MR_HAS_NODE},
    {MR_COLL_ALLGATHER, MR_ALG_NODE, 128 KiB, 0, MR_HAS_NODE},
    {MR_COLL_ALLGATHER, MR_ALG_SPREAD, ANY, 0, MR_HAS_NODE},
    {MR_COLL_ALLGATHER, MR_ALG_TWO_LEVEL, ANY, 3, MR_HAS_ROWS | MR_HAS_FEW_NODES},
    {MR_COLL_ALLGATHER, MR_ALG_BRUCK, 1 KiB, 24, 0},
    {MR_COLL_ALLGATHER, MR_ALG_SPREAD, ANY, 0, MR_HAS_FEW_RANKS},
    {MR_COLL_ALLGATHER, MR_ALG_SPREAD, 512 KiB, 0, 0},
    {MR_COLL_ALLGATHER, MR_ALG_RING, ANY, 0, 0},
    {MR_COLL_ALLGATHERV, MR_ALG_NODE, ANY, 0, MR_HAS_NODE}, /* each block in one piece */
    {MR_COLL_ALLGATHERV, MR_ALG_TWO_LEVEL, ANY, 3, MR_HAS_ROWS | MR_HAS_FEW_NODES},
    {MR_COLL_ALLGATHERV, MR_ALG_SPREAD, ANY, 0, MR_HAS_FEW_RANKS},
    {MR_COLL_ALLGATHERV, MR_ALG_SPREAD, 512 KiB, 0, 0},
    {MR_COLL_ALLGATHERV, MR_ALG_RING, ANY, 0, 0},

    /* long blocks of many are better copied once: 256 KiB of 8 ranks on 2 cores 1.2 ms, by node 1.5; 64 KiB .26, .18 */
    {MR_COLL_ALLTOALL, MR_ALG_HIERARCHICAL, 128, 0, MR_HAS_GRID_AREAS},
    {MR_COLL_ALLTOALL, MR_ALG_NODE, 8 KiB, 0, MR_HAS_NODE},
    {MR_COLL_ALLTOALL, MR_ALG_NODE, 64 KiB, 3, MR_HAS_NODE},
    {MR_COLL_ALLTOALL, MR_ALG_SPREAD, ANY, 6, MR_HAS_NODE},
    {MR_COLL_ALLTOALL, MR_ALG_NODE, 256 KiB, 3, MR_HAS_NODE},
    {MR_COLL_ALLTOALL, MR_ALG_SPREAD, ANY, 4, MR_HAS_NODE},
    {MR_COLL_ALLTOALL, MR_ALG_NODE, ANY, 3, MR_HAS_NODE},
    {MR_COLL_ALLTOALL, MR_ALG_SPREAD, 16 KiB, 0, MR_HAS_NODE},
    {MR_COLL_ALLTOALL, MR_ALG_NODE, 128 KiB, 0, MR_HAS_NODE},
    {MR_COLL_ALLTOALL, MR_ALG_SPREAD, ANY, 0, MR_HAS_NODE},
    {MR_COLL_ALLTOALL, MR_ALG_BRUCK, 128, 32, 0},
    {MR_COLL_ALLTOALL, MR_ALG_SPREAD, ANY, 0, MR_HAS_FEW_RANKS},
    {MR_COLL_ALLTOALL, MR_ALG_SPREAD, 256 KiB, 0, 0},
    {MR_COLL_ALLTOALL, MR_ALG_PAIRWISE, ANY, 0, 0},

    {MR_COLL_REDUCE_SCATTER, MR_ALG_NODE, ANY, 0, MR_HAS_NODE}, /* with all ranks' shares in one piece: node.h */
    {MR_COLL_REDUCE_SCATTER, MR_ALG_TWO_LEVEL, ANY, 3, MR_HAS_COMMUTATIVE | MR_HAS_GRID | MR_HAS_FEW_NODES},
    {MR_COLL_REDUCE_SCATTER, MR_ALG_SPREAD, 32 KiB, 0, 0},
    {MR_COLL_REDUCE_SCATTER, MR_ALG_PAIRWISE, ANY, 2, MR_HAS_COMMUTATIVE},
    {MR_COLL_REDUCE_SCATTER, MR_ALG_SPREAD, ANY, 0, 0},

    {MR_COLL_SCAN, MR_ALG_NODE, ANY, 0, MR_HAS_NODE}, /* in one piece */
    {MR_COLL_SCAN, MR_ALG_RECURSIVE_DOUBLING, ANY, 0, 0},
};

#define RULES (sizeof(rules) / sizeof(rules[0]))

static const char *const colls[] = {
    [MR_COLL_BARRIER] = "barrier",     [MR_COLL_BCAST] = "bcast",
    [MR_COLL_REDUCE] = "reduce",       [MR_COLL_ALLREDUCE] = "allreduce",
    [MR_COLL_GATHER] = "gather",       [MR_COLL_SCATTER] = "scatter",
    [MR_COLL_ALLGATHER] = "allgather", [MR_COLL_ALLGATHERV] = "allgatherv",
    [MR_COLL_ALLTOALL] = "alltoall",   [MR_COLL_REDUCE_SCATTER] = "reduce_scatter",
    [MR_COLL_SCAN] = "scan",
};
enum { COLLS = sizeof(colls) / sizeof(colls[0]) };

static const char *const algs[] = {
    [MR_ALG_NODE] = "node",
    [MR_ALG_DISSEMINATION] = "dissemination",
    [MR_ALG_BINOMIAL] = "binomial",
    [MR_ALG_LINEAR] = "linear",
    [MR_ALG_SCATTER_ALLGATHER] = "scatter-allgather",
    [MR_ALG_RECURSIVE_DOUBLING] = "doubling",
    [MR_ALG_HALVING] = "halving",
    [MR_ALG_RING] = "ring",
    [MR_ALG_BRUCK] = "bruck",
    [MR_ALG_SPREAD] = "spread",
    [MR_ALG_PAIRWISE] = "pairwise",
    [MR_ALG_TWO_LEVEL] = "two-level",
    [MR_ALG_HIERARCHICAL] = "hierarchical",
};
enum { ALGS = sizeof(algs) / sizeof(algs[0]) };

static const struct rule *wanted[COLLS]; /* by MRMPI_COLL; NULL: as the tables say */

/* A row of the table in the file; usual: by the rules, regardless of the rows below. */
struct row {
    struct rule rule;
    int ranks_max;
    bool usual;
};
static struct {
    struct row *rows;
    size_t num;
} tuned; /* MRMPI_COLL_TABLE: goes before the rules here */

/* Features that a named algorithm does without. */
enum { NOT_NEEDED = MR_HAS_LONG_PARTS | MR_HAS_FEW_NODES | MR_HAS_FEW_RANKS };

static int index_of_word(const char *const *names, int n, const char *word, size_t len)
{
    for (int i = 0; i < n; i++)
        if (strlen(names[i]) == len && !strncmp(names[i], word, len))
            return i;
    return -1;
}

/* Among the rules with these names (alg_name NULL: of this collective) the rule with the fewest needs; NULL: none. */
static const struct rule *rule_named(const char *coll_name, size_t coll_len, const char *alg_name, size_t alg_len)
{
    int coll = index_of_word(colls, COLLS, coll_name, coll_len),
        alg = alg_name ? index_of_word(algs, ALGS, alg_name, alg_len) : 0;
    const struct rule *least = NULL;
    for (const struct rule *r = rules; r != rules + RULES && coll >= 0 && alg >= 0; r++)
        if ((int)r->coll == coll && (!alg_name || (int)r->alg == alg) &&
            (!least || __builtin_popcount(r->needs) < __builtin_popcount(least->needs)))
            least = r;
    return least;
}

/* "collective:algorithm"; false if there is no such thing. */
static bool want_algorithm(const char *word, size_t len)
{
    const char *colon = memchr(word, ':', len);
    size_t first = colon ? (size_t)(colon - word) : len;
    const struct rule *r = colon ? rule_named(word, first, colon + 1, len - first - 1) : NULL;
    if (r)
        wanted[r->coll] = r;
    return r;
}

static void read_setting(void)
{
    memset(wanted, 0, sizeof(wanted));
    for (const char *at = mr_config.coll; *at; at += *at == ',') {
        size_t len = strcspn(at, ",");
        if (len && !want_algorithm(at, len) && mr_comm_world->rank == 0)
            mr_log(MR_LOG_WARN, "MRMPI_COLL: there is no %.*s", (int)len, at);
        at += len;
    }
}

/* A number, or the word "any", which means `any`. */
static bool read_number_or_any(const char *word, unsigned long long any, unsigned long long *value)
{
    char *end;
    *value = any;
    if (!strcmp(word, "any"))
        return true;
    errno = 0;
    *value = strtoull(word, &end, 10);
    return word[0] >= '0' && word[0] <= '9' && !*end && !errno && *value <= any;
}

/* COLLECTIVE ALGORITHM BYTES RANKS_MIN RANKS_MAX */
static bool read_table_row(const char *line, struct row *row)
{
    char coll[32], alg[32], bytes[32], min[32], max[32];
    unsigned long long b, least, most;
    int end = 0;
    if (sscanf(line, "%31s %31s %31s %31s %31s %n", coll, alg, bytes, min, max, &end) != 5 || line[end])
        return false;
    bool usual = !strcmp(alg, "usual");
    const struct rule *r = rule_named(coll, strlen(coll), usual ? NULL : alg, strlen(alg));
    if (!r || !read_number_or_any(bytes, ANY, &b) || !read_number_or_any(min, INT_MAX, &least) ||
        !read_number_or_any(max, INT_MAX, &most))
        return false;
    *row = (struct row){.rule = {r->coll, r->alg, (size_t)b, (int)least, usual ? 0 : r->needs & ~(unsigned)NOT_NEEDED},
                        .ranks_max = (int)most,
                        .usual = usual};
    return true;
}

static int add_row(const char *line, int number)
{
    struct row *rows = realloc(tuned.rows, (tuned.num + 1) * sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    tuned.rows = rows;
    if (read_table_row(line, &rows[tuned.num])) {
        tuned.num++;
        return 0;
    }
    mr_log(MR_LOG_ERROR,
           "MRMPI_COLL_TABLE: %s:%d: not \"COLLECTIVE ALGORITHM BYTES|any RANKS_MIN RANKS_MAX|any\", or "
           "there are no such names",
           mr_config.coll_table, number);
    return -EINVAL;
}

/* A rank with other rows than the rest would choose otherwise, and all would wait for ever: no row is skipped. */
static int read_table(void)
{
    char line[256];
    int err = 0;
    FILE *f;
    if (!mr_config.coll_table[0])
        return 0;
    f = fopen(mr_config.coll_table, "re");
    if (!f)
        err = -errno;
    for (int n = 1; !err && fgets(line, sizeof(line), f); n++) {
        line[strcspn(line, "#\n")] = 0;
        if (line[strspn(line, " \t")])
            err = add_row(line, n);
    }
    if (f)
        fclose(f);
    return err;
}

int mr_coll_init(void)
{
    mr_schedules_init();
    read_setting();
    return read_table();
}

void mr_coll_finalize(void)
{
    free(tuned.rows);
    tuned.rows = NULL;
    tuned.num = 0;
    mr_schedules_finalize();
}

const struct mr_place *mr_comm_place(struct mr_comm *c)
{
    if (c->place)
        return c->place;
    int *node_of = malloc((size_t)c->size * sizeof(int));
    for (int i = 0; node_of && i < c->size; i++)
        node_of[i] = mr_comm_node_of(c, i);
    c->place = node_of ? mr_place_of(node_of, c->size, c->rank) : NULL;
    free(node_of);
    if (!c->place) /* a rank with another algorithm than the others would make all of them wait for ever */
        mr_launch_abort(1, "out of memory for where the ranks of a communicator are");
    return c->place;
}

/*
 * Every rank talks to one rank of each node, or to all others: with more ranks, to more than there may be connections
 * for (MRMPI_RC_PEERS), and the last of so many messages is later than rounds that wait for each other.
 */
enum { PART_MIN = 512, FEW = 16 };

unsigned mr_coll_place_has(struct mr_comm *c, size_t bytes)
{
    const struct mr_place *w = mr_comm_is_inter(c) ? NULL : mr_comm_place(c);
    if (!w || w->nodes < 2 || !w->each)
        return 0;
    return MR_HAS_GRID | (w->each > 1 ? MR_HAS_ROWS : 0) | (w->nodes <= FEW ? MR_HAS_FEW_NODES : 0) |
           (w->nodes <= FEW && bytes / (size_t)w->nodes >= PART_MIN ? MR_HAS_LONG_PARTS : 0);
}

bool mr_coll_wants_node(enum mr_coll coll)
{
    return wanted[coll] && (wanted[coll]->alg == MR_ALG_NODE || wanted[coll]->alg == MR_ALG_HIERARCHICAL);
}

static inline bool applies(const struct rule *r, enum mr_coll coll, size_t bytes, int ranks, unsigned has)
{
    return r->coll == coll && bytes <= r->bytes_max && ranks >= r->ranks_min && !(r->needs & ~has);
}

enum mr_alg mr_coll_select(enum mr_coll coll, size_t bytes, int ranks, unsigned has)
{
    const struct rule *r = wanted[coll];
    has |= ranks <= FEW ? MR_HAS_FEW_RANKS : 0;
    if (unlikely(r && !(r->needs & ~(has | NOT_NEEDED))))
        return r->alg;
    for (const struct row *t = tuned.rows; t != tuned.rows + tuned.num; t++) {
        if (ranks > t->ranks_max || !applies(&t->rule, coll, bytes, ranks, has))
            continue;
        if (t->usual)
            break;
        return t->rule.alg;
    }
    r = rules;
    while (!applies(r, coll, bytes, ranks, has))
        r++;
    return r->alg;
}
