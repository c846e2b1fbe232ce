/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks from a few words: the promised numbers are counted on the resulting nodes and cables. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simfab/cmd/graph.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "tests/check.h"

static char why[512];

static struct shape_request request(enum shape_kind kind, unsigned hosts)
{
    return (struct shape_request){
        .kind = kind, .hosts = hosts, .radix = 36, .to_hosts = 1, .up = 1, .rails = 1, .planes = 1};
}

/* The engine's fabric for the netlist. */
static struct fabric *loaded(const struct graph *g, struct model *m)
{
    char path[] = "/tmp/simfab-topology-XXXXXX";
    struct parse_error err;
    int fd = mkstemp(path);
    FILE *out = fdopen(fd, "w");
    struct fabric *f;

    ck_assert_ptr_nonnull(out);
    ck_assert(graph_write(g, "4xHDR", out));
    fclose(out);
    f = fabric_load(path, m, &err);
    unlink(path);
    ck_assert_msg(f != NULL, "%s", err.text);
    return f;
}

/* How many nodes can be reached from node i, itself included; marks them. */
static unsigned reach(const struct fabric *f, unsigned i, bool *seen)
{
    unsigned *todo = calloc(f->num_nodes, sizeof *todo), used = 0, done = 0;

    seen[i] = true;
    todo[used++] = i;
    while (done < used) {
        const struct node *n = f->nodes[todo[done++]];

        for (unsigned k = 1; k <= n->num_ports; k++)
            if (n->ports[k].peer && !seen[n->ports[k].peer->node->index]) {
                seen[n->ports[k].peer->node->index] = true;
                todo[used++] = n->ports[k].peer->node->index;
            }
    }
    free(todo);
    return done;
}

static unsigned subnets(const struct fabric *f, unsigned each)
{
    bool *seen = calloc(f->num_nodes, sizeof *seen);
    unsigned count = 0;

    for (unsigned i = 0; i < f->num_nodes; i++)
        if (!seen[i]) {
            ck_assert_uint_eq(reach(f, i, seen), each);
            count++;
        }
    free(seen);
    return count;
}

static bool called(const struct node *n, const char *what)
{
    return n->kind == NODE_SWITCH && strstr(n->desc, what);
}

/* Cables of a node to adapters, to switches whose name contains up, and elsewhere. */
static void count_cables(const struct node *n, const char *up, unsigned *hosts, unsigned *ups, unsigned *others)
{
    *hosts = *ups = *others = 0;
    for (unsigned k = 1; k <= n->num_ports; k++) {
        const struct node *m = n->ports[k].peer ? n->ports[k].peer->node : NULL;

        if (m)
            ++*(m->kind == NODE_CA ? hosts : called(m, up) ? ups : others);
    }
}

/* Every leaf has its ratio, every higher switch as many cables upwards as downwards, unless it is the top. */
static void check_tree(const struct fabric *f, const struct shape_request *r, const struct shape *s)
{
    unsigned hosts, up, others, leaves = 0;

    for (unsigned i = 0; i < f->num_nodes; i++) {
        const struct node *n = f->nodes[i];

        if (called(n, "leaf")) {
            count_cables(n, "spine", &hosts, &up, &others);
            ck_assert_uint_ge(hosts, 1);
            ck_assert_uint_le(hosts, s->leaf_hosts);
            ck_assert_uint_ge(up * r->to_hosts, hosts * r->up);
            ck_assert_uint_eq(others, 0);
            leaves++;
        } else if (called(n, "spine") && s->levels == 3) {
            count_cables(n, "core", &hosts, &up, &others);
            ck_assert_uint_eq(hosts, 0);
            ck_assert_uint_ge(up, others);
        }
    }
    ck_assert_uint_eq(leaves, s->leaves * r->planes);
}

static void check_request(const struct shape_request *r)
{
    struct parse_error err;
    struct model *m;
    struct shape s;
    struct graph g;
    struct fabric *f;
    unsigned cables = 0;

    if (!shape_plan(r, &s, why)) {
        struct shape_request again = *r;
        const char *radix = strncmp(why, "a ratio", 7) ? strstr(why, "--radix ") : NULL;

        ck_assert_uint_gt(strlen(why), 20);
        if (radix) { /* the message is true */
            again.radix = (unsigned)atoi(radix + 8);
            ck_assert_msg(shape_plan(&again, &s, why), "%s", why);
            again.radix--;
            ck_assert(!shape_plan(&again, &s, why));
        }
        return;
    }
    graph_build(&g, r, &s);
    m = model_load(NULL, &err);
    f = loaded(&g, m);
    ck_assert_uint_eq(f->num_nodes, (r->hosts * r->rails + shape_switches(&s)) * r->planes);
    ck_assert_uint_eq(f->num_hosts, r->hosts);
    for (unsigned h = 0; h < f->num_hosts; h++) {
        ck_assert_uint_eq(f->hosts[h]->num_cas, r->rails * r->planes);
        for (unsigned d = 0; d < f->hosts[h]->num_cas; d++)
            ck_assert_int_eq(f->hosts[h]->cas[d]->ports[1].state, PORT_INIT);
    }
    for (unsigned i = 0; i < f->num_nodes; i++)
        for (unsigned k = 1; k <= f->nodes[i]->num_ports; k++)
            cables += f->nodes[i]->ports[k].peer != NULL;
    ck_assert_uint_eq(cables, 2 * g.num_cables);
    ck_assert_uint_eq(subnets(f, f->num_nodes / r->planes), r->planes);
    if (s.levels > 1)
        check_tree(f, r, &s);
    fabric_free(f);
    model_free(m);
    graph_free(&g);
}

