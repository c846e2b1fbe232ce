/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective accesses in two phases (Thakur, Gropp, Lusk: Data Sieving and Collective I/O in ROMIO, 1999): the part of
 * the file that all ranks together want is divided among aggregators. In rounds, each aggregator takes a stretch of its
 * part that fits into its buffer; all ranks send their lists of pieces there, and send or get the data; the aggregator
 * moves the stretch at once. The file system thus sees few large accesses, whatever the views of the ranks are.
 */
#include "libmrmpi/io/phases.h"

#include <stdlib.h>
#include <string.h>

#include "libmrmpi/coll/coll.h"

#define ALIGN_FROM  (64 << 10) /* aggregators' parts that are as long begin at multiples of */
#define ALIGN_BYTES 4096       /* default alignment, unless the program sets another */
#define MANY_ROUNDS 16         /* more rounds begin with the question for the next round that any rank needs */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static bool side_new(struct mr_io_side *s, int ranks)
{
    s->len = calloc((size_t)ranks, sizeof(*s->len));
    s->at = calloc((size_t)ranks, sizeof(*s->at));
    return s->len && s->at;
}

static void side_free(struct mr_io_side *s)
{
    free(s->len);
    free(s->at);
    free(s->data);
}

static bool grow_side(struct mr_io_side *s, size_t room)
{
    char *data;

    if (room <= s->room)
        return true;
    data = realloc(s->data, room);
    if (!data)
        return false;
    s->data = data;
    s->room = room;
    return true;
}

/* One after the other: the bytes of all. */
static size_t in_a_row(struct mr_io_side *s, int ranks)
{
    size_t sum = 0;

    for (int i = 0; i < ranks; i++) {
        s->at[i] = (ptrdiff_t)sum;
        sum += (size_t)s->len[i];
    }
    return sum;
}

/* ---- exchanges --------------------------------------------------------------------------------------------------- */

static struct mr_vec vec_of(const struct mr_io_side *s, const void *buf)
{
    return (struct mr_vec){
        .buf = buf, .counts = s->len, .disps = s->at, .wide = true, .wide_disps = true, .type = mr_type_byte};
}

static enum mr_err exchange_sides(const struct mr_io_phases *p, const struct mr_io_side *from, const void *from_buf,
                                  const struct mr_io_side *to, void *to_buf)
{
    const struct mr_vec in = vec_of(from, from_buf), out = vec_of(to, to_buf);
    struct mr_schedule *s = NULL;
    enum mr_err err = mr_coll_alltoallv(&in, &out, p->f->comm, &s);

    return mr_coll_run(err, s);
}

static enum mr_err no_memory_for_access(const struct mr_io_phases *p)
{
    return mr_fail(MR_ERR_NO_MEM, "no memory for a collective access to \"%s\"", p->f->name);
}

/* How long the lists and the data are that each rank has for each aggregator. */
static enum mr_err exchange_lengths(struct mr_io_phases *p)
{
    const int ranks = p->f->comm->size;
    int64_t(*mine)[2] = p->lengths, (*theirs)[2] = mine + ranks;
    struct mr_schedule *s = NULL;
    enum mr_err err;

    for (int i = 0; i < ranks; i++) {
        mine[i][0] = p->lists.len[i];
        mine[i][1] = p->data.len[i];
    }
    err = mr_coll_alltoall(mine, sizeof(*mine), mr_type_byte, theirs, sizeof(*mine), mr_type_byte, p->f->comm, &s);
    err = mr_coll_run(err, s);
    for (int i = 0; i < ranks && !err; i++) {
        p->their_lists.len[i] = theirs[i][0];
        p->their_data.len[i] = theirs[i][1];
    }
    return err;
}

/* ---- what this rank wants of each aggregator --------------------------------------------------------------------- */

/* Of aggregator i in this round: bytes [*from, *to) of the file. */
static void window(const struct mr_io_phases *p, int i, int64_t round, int64_t *from, int64_t *to)
{
    const int64_t part_end = p->start + (i + 1) * p->each;

    *from = p->start + i * p->each + round * p->stretch;
    *to = *from + p->stretch < part_end ? *from + p->stretch : part_end;
}

/* The view's bytes of this rank in there: how many, and the first of them counted from p->nth. */
static size_t my_bytes(const struct mr_io_phases *p, int64_t from, int64_t to, size_t *first)
{
    uint64_t lo, hi;

    *first = 0;
    if (!p->b->len || from >= to)
        return 0;
    lo = mr_tiling_before(&p->f->view, from);
    hi = mr_tiling_before(&p->f->view, to);
    lo = lo > p->nth ? lo : p->nth;
    hi = hi < p->nth + p->b->len ? hi : p->nth + p->b->len;
    *first = lo < hi ? lo - p->nth : 0;
    return lo < hi ? hi - lo : 0;
}

