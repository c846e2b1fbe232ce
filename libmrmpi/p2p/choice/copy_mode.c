/* SPDX-License-Identifier: BSD-3-Clause */
/* The copy mode of large messages inside a node: see copy_mode.h. */
#include "libmrmpi/p2p/choice/copy_mode.h"

#include <stdio.h>

_Static_assert(MR_COPY_MODES <= MR_LEARN_WAYS, "the learner has a way for each mode");
_Static_assert(MR_COPY_SIZES <= 8 * sizeof(((struct mr_copy_modes *)0)->offered[0]), "a bit for each size");

const char *const mr_copy_mode_names[MR_COPY_MODES + 1] = {"push", "read", "split"};

/* Bits; one has to be possible. */
static unsigned possible_modes(const struct mr_copy_modes *w, uint64_t pool_ns)
{
    unsigned all = ~w->refused & ((1u << MR_COPY_MODES) - 1),
             possible = w->spent_ns < MR_LEARN_GAIN * pool_ns ? all & ~(1u << MR_COPY_PUSH) : all;

    return possible ? possible : all ? all : 1u << MR_COPY_PUSH;
}

static bool is_cell_known(const struct mr_learn *cell)
{
    return cell->time[cell->kept].num;
}

/* A new size begins with the knowledge of the nearest known size. */
static struct mr_learn begin_cell(const struct mr_learn *cells, unsigned size)
{
    for (unsigned away = 1; away < MR_COPY_SIZES; away++)
        if (size >= away && is_cell_known(&cells[size - away]))
            return mr_learn_like(&cells[size - away], away);
        else if (size + away < MR_COPY_SIZES && is_cell_known(&cells[size + away]))
            return mr_learn_like(&cells[size + away], away);
    return (struct mr_learn){.kept = MR_COPY_READ};
}

/* A learner that has begun without pushes tries them next. */
static void offer_push(struct mr_copy_modes *w, enum mr_copy_load load, unsigned size, unsigned possible)
{
    struct mr_learn *cell = &w->cell[load][size];

    if (!(possible & 1u << MR_COPY_PUSH) || w->offered[load] & 1u << size)
        return;
    w->offered[load] = (uint8_t)(w->offered[load] | 1u << size);
    if (cell->begun)
        cell->due |= 1u << MR_COPY_PUSH;
}

enum mr_copy_mode mr_copy_mode_choose(struct mr_copy_modes *w, struct mr_copy_choice *c, size_t len,
                                      enum mr_copy_load load, uint64_t pool_ns)
{
    unsigned size = mr_copy_mode_size(len), way, possible = possible_modes(w, pool_ns),
             trial = load == MR_LOAD_ONE ? MR_LEARN_SAMPLES : MR_COPY_FEW * (1 + MR_LEARN_SAMPLES);
    struct mr_learn *cell = &w->cell[load][size];

    if (!cell->begun && !is_cell_known(cell))
        *cell = begin_cell(w->cell[load], size);
    offer_push(w, load, size, possible);
    way = mr_learn_next(cell, possible, trial);
    if (way == MR_COPY_PUSH && way != cell->kept && w->pushed < MR_COPY_WARM)
        mr_learn_again(cell);
    *c = (struct mr_copy_choice){.mode = (enum mr_copy_mode)way, .load = load, .len = len};
    return c->mode;
}

bool mr_copy_mode_follows(const struct mr_copy_modes *w, uint64_t now_ns)
{
    return now_ns - w->last_end_ns < w->last_ns / 4;
}

/* The first pushed messages say nothing. */
static bool is_cold(struct mr_copy_modes *w, const struct mr_copy_choice *c)
{
    if (c->mode != MR_COPY_PUSH || w->pushed >= MR_COPY_WARM)
        return false;
    w->pushed += c->len;
    return true;
}

void mr_copy_mode_ended(struct mr_copy_modes *w, const struct mr_copy_choice *c, uint64_t now_ns)
{
    struct mr_learn *cell = &w->cell[c->load][mr_copy_mode_size(c->len)];
    uint64_t begin = w->last_end_ns > c->begin_ns ? w->last_end_ns : c->begin_ns;
    unsigned mean = c->load == MR_LOAD_ONE ? 1 : MR_COPY_FEW, behind = c->load == MR_LOAD_ONE ? 0 : MR_COPY_FEW;

    if (cell != w->last || c->mode != w->last_mode)
        w->in_row = w->sum_ns = w->sum_len = 0;
    w->in_row++;
    w->last = cell;
    w->last_mode = c->mode;
    w->last_end_ns = now_ns;
    w->last_ns = now_ns - begin;
    w->spent_ns += now_ns > begin ? now_ns - begin : 0;
    if (is_cold(w, c)) {
        w->in_row = 0;
        return;
    }
    if (now_ns < begin || !c->len || w->in_row <= behind)
        return;
    w->sum_ns += now_ns - begin;
    w->sum_len += c->len;
    if ((w->in_row - behind) % mean)
        return;
    mr_learn_took(cell, c->mode, w->sum_ns * 1000 / w->sum_len);
    w->sum_ns = w->sum_len = 0;
}

void mr_copy_mode_refuse(struct mr_copy_modes *w, enum mr_copy_mode mode)
{
    w->refused |= 1u << mode;
}

bool mr_copy_mode_describe(const struct mr_learn *cell, char *line, size_t size)
{
    size_t used = 0;

    for (int i = 0; i < MR_COPY_MODES; i++)
        if (cell->time[i].num && used < size)
            used += (size_t)snprintf(line + used, size - used, "%s %.1f, ", mr_copy_mode_names[i],
                                     1000. / mr_median_of(&cell->time[i]));
    if (used && used < size)
        snprintf(line + used - 2, size - used + 2, " GB/s; chosen: %s", mr_copy_mode_names[cell->kept]);
    return used;
}
