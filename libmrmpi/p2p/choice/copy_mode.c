/* SPDX-License-Identifier: BSD-3-Clause */
/* The copy mode of large messages inside a node: see copy_mode.h. */
#include "libmrmpi/p2p/choice/copy_mode.h"

#include <stdio.h>

const char *const mr_copy_mode_names[MR_COPY_MODES + 1] = {"push", "read", "split"};

static bool is_allowed(const struct mr_copy_modes *w, int mode)
{
    return !(w->refused & 1u << mode);
}

static uint32_t median(const uint32_t *of, unsigned num)
{
    uint32_t low, high;

    if (num < 2)
        return num ? of[0] : 0;
    low = of[0] < of[1] ? of[0] : of[1];
    if (num < MR_COPY_SAMPLES)
        return low;
    high = of[0] < of[1] ? of[1] : of[0];
    return of[2] < low ? low : of[2] > high ? high : of[2];
}

uint32_t mr_copy_mode_cost(const struct mr_copy_cell *cell, enum mr_copy_mode mode)
{
    _Static_assert(MR_COPY_SAMPLES == 3, "the median of three");
    return median(cell->ps[mode], cell->num[mode]);
}

/* The best of the known modes; of the possible ones if none is known. */
static enum mr_copy_mode best_of(const struct mr_copy_modes *w, const struct mr_copy_cell *cell)
{
    int best = -1;

    for (int i = 0; i < MR_COPY_MODES; i++)
        if (is_allowed(w, i) && cell->num[i] &&
            (best < 0 || mr_copy_mode_cost(cell, i) < mr_copy_mode_cost(cell, best)))
            best = i;
    for (int i = 0; best < 0 && i < MR_COPY_MODES; i++)
        if (is_allowed(w, i))
            best = i;
    return best < 0 ? MR_COPY_PUSH : best;
}

/* True if it took half as long again as the best. */
static bool is_far(const struct mr_copy_modes *w, const struct mr_copy_cell *cell, int mode)
{
    uint32_t least = mr_copy_mode_cost(cell, best_of(w, cell));

    return cell->num[mode] && mr_copy_mode_cost(cell, mode) > least + least / 2;
}

/* A new size begins with the knowledge of the nearest size with a choice. */
static void begin_cell(struct mr_copy_modes *w, enum mr_copy_load load, unsigned size)
{
    struct mr_copy_cell *cells = w->cell[load], *cell = &cells[size], *near = NULL;

    cell->begun = true;
    cell->run = MR_COPY_RUN;
    cell->far_next = MR_COPY_FAR;
    for (unsigned away = 1; away < MR_COPY_SIZES && !near; away++)
        if (size >= away && cells[size - away].settled)
            near = &cells[size - away];
        else if (size + away < MR_COPY_SIZES && cells[size + away].settled)
            near = &cells[size + away];
    if (!near)
        return;
    cell->turn = near->best;
    for (int i = 0; i < MR_COPY_MODES; i++) {
        cell->rounds[i] = MR_COPY_ROUNDS - 1; /* warm */
        if (!is_far(w, near, i))
            continue;
        cell->rounds[i] = MR_COPY_ROUNDS;
        cell->ps[i][0] = mr_copy_mode_cost(near, i);
        cell->num[i] = cell->next[i] = 1;
    }
}

/* A mode that deserves to be tried; MR_COPY_MODES: none. */
static int find_trial(const struct mr_copy_modes *w, struct mr_copy_cell *cell)
{
    bool far_too = cell->far >= cell->far_next;

    for (unsigned round = 1; round <= MR_COPY_ROUNDS && !cell->settled; round++)
        for (int i = 0; i < MR_COPY_MODES; i++) {
            int mode = (cell->turn + i) % MR_COPY_MODES;

            if (is_allowed(w, mode) && cell->rounds[mode] < round)
                return mode;
        }
    for (int i = 0; i < MR_COPY_MODES && cell->settled && !cell->trying; i++) {
        int mode = (cell->turn + i) % MR_COPY_MODES;
        bool far = is_far(w, cell, mode);

        if (!is_allowed(w, mode) || mode == cell->best || (far && !far_too))
            continue;
        if (far) {
            cell->far = 0;
            cell->far_next = cell->far_next < MR_COPY_FAR_MOST ? cell->far_next * 4 : MR_COPY_FAR_MOST;
        }
        return mode;
    }
    return MR_COPY_MODES;
}

