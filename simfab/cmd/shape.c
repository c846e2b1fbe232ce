/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fat trees: hosts are dealt evenly to the leaves. Towards the hosts a leaf has at most `to_hosts` ports for every `up`
 * ports towards the spines. All higher switches have at least as many ports upwards as downwards, so a 1:1 tree has
 * full bisection. Among such networks, the fewest switches on each level are taken, from below.
 *
 * Two levels are one pod, whose spines have no higher switches. With three levels, spine number i of every pod is
 * joined to the cores of group i.
 */
#include "simfab/cmd/shape.h"

#include <stdarg.h>
#include <stdio.h>

static unsigned ceil_div(unsigned a, unsigned b)
{
    return (a + b - 1) / b;
}

/* Ports of a leaf usable for hosts. */
static unsigned leaf_capacity(unsigned radix, const struct shape_request *r)
{
    return radix / (r->to_hosts + r->up) * r->to_hosts;
}

/* Hosts that a plane of switches with radix ports has room for. Each rail has leaves of its own. */
static unsigned capacity(unsigned levels, unsigned radix, const struct shape_request *r)
{
    unsigned leaves = levels == 2 ? radix : radix * (radix / 2);

    return leaves / r->rails * leaf_capacity(radix, r);
}

/*
 * Joins each of `lower` switches to all of n higher switches with k cables each: the fewest higher switches, so that a
 * lower switch has at least `want` and at most `room` cables, and a higher switch at most `ports`. False: impossible.
 */
static bool join_level(unsigned lower, unsigned want, unsigned room, unsigned ports, unsigned *n, unsigned *k)
{
    for (*n = 1; *n <= room; ++*n) {
        *k = ceil_div(want, *n);
        if (*n * *k <= room && lower * *k <= ports)
            return true;
    }
    return false;
}

/* Two levels: a pod of all leaves. */
static bool try_pod(const struct shape_request *r, unsigned radix, struct shape *s)
{
    unsigned up = ceil_div(s->leaf_hosts, r->to_hosts) * r->up;

    s->pods = 1;
    s->pod_leaves = s->leaves;
    return join_level(s->leaves, up, radix - s->leaf_hosts, radix, &s->pod_spines, &s->leaf_link);
}

/*
 * Three levels: the fewest pods of equal size. Leaves come in groups with a leaf for each rail, so there may be more
 * leaves than requested.
 */
static bool try_pods(const struct shape_request *r, unsigned radix, struct shape *s)
{
    unsigned wanted = s->leaves, up;

    for (s->pods = ceil_div(wanted, radix / 2); s->pods <= radix; s->pods++) {
        if (s->pods < 2)
            continue;
        s->pod_leaves = ceil_div(wanted, s->pods);
        while (s->pods * s->pod_leaves % r->rails)
            s->pod_leaves++;
        if (s->pod_leaves <= radix / 2)
            break;
    }
    s->leaves = s->pods * s->pod_leaves;
    if (s->pods > radix || s->leaves / r->rails > r->hosts)
        return false;
    s->leaf_hosts = ceil_div(r->hosts, s->leaves / r->rails);
    up = ceil_div(s->leaf_hosts, r->to_hosts) * r->up;
    if (!join_level(s->pod_leaves, up, radix - s->leaf_hosts, radix / 2, &s->pod_spines, &s->leaf_link))
        return false;
    up = s->pod_leaves * s->leaf_link;
    return join_level(s->pods, up, radix - up, radix, &s->cores, &s->spine_link);
}

static bool try_tree(const struct shape_request *r, unsigned levels, unsigned radix, struct shape *s)
{
    unsigned groups;

    if (!leaf_capacity(radix, r) || capacity(levels, radix, r) < r->hosts)
        return false;
    groups = ceil_div(r->hosts, leaf_capacity(radix, r));
    if (groups * r->rails < 2)
        groups = 2; /* a tree has at least two leaves */
    *s = (struct shape){.levels = levels, .leaves = groups * r->rails, .leaf_hosts = ceil_div(r->hosts, groups)};
    return levels == 2 ? try_pod(r, radix, s) : try_pods(r, radix, s);
}

__attribute__((format(printf, 2, 3))) static bool refuse(char why[512], const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, 512, fmt, ap);
    va_end(ap);
    return false;
}

