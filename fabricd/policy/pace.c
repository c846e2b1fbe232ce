/* SPDX-License-Identifier: BSD-3-Clause */
/* The rates of readers: see pace.h. */
#include "fabricd/policy/pace.h"

#include <string.h>

void pace_fill(struct pace_claim *c, unsigned n, double room)
{
    bool settled[POLICY_CLASSES_MAX] = {false};
    for (bool again = true; again;) {
        double weights = 0;
        again = false;
        for (unsigned i = 0; i < n; i++)
            weights += settled[i] ? 0 : c[i].weight;
        for (unsigned i = 0; i < n; i++) {
            if (settled[i])
                continue;
            c[i].part = weights > 0 ? room * c[i].weight / weights : 0;
            if (c[i].want < c[i].part) {
                c[i].part = c[i].want;
                room -= c[i].want;
                settled[i] = again = true;
                break;
            }
        }
    }
}

static double wanted(const struct pace_process *p, uint32_t room_kb)
{
    return p->want_kb >= room_kb ? 2 : (double)p->want_kb / room_kb;
}

/* The room of a class that wants all. */
static double class_room(const double share[POLICY_CLASSES_MAX], const double want[POLICY_CLASSES_MAX], unsigned class)
{
    struct pace_claim c[POLICY_CLASSES_MAX] = {0};
    for (unsigned i = 0; i < POLICY_CLASSES_MAX; i++)
        c[i] =
            (struct pace_claim){.weight = want[i] > 0 || i == class ? share[i] : 0, .want = i == class ? 2 : want[i]};
    pace_fill(c, POLICY_CLASSES_MAX, 1);
    return c[class].part;
}

/*
 * The most for one process of a class such that all processes together, those with smaller wants included, have the
 * class's room. extra: one more process that wants all.
 */
static double level_of(const struct pace_process *p, unsigned n, unsigned class, uint32_t room_kb, double room,
                       const struct pace_process *asks)
{
    double level = 0;
    for (unsigned before = 0, open = 1; open != before;) {
        double rest = room;
        before = open;
        open = 0;
        for (unsigned i = 0; i < n; i++) {
            double want = &p[i] == asks ? 2 : wanted(&p[i], room_kb);
            if (p[i].class_index != class || want <= 0)
                continue;
            if (want < level)
                rest -= want;
            else
                open++;
        }
        level = open ? rest / open : level;
    }
    return level;
}

void pace_divide(const double share[POLICY_CLASSES_MAX], uint32_t room_kb, struct pace_process *p, unsigned n)
{
    double want[POLICY_CLASSES_MAX] = {0}, room[POLICY_CLASSES_MAX], level[POLICY_CLASSES_MAX];
    for (unsigned i = 0; i < n; i++)
        want[p[i].class_index] += wanted(&p[i], room_kb);
    for (unsigned c = 0; c < POLICY_CLASSES_MAX; c++) {
        room[c] = class_room(share, want, c);
        level[c] = level_of(p, n, c, room_kb, room[c], NULL);
    }
    for (unsigned i = 0; i < n; i++)
        p[i].part = p[i].want_kb == FD_READS_ALL
                        ? level[p[i].class_index]
                        : level_of(p, n, p[i].class_index, room_kb, room[p[i].class_index], &p[i]);
}