/* The pieces of [from, to) at the end of the list: offsets are counted from the beginning of the stretch. */
static bool list_window(struct mr_io_phases *p, int rank, int64_t from, int64_t to)
{
    const size_t before = p->pieces.num;
    size_t first, n = my_bytes(p, from, to, &first);

    p->data.at[rank] = (ptrdiff_t)first;
    p->lists.at[rank] = (ptrdiff_t)(before * sizeof(struct mr_rma_piece));
    if (!n)
        return true;
    if (!mr_tiling_stretches(&p->f->view, p->nth + first, n, &p->pieces))
        return false;
    for (size_t k = before; k < p->pieces.num; k++)
        p->pieces.piece[k].at -= from;
    p->data.len[rank] = (int64_t)n;
    p->lists.len[rank] = (int64_t)((p->pieces.num - before) * sizeof(struct mr_rma_piece));
    return true;
}

static enum mr_err list_pieces(struct mr_io_phases *p, int64_t round)
{
    const size_t bytes = (size_t)p->f->comm->size * sizeof(*p->data.len);
    bool fine = true;

    p->pieces.num = 0;
    memset(p->lists.len, 0, bytes);
    memset(p->data.len, 0, bytes);
    for (int i = 0; i < p->f->num_aggregators && fine; i++) {
        int64_t from, to;

        window(p, i, round, &from, &to);
        fine = list_window(p, p->f->aggregators[i], from, to);
    }
    return fine ? MR_SUCCESS : no_memory_for_access(p);
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

/* Bytes of the program in several stretches go through a buffer. */
static bool is_packed(const struct mr_io_phases *p)
{
    return p->b->len && !p->b->whole;
}

static const struct mr_io_side *my_side(struct mr_io_phases *p, char **buf)
{
    *buf = is_packed(p) ? p->packed.data : p->b->whole;
    return is_packed(p) ? &p->packed : &p->data;
}

static void pack_mine(struct mr_io_phases *p)
{
    for (int i = 0; i < p->f->comm->size; i++)
        if (p->data.len[i])
            mr_io_bytes_get(p->b, (size_t)p->data.at[i], (size_t)p->data.len[i], p->packed.data + p->packed.at[i]);
}

static void unpack_mine(const struct mr_io_phases *p)
{
    for (int i = 0; i < p->f->comm->size; i++)
        if (p->data.len[i])
            mr_io_bytes_put(p->b, (size_t)p->data.at[i], (size_t)p->data.len[i], p->packed.data + p->packed.at[i]);
}

static enum mr_err write_round(struct mr_io_phases *p, const struct mr_io_wanted *w, int64_t base)
{
    char *buf;
    const struct mr_io_side *mine = my_side(p, &buf);
    enum mr_err err;

    if (is_packed(p))
        pack_mine(p);
    err = exchange_sides(p, mine, buf, &p->their_data, p->their_data.data);
    if (err || !w->pieces || p->err)
        return err;
    p->err = mr_io_stretch_write(p, w, base);
    return MR_SUCCESS;
}

static enum mr_err read_round(struct mr_io_phases *p, const struct mr_io_wanted *w, int64_t base)
{
    char *buf;
    const struct mr_io_side *mine = my_side(p, &buf);
    enum mr_err err;

    if (w->pieces && !p->err)
        p->err = mr_io_stretch_read(p, w, base);
    err = exchange_sides(p, &p->their_data, p->their_data.data, mine, buf);
    if (!err && is_packed(p))
        unpack_mine(p);
    return err;
}

/* Room for received and for packed data. */
static enum mr_err size_buffers(struct mr_io_phases *p)
{
    const int ranks = p->f->comm->size;

    if (!grow_side(&p->their_lists, in_a_row(&p->their_lists, ranks)) ||
        !grow_side(&p->their_data, in_a_row(&p->their_data, ranks)))
        return no_memory_for_access(p);
    if (!is_packed(p))
        return MR_SUCCESS;
    memcpy(p->packed.len, p->data.len, (size_t)ranks * sizeof(*p->packed.len));
    return grow_side(&p->packed, in_a_row(&p->packed, ranks)) ? MR_SUCCESS : no_memory_for_access(p);
}

/*
 * me: the number of this rank's aggregator, -1: none. No rank goes on alone: a rank without memory reports that before
 * data is sent.
 */
static enum mr_err one_round(struct mr_io_phases *p, int64_t round, int me)
{
    struct mr_io_wanted w = {0};
    int64_t from = 0, to;
    enum mr_err err = list_pieces(p, round), met = exchange_lengths(p);

