/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way large messages go inside a node: see way.h. */
#include "libmrmpi/p2p/choice/way.h"

#include <stdio.h>

const char *const mr_way_names[MR_WAYS + 1] = {"push", "read", "halves"};

static bool is_open(const struct mr_ways *w, int way)
{
    return !(w->refused & 1u << way);
}

static uint32_t median(const uint32_t *of, unsigned num)
{
    uint32_t low, high;

    if (num < 2)
        return num ? of[0] : 0;
    low = of[0] < of[1] ? of[0] : of[1];
    if (num < MR_WAY_SAMPLES)
        return low;
    high = of[0] < of[1] ? of[1] : of[0];
    return of[2] < low ? low : of[2] > high ? high : of[2];
}

uint32_t mr_way_cost(const struct mr_way_cell *cell, enum mr_way way)
{
    _Static_assert(MR_WAY_SAMPLES == 3, "the median of three");
    return median(cell->ps[way], cell->num[way]);
}

/* Of those that are known; of those that are possible if none is. */
static enum mr_way best_of(const struct mr_ways *w, const struct mr_way_cell *cell)
{
    int best = -1;

    for (int i = 0; i < MR_WAYS; i++)
        if (is_open(w, i) && cell->num[i] && (best < 0 || mr_way_cost(cell, i) < mr_way_cost(cell, best)))
            best = i;
    for (int i = 0; best < 0 && i < MR_WAYS; i++)
        if (is_open(w, i))
            best = i;
    return best < 0 ? MR_WAY_PUSH : best;
}

/* It took half as long again as the best. */
static bool is_far(const struct mr_ways *w, const struct mr_way_cell *cell, int way)
{
    uint32_t least = mr_way_cost(cell, best_of(w, cell));

    return cell->num[way] && mr_way_cost(cell, way) > least + least / 2;
}

/* A size that is new begins with what is known of the nearest one that has chosen. */
static void begin_cell(struct mr_ways *w, enum mr_way_load load, unsigned size)
{
    struct mr_way_cell *cells = w->cell[load], *cell = &cells[size], *near = NULL;

    cell->begun = true;
    cell->run = MR_WAY_RUN;
    cell->far_next = MR_WAY_FAR;
    for (unsigned away = 1; away < MR_WAY_SIZES && !near; away++)
        if (size >= away && cells[size - away].settled)
            near = &cells[size - away];
        else if (size + away < MR_WAY_SIZES && cells[size + away].settled)
            near = &cells[size + away];
    if (!near)
        return;
    cell->turn = near->best;
    for (int i = 0; i < MR_WAYS; i++) {
        cell->rounds[i] = MR_WAY_ROUNDS - 1; /* it is warm */
        if (!is_far(w, near, i))
            continue;
        cell->rounds[i] = MR_WAY_ROUNDS;
        cell->ps[i][0] = mr_way_cost(near, i);
        cell->num[i] = cell->next[i] = 1;
    }
}

/* A way that deserves to be tried; MR_WAYS: none. */
static int find_trial(const struct mr_ways *w, struct mr_way_cell *cell)
{
    bool far_too = cell->far >= cell->far_next;

    for (unsigned round = 1; round <= MR_WAY_ROUNDS && !cell->settled; round++)
        for (int i = 0; i < MR_WAYS; i++) {
            int way = (cell->turn + i) % MR_WAYS;

            if (is_open(w, way) && cell->rounds[way] < round)
                return way;
        }
    for (int i = 0; i < MR_WAYS && cell->settled && !cell->trying; i++) {
        int way = (cell->turn + i) % MR_WAYS;
        bool far = is_far(w, cell, way);

        if (!is_open(w, way) || way == cell->best || (far && !far_too))
            continue;
        if (far) {
            cell->far = 0;
            cell->far_next = cell->far_next < MR_WAY_FAR_MOST ? cell->far_next * 4 : MR_WAY_FAR_MOST;
        }
        return way;
    }
    return MR_WAYS;
}