static const unsigned tree_hosts[] = {2, 3, 7, 16, 17, 33, 60, 128, 200, 331};

START_TEST(fat_trees)
{
    static const unsigned radix[] = {4, 7, 8, 16, 36, 64}, ratio[][2] = {{1, 1}, {2, 1}, {3, 2}, {1, 2}};

    for (unsigned k = 0; k < sizeof radix / sizeof *radix; k++)
        for (unsigned q = 0; q < sizeof ratio / sizeof *ratio; q++)
            for (unsigned levels = 0; levels <= 3; levels += levels ? 1 : 2)
                for (unsigned rails = 1; rails <= 3; rails++) {
                    struct shape_request r = request(SHAPE_FAT_TREE, tree_hosts[_i]);

                    r.radix = radix[k];
                    r.to_hosts = ratio[q][0];
                    r.up = ratio[q][1];
                    r.levels = levels;
                    r.rails = rails;
                    check_request(&r);
                }
}
END_TEST

START_TEST(others)
{
    for (unsigned hosts = 1; hosts < 40; hosts += 3) {
        struct shape_request r = request(SHAPE_STAR, hosts);

        r.rails = 1 + hosts % 2;
        check_request(&r);
        r = request(SHAPE_DUAL_PLANE, hosts);
        r.planes = 2;
        r.radix = 16;
        check_request(&r);
        r = request(SHAPE_LINE, hosts);
        r.radix = 8;
        r.switches = 7;
        check_request(&r);
        r.kind = SHAPE_RING;
        check_request(&r);
    }
}
END_TEST

START_TEST(known_sizes)
{
    static const struct {
        unsigned hosts, levels, leaves, spines, cores;
    } known[] = {{512, 0, 29, 18, 0}, {648, 2, 36, 18, 0}, {324, 0, 18, 9, 0}, {11664, 0, 648, 648, 324}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct shape_request r = request(SHAPE_FAT_TREE, known[i].hosts);
        struct shape s;

        r.levels = known[i].levels;
        ck_assert_msg(shape_plan(&r, &s, why), "%s", why);
        ck_assert_uint_eq(s.leaves, known[i].leaves);
        ck_assert_uint_eq(s.pods * s.pod_spines, known[i].spines);
        ck_assert_uint_eq(s.pod_spines * s.cores, known[i].cores);
    }
}
END_TEST

static const struct {
    struct shape_request r;
    const char *message;
} refused[] = {
    {{SHAPE_FAT_TREE, 700, 2, 36, 1, 1, 1, 1, 0},
     "(at most 648): use --levels 3 (at most 11664) or --radix 38 (at most 722)"},
    {{SHAPE_FAT_TREE, 20000, 0, 36, 1, 1, 1, 1, 0}, "(at most 11664): use --radix 44 (at most 21296)"},
    {{SHAPE_FAT_TREE, 40000, 0, 4, 1, 1, 32, 1, 0}, "do not fit"},
    {{SHAPE_FAT_TREE, 8, 0, 4, 4, 1, 1, 1, 0}, "a ratio of 4:1 wants switches with at least 5 ports: --radix 5"},
    {{SHAPE_FAT_TREE, 1, 0, 36, 1, 1, 1, 1, 0}, "one adapter is a star"},
    {{SHAPE_STAR, 40, 0, 36, 1, 1, 1, 1, 0}, "use --radix 40, or fat-tree"},
    {{SHAPE_STAR, 300, 0, 36, 1, 1, 1, 1, 0}, "at most 254 ports; use fat-tree"},
    {{SHAPE_RING, 8, 0, 36, 1, 1, 1, 1, 2}, "a ring has at least 3 switches"},
    {{SHAPE_LINE, 8, 0, 36, 1, 1, 1, 1, 0}, "a line has at least 2 switches"},
    {{SHAPE_LINE, 30, 0, 8, 1, 1, 1, 1, 3}, "use --switches 5"},
    {{SHAPE_STAR, 2, 0, 254, 1, 1, 20, 2, 0}, "40 adapters in each host: at most 32"},
    {{SHAPE_FAT_TREE, 49000, 0, 254, 1, 1, 1, 1, 0}, "it has 49151 LIDs"},
};

START_TEST(refusals)
{
    struct shape s;

    ck_assert(!shape_plan(&refused[_i].r, &s, why));
    ck_assert_msg(strstr(why, refused[_i].message) != NULL, "\"%s\" is not in \"%s\"", refused[_i].message, why);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("topology");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, fat_trees, 0, sizeof tree_hosts / sizeof *tree_hosts);
    tcase_add_test(t, others);
    tcase_add_test(t, known_sizes);
    tcase_add_loop_test(t, refusals, 0, sizeof refused / sizeof *refused);
    return check_run(t, NULL);
}