/* At first some runs of trials; then one of the best mode, and one that tries another, in turn. */
static void begin_run(struct mr_copy_modes *w, struct mr_copy_cell *cell, enum mr_copy_load load)
{
    int mode = find_trial(w, cell);

    cell->trying = cell->stale = mode != MR_COPY_MODES;
    if (cell->trying) {
        cell->now = mode;
        cell->turn = (mode + 1) % MR_COPY_MODES;
        cell->rounds[mode] += cell->rounds[mode] < MR_COPY_ROUNDS;
        cell->left =
            load == MR_LOAD_ONE ? MR_COPY_SAMPLES : MR_COPY_BEHIND + (load == MR_LOAD_BOTH ? 3 : 1) * MR_COPY_MEAN;
        return;
    }
    mode = best_of(w, cell);
    if (mode != cell->best || !cell->settled)
        cell->run = MR_COPY_RUN;
    else if (cell->run < MR_COPY_RUN_MOST)
        cell->run *= 2;
    cell->now = cell->best = mode;
    cell->settled = true;
    cell->settled_ps = mr_copy_mode_cost(cell, mode);
    cell->left = cell->run;
    cell->far += cell->far < MR_COPY_FAR_MOST ? cell->run : 0;
}

enum mr_copy_mode mr_copy_mode_choose(struct mr_copy_modes *w, struct mr_copy_choice *c, size_t len,
                                      enum mr_copy_load load)
{
    unsigned size = mr_copy_mode_size(len);
    struct mr_copy_cell *cell = &w->cell[load][size];

    if (!cell->begun)
        begin_cell(w, load, size);
    if (!cell->left || !is_allowed(w, cell->now))
        begin_run(w, cell, load);
    if (cell->now != MR_COPY_PUSH || w->pushed >= MR_COPY_WARM || !cell->trying)
        cell->left--;
    *c = (struct mr_copy_choice){.mode = cell->now, .load = load, .len = len};
    return c->mode;
}

bool mr_copy_mode_follows(const struct mr_copy_modes *w, uint64_t now_ns)
{
    return now_ns - w->last_end_ns < w->last_ns / 4;
}

static void take_time(struct mr_copy_cell *cell, enum mr_copy_mode mode, uint64_t ps)
{
    unsigned at;

    if (cell->stale && mode == cell->now)
        cell->num[mode] = cell->next[mode] = cell->stale = 0;
    at = cell->next[mode];
    cell->ps[mode][at] = ps < 1 ? 1 : ps > UINT32_MAX ? UINT32_MAX : (uint32_t)ps;
    cell->next[mode] = (at + 1) % MR_COPY_SAMPLES;
    if (cell->num[mode] <= at)
        cell->num[mode] = at + 1;
}

/* The mode in use takes half as long again as before: the others are tried at once. */
static void try_modes_again(struct mr_copy_cell *cell, enum mr_copy_mode mode)
{
    uint32_t now = mr_copy_mode_cost(cell, mode);

    if (cell->trying || mode != cell->best || cell->num[mode] < MR_COPY_SAMPLES || now / 3 <= cell->settled_ps / 2)
        return;
    cell->left = 0;
    cell->run = MR_COPY_RUN / 2;
    cell->far = cell->far_next = MR_COPY_FAR / 4; /* a far mode may be near now */
    cell->settled_ps = now;
}

void mr_copy_mode_ended(struct mr_copy_modes *w, const struct mr_copy_choice *c, uint64_t now_ns)
{
    struct mr_copy_cell *cell = &w->cell[c->load][mr_copy_mode_size(c->len)];
    uint64_t begin = w->last_end_ns > c->begin_ns ? w->last_end_ns : c->begin_ns;
    unsigned mean = c->load == MR_LOAD_ONE ? 1 : MR_COPY_MEAN, behind = c->load == MR_LOAD_ONE ? 0 : MR_COPY_BEHIND;

    if (cell != w->last || c->mode != w->last_mode)
        w->in_row = w->sum_ns = w->sum_len = 0;
    w->in_row++;
    w->last = cell;
    w->last_mode = c->mode;
    w->last_end_ns = now_ns;
    w->last_ns = now_ns - begin;
    if (c->mode == MR_COPY_PUSH && w->pushed < MR_COPY_WARM) {
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
    take_time(cell, c->mode, w->sum_ns * 1000 / w->sum_len);
    w->sum_ns = w->sum_len = 0;
    try_modes_again(cell, c->mode);
}

void mr_copy_mode_refuse(struct mr_copy_modes *w, enum mr_copy_mode mode)
{
    w->refused |= 1u << mode;
}

bool mr_copy_mode_describe(const struct mr_copy_cell *cell, char *line, size_t size)
{
    size_t used = 0;

    for (int i = 0; i < MR_COPY_MODES; i++)
        if (cell->num[i] && used < size)
            used += (size_t)snprintf(line + used, size - used, "%s %.1f, ", mr_copy_mode_names[i],
                                     1000. / mr_copy_mode_cost(cell, i));
    if (used && used < size)
        snprintf(line + used - 2, size - used + 2, " GB/s; chosen: %s",
                 cell->settled ? mr_copy_mode_names[cell->best] : "none yet");
    return used;
}