    if (met)
        return met;
    met = mr_io_agree(p->f, err ? err : size_buffers(p));
    if (!met)
        met = exchange_sides(p, &p->lists, p->pieces.piece, &p->their_lists, p->their_lists.data);
    if (met)
        return met;
    if (me >= 0) {
        window(p, me, round, &from, &to);
        err = mr_io_wanted_of(p, &w);
        p->err = p->err ? p->err : err;
    }
    return p->write ? write_round(p, &w, from) : read_round(p, &w, from);
}

/* ---- all rounds -------------------------------------------------------------------------------------------------- */

static int64_t round_up_to(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Divides the file among ranks. False: no rank wants anything. */
static bool divide(struct mr_io_phases *p, const struct mr_io_span *all)
{
    int64_t from = INT64_MAX, to = 0, unit = p->f->hints.striping_unit;

    for (int i = 0; i < p->f->comm->size; i++)
        if (all[i].len) {
            from = all[i].from < from ? all[i].from : from;
            to = all[i].to > to ? all[i].to : to;
        }
    if (from >= to)
        return false;
    p->each = (to - from + p->f->num_aggregators - 1) / p->f->num_aggregators;
    unit = unit ? unit : p->each >= ALIGN_FROM ? ALIGN_BYTES : 1;
    p->start = from / unit * unit;
    p->each = round_up_to((to - p->start + p->f->num_aggregators - 1) / p->f->num_aggregators, unit);
    p->stretch = p->f->hints.cb_buffer_size < p->each ? p->f->hints.cb_buffer_size : p->each;
    return true;
}

/* The first round from `round` on with data of this rank; INT64_MAX: none. */
static int64_t my_next_round(const struct mr_io_phases *p, int64_t round)
{
    int64_t next = INT64_MAX;

    for (int i = 0; i < p->f->num_aggregators && p->b->len; i++) {
        const int64_t part = p->start + i * p->each;
        uint64_t nth = mr_tiling_before(&p->f->view, part + round * p->stretch);
        int64_t at, mine;

        nth = nth > p->nth ? nth : p->nth;
        if (nth >= p->nth + p->b->len)
            continue;
        at = mr_tiling_at(&p->f->view, nth);
        mine = at < part ? 0 : (at - part) / p->stretch;
        if (at < part + p->each && mine < next)
            next = mine;
    }
    return next;
}

/* Between distant data there may be millions of empty rounds. */
static enum mr_err agree_next_round(const struct mr_io_phases *p, int64_t *round)
{
    struct mr_type *number = &mr_type_basic[MR_BASIC_INT64_T];
    int64_t mine;
    struct mr_schedule *s = NULL;
    enum mr_err err;

    if (p->each / p->stretch < MANY_ROUNDS)
        return MR_SUCCESS;
    mine = my_next_round(p, *round);
    err = mr_coll_allreduce(&mine, round, 1, number, &mr_op_builtin[MR_OP_MIN], p->f->comm, &s);
    return mr_coll_run(err, s);
}

static int which_aggregator(const struct mr_file *f)
{
    for (int i = 0; i < f->num_aggregators; i++)
        if (f->aggregators[i] == f->comm->rank)
            return i;
    return -1;
}

static enum mr_err get_memory(struct mr_io_phases *p, int me)
{
    const int ranks = p->f->comm->size;

    if (!side_new(&p->lists, ranks) || !side_new(&p->data, ranks) || !side_new(&p->their_lists, ranks) ||
        !side_new(&p->their_data, ranks) || !side_new(&p->packed, ranks))
        return no_memory_for_access(p);
    p->lengths = malloc(2 * (size_t)ranks * sizeof(*p->lengths));
    if (!p->lengths)
        return no_memory_for_access(p);
    if (me < 0)
        return MR_SUCCESS;
    p->image = malloc((size_t)p->stretch);
    p->covered = malloc((size_t)p->stretch / 8 + 1);
    return p->image && p->covered ? MR_SUCCESS : no_memory_for_access(p);
}

static void free_phases(struct mr_io_phases *p)
{
    side_free(&p->lists);
    side_free(&p->data);
    side_free(&p->their_lists);
    side_free(&p->their_data);
    side_free(&p->packed);
    free(p->lengths);
    free(p->pieces.piece);
    free(p->image);
    free(p->covered);
}

enum mr_err mr_io_two_phase(struct mr_file *f, bool write, uint64_t nth, const struct mr_io_bytes *b,
                            const struct mr_io_span *all)
{
    const int me = which_aggregator(f);
    struct mr_io_phases p = {.f = f, .write = write, .nth = nth, .b = b};
    enum mr_err err;

    if (!divide(&p, all))
        return MR_SUCCESS;
    err = mr_io_agree(f, get_memory(&p, me));
    for (int64_t round = 0; !err; round++) {
        err = agree_next_round(&p, &round);
        if (err || round >= (p.each + p.stretch - 1) / p.stretch)
            break;
        err = one_round(&p, round, me);
    }
    free_phases(&p);
    return err ? err : p.err;
}