/* At first some that try; then one of the best way, and one that tries another, in turn. */
static void begin_run(struct mr_ways *w, struct mr_way_cell *cell, enum mr_way_load load)
{
    int way = find_trial(w, cell);

    cell->trying = cell->stale = way != MR_WAYS;
    if (cell->trying) {
        cell->now = way;
        cell->turn = (way + 1) % MR_WAYS;
        cell->rounds[way] += cell->rounds[way] < MR_WAY_ROUNDS;
        cell->left =
            load == MR_LOAD_ONE ? MR_WAY_SAMPLES : MR_WAY_BEHIND + (load == MR_LOAD_BOTH ? 3 : 1) * MR_WAY_MEAN;
        return;
    }
    way = best_of(w, cell);
    if (way != cell->best || !cell->settled)
        cell->run = MR_WAY_RUN;
    else if (cell->run < MR_WAY_RUN_MOST)
        cell->run *= 2;
    cell->now = cell->best = way;
    cell->settled = true;
    cell->settled_ps = mr_way_cost(cell, way);
    cell->left = cell->run;
    cell->far += cell->far < MR_WAY_FAR_MOST ? cell->run : 0;
}

enum mr_way mr_way_choose(struct mr_ways *w, struct mr_way_choice *c, size_t len, enum mr_way_load load)
{
    unsigned size = mr_way_size(len);
    struct mr_way_cell *cell = &w->cell[load][size];

    if (!cell->begun)
        begin_cell(w, load, size);
    if (!cell->left || !is_open(w, cell->now))
        begin_run(w, cell, load);
    if (cell->now != MR_WAY_PUSH || w->pushed >= MR_WAY_WARM || !cell->trying)
        cell->left--;
    *c = (struct mr_way_choice){.way = cell->now, .load = load, .len = len};
    return c->way;
}

bool mr_way_follows(const struct mr_ways *w, uint64_t now_ns)
{
    return now_ns - w->last_end_ns < w->last_ns / 4;
}

static void take_time(struct mr_way_cell *cell, enum mr_way way, uint64_t ps)
{
    unsigned at;

    if (cell->stale && way == cell->now)
        cell->num[way] = cell->next[way] = cell->stale = 0;
    at = cell->next[way];
    cell->ps[way][at] = ps < 1 ? 1 : ps > UINT32_MAX ? UINT32_MAX : (uint32_t)ps;
    cell->next[way] = (at + 1) % MR_WAY_SAMPLES;
    if (cell->num[way] <= at)
        cell->num[way] = at + 1;
}

/* What is in use takes half as long again as it did: the others are tried at once. */
static void look_again(struct mr_way_cell *cell, enum mr_way way)
{
    uint32_t now = mr_way_cost(cell, way);

    if (cell->trying || way != cell->best || cell->num[way] < MR_WAY_SAMPLES || now / 3 <= cell->settled_ps / 2)
        return;
    cell->left = 0;
    cell->run = MR_WAY_RUN / 2;
    cell->far = cell->far_next = MR_WAY_FAR / 4; /* what was far may be near now */
    cell->settled_ps = now;
}

void mr_way_ended(struct mr_ways *w, const struct mr_way_choice *c, uint64_t now_ns)
{
    struct mr_way_cell *cell = &w->cell[c->load][mr_way_size(c->len)];
    uint64_t begin = w->last_end_ns > c->begin_ns ? w->last_end_ns : c->begin_ns;
    unsigned mean = c->load == MR_LOAD_ONE ? 1 : MR_WAY_MEAN, behind = c->load == MR_LOAD_ONE ? 0 : MR_WAY_BEHIND;

    if (cell != w->last || c->way != w->last_way)
        w->in_row = w->sum_ns = w->sum_len = 0;
    w->in_row++;
    w->last = cell;
    w->last_way = c->way;
    w->last_end_ns = now_ns;
    w->last_ns = now_ns - begin;
    if (c->way == MR_WAY_PUSH && w->pushed < MR_WAY_WARM) {
        w->pushed += c->len;
        w->in_row = 0;
        return;
    }
    if (now_ns < begin || !c->len || w->in_row <= behind)
        return;
    w->sum_ns += now_ns - begin;
    w->sum_len += c->len;
    if ((w->in_row - behind) % mean)
        return;
    take_time(cell, c->way, w->sum_ns * 1000 / w->sum_len);
    w->sum_ns = w->sum_len = 0;
    look_again(cell, c->way);
}

void mr_way_refuse(struct mr_ways *w, enum mr_way way)
{
    w->refused |= 1u << way;
}

bool mr_way_describe(const struct mr_way_cell *cell, char *line, size_t size)
{
    size_t used = 0;

    for (int i = 0; i < MR_WAYS; i++)
        if (cell->num[i] && used < size)
            used +=
                (size_t)snprintf(line + used, size - used, "%s %.1f, ", mr_way_names[i], 1000. / mr_way_cost(cell, i));
    if (used && used < size)
        snprintf(line + used - 2, size - used + 2, " GB/s; chosen: %s",
                 cell->settled ? mr_way_names[cell->best] : "none yet");
    return used;
}