static bool plan_tree(const struct shape_request *r, struct shape *s, char why[512])
{
    unsigned first = r->levels ? r->levels : 2, last = r->levels ? r->levels : 3;
    char levels[64] = "", radix[64] = "";

    if (r->hosts * r->rails < 2)
        return refuse(why, "a fat tree has at least two leaves: one adapter is a star");
    if (r->to_hosts + r->up > r->radix)
        return refuse(why, "a ratio of %u:%u wants switches with at least %u ports: --radix %u", r->to_hosts, r->up,
                      r->to_hosts + r->up, r->to_hosts + r->up);
    for (unsigned n = first; n <= last; n++)
        if (try_tree(r, n, r->radix, s))
            return true;
    if (last == 2 && try_tree(r, 3, r->radix, s))
        snprintf(levels, sizeof levels, "--levels 3 (at most %u)", capacity(3, r->radix, r));
    for (unsigned n = r->radix + 1; n <= SHAPE_RADIX_MAX && !*radix; n++)
        if (try_tree(r, last, n, s))
            snprintf(radix, sizeof radix, "--radix %u (at most %u)", n, capacity(last, n, r));
    return refuse(
        why, "%u hosts (%u:%u, rails: %u) do not fit into %u levels of switches with %u ports (at most %u)%s%s%s%s",
        r->hosts, r->to_hosts, r->up, r->rails, last, r->radix, capacity(last, r->radix, r),
        *levels || *radix ? ": use " : "", levels, *levels && *radix ? " or " : "", radix);
}

static bool plan_star(const struct shape_request *r, struct shape *s, char why[512])
{
    unsigned ports = r->hosts * r->rails;

    if (ports > SHAPE_RADIX_MAX)
        return refuse(why, "%u adapters on one switch: a switch has at most %d ports; use fat-tree", ports,
                      SHAPE_RADIX_MAX);
    if (ports > r->radix)
        return refuse(why, "%u adapters do not fit on a switch with %u ports: use --radix %u, or fat-tree", ports,
                      r->radix, ports);
    *s = (struct shape){.levels = 1, .leaves = 1, .leaf_hosts = ports};
    return true;
}

static bool plan_row(const struct shape_request *r, struct shape *s, char why[512])
{
    bool ring = r->kind == SHAPE_RING;
    unsigned each, most = r->radix > 2 ? (r->radix - 2) / r->rails * r->rails : 0;

    if (r->switches < (ring ? 3 : 2))
        return refuse(why, "a %s has at least %d switches: use --switches", ring ? "ring" : "line", ring ? 3 : 2);
    each = ceil_div(r->hosts, r->switches) * r->rails;
    if (each > most && !most)
        return refuse(why, "switches with %u ports have no room for adapters: use --radix %u", r->radix, r->rails + 2);
    if (each > most)
        return refuse(why, "%u adapters and two cables do not fit on a switch with %u ports: use --switches %u%s", each,
                      r->radix, ceil_div(r->hosts * r->rails, most),
                      each + 2 <= SHAPE_RADIX_MAX ? " or a larger --radix" : "");
    *s = (struct shape){.levels = 1, .leaves = r->switches, .leaf_hosts = each, .line = true, .ring = ring};
    return true;
}

unsigned shape_switches(const struct shape *s)
{
    return s->leaves + s->pods * s->pod_spines + s->pod_spines * s->cores;
}

static bool plan(const struct shape_request *r, struct shape *s, char why[512])
{
    switch (r->kind) {
    case SHAPE_STAR:
        return plan_star(r, s, why);
    case SHAPE_LINE:
    case SHAPE_RING:
        return plan_row(r, s, why);
    case SHAPE_DUAL_PLANE:
        if (r->hosts * r->rails <= r->radix)
            return plan_star(r, s, why);
        return plan_tree(r, s, why);
    case SHAPE_FAT_TREE:
        return plan_tree(r, s, why);
    }
    return refuse(why, "no such shape");
}

bool shape_plan(const struct shape_request *r, struct shape *s, char why[512])
{
    if (!r->hosts || !r->rails || !r->planes || !r->to_hosts || !r->up)
        return refuse(why, "there must be at least one host, rail and plane, and a ratio has no zero in it");
    if (r->rails * r->planes > SHAPE_RAILS_MAX)
        return refuse(why, "%u adapters in each host: at most %d", r->rails * r->planes, SHAPE_RAILS_MAX);
    if (!plan(r, s, why))
        return false;
    if (r->hosts * r->rails + shape_switches(s) > SHAPE_LIDS_MAX)
        return refuse(why, "%u adapters and %u switches in one subnet: it has %d LIDs", r->hosts * r->rails,
                      shape_switches(s), SHAPE_LIDS_MAX);
    return true;
}
