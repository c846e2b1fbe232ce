/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving data through a node area: see exchange.h. Data that fits a slot of the small ring is one piece there. Longer
 * data is announced there, with its length, and follows in the bulk ring.
 *
 * Ranks may disagree on an amount by a mistake of the program. In one piece this is an error of the ranks that notice,
 * as with messages. In several pieces the count of pieces would be different from then on, so the area is out of order.
 */
#include "libmrmpi/coll/node/exchange.h"

#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/core/core.h"

/* With a core for each rank pieces are cut such that reading one overlaps writing the next. */
enum { PIECE_MIN = 8192, PIECES_WANTED = 4 };

static int rank_at_stride(const struct mr_node *n, int stride, int j)
{
    return (int)(((long)n->me - (long)stride * j) % n->ranks + n->ranks) % n->ranks;
}

static int source(const struct mr_node *n, const struct mr_node_exchange *x, int j)
{
    return rank_at_stride(n, x->stride, j);
}

static int blocks_of(const struct mr_node *n, const struct mr_node_exchange *x)
{
    return x->apart ? n->ranks - 1 : 1;
}

/* The block for rank `to` in the slot of rank `from`. */
static int block_of(const struct mr_node *n, const struct mr_node_exchange *x, int from, int to)
{
    return x->apart ? (to - from - 1 + n->ranks) % n->ranks : 0;
}

static void fill_blocks(const struct mr_node *n, const struct mr_node_exchange *x, size_t offset, size_t len, char *to)
{
    for (int j = 0, blocks = blocks_of(n, x); j < blocks; j++)
        x->fill(x->arg, (n->me + 1 + j) % n->ranks, offset, len, to + (size_t)j * len);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

enum { STREAM_LEAST = 1024, CHUNK = 8192 };

void mr_node_to_write(struct mr_node *n, struct mr_node_ring *r, uint64_t piece, size_t bytes)
{
    n->cached = n->crowded || (bytes > r->shape.brief_bytes && !mr_node_use(r, piece));
}

/* Separate pieces are put together nearby first. */
static void stream_apart(struct mr_node *n, const void *buf, size_t count, const struct mr_type *t, size_t offset,
                         char *to, size_t len)
{
    _Alignas(64) char chunk[CHUNK];

    for (size_t at = 0; at < len; at += CHUNK) {
        size_t part = len - at < CHUNK ? len - at : CHUNK;

        mr_type_pack(buf, count, t, offset + at, chunk, part);
        mr_copy_out(&n->copier, to + at, chunk, part);
    }
}

void mr_node_put(struct mr_node *n, const void *buf, size_t count, const struct mr_type *t, size_t offset, char *to,
                 size_t len)
{
    if (len < STREAM_LEAST || n->cached || (!t->contiguous && !mr_copy_streams(&n->copier)))
        mr_type_pack(buf, count, t, offset, to, len);
    else if (t->contiguous)
        mr_copy_out(&n->copier, to, (const char *)buf + t->true_lb + offset, len);
    else
        stream_apart(n, buf, count, t, offset, to, len);
}

/* ---- amounts ----------------------------------------------------------------------------------------------------- */

/* Amounts from here on are notices of an error (enum mr_err), by a writer without its data. */
#define NOTICES (UINT64_MAX - 0xffff)

static enum mr_err notice(int rank, uint64_t bytes)
{
    uint64_t code = bytes - NOTICES;
    enum mr_err err = code <= MR_ERR_LAST ? (enum mr_err)code : MR_ERR_OTHER;

    return mr_fail(err, "rank %d of this node has met an error in this operation: %s", rank, mr_err_text(err));
}

enum mr_err mr_node_amount(int rank, uint64_t bytes, size_t expected)
{
    if (likely(bytes == expected))
        return MR_SUCCESS;
    if (bytes > NOTICES)
        return notice(rank, bytes);
    if (bytes > expected)
        return mr_fail(MR_ERR_TRUNCATE, "rank %d has given %llu bytes to this operation, there is room for %zu", rank,
                       (unsigned long long)bytes, expected);
    if (!mr_config.check_args)
        return MR_SUCCESS;
    return mr_fail(MR_ERR_COUNT, "rank %d has given %llu bytes to this operation, %zu are expected of it", rank,
                   (unsigned long long)bytes, expected);
}

static void keep_first_error(enum mr_err *all, enum mr_err err)
{
    if (unlikely(err && !*all))
        *all = err;
}

/* ---- one piece --------------------------------------------------------------------------------------------------- */

static enum mr_err write_small(struct mr_node *n, const struct mr_node_exchange *x, uint64_t piece, bool with_data)
{
    struct mr_node_line *line = mr_node_first(&n->small, n->me, piece);
    size_t all = with_data ? x->gives * (size_t)blocks_of(n, x) : 0;
    enum mr_err err = mr_node_await_room(n, piece);

    if (err)
        return err;
    if (unlikely(n->failed)) {
        err = n->failed;
        n->failed = MR_SUCCESS;
        mr_node_publish(line, piece, NOTICES + (uint64_t)err);
        mr_node_wake(n);
        return err;
    }
    if (all) {
        mr_node_to_write(n, &n->small, piece, all);
        fill_blocks(n, x, 0, x->gives, mr_node_data(&n->small, n->me, piece, all));
    }
    mr_node_publish(line, piece, x->gives);
    mr_node_wake(n);
    return MR_SUCCESS;
}

static enum mr_err read_small(struct mr_node *n, const struct mr_node_exchange *x, uint64_t piece, int src)
{
    const struct mr_node_line *line = mr_node_first(&n->small, src, piece);
    size_t blocks = (size_t)blocks_of(n, x), expects = x->amount ? x->amount(x->arg, src) : x->expects, len;
    enum mr_err err = mr_node_await(n, line, piece, src);
    uint64_t bytes;
    const char *at;

    if (err)
        return err;
    bytes = mr_node_bytes(line);
    if (unlikely(bytes > NOTICES))
        return notice(src, bytes);
    if (bytes > n->small.shape.slot_bytes / blocks) { /* it follows in the other ring, where this rank is not */
        mr_node_break(n);
        return mr_node_amount(src, bytes, expects);
    }
    at = mr_node_data(&n->small, src, piece, bytes * blocks);
    len = bytes < expects ? bytes : expects;
    if (len)
        x->take(x->arg, src, 0, len, at + (size_t)block_of(n, x, src, n->me) * bytes);
    return mr_node_amount(src, bytes, expects);
}

static enum mr_err exchange_small(struct mr_node *n, const struct mr_node_exchange *x)
{
    uint64_t piece = n->small.next++;
    enum mr_err all = MR_SUCCESS;

    if (x->writes)
        all = write_small(n, x, piece, true);
    if (x->meanwhile && !all)
        x->meanwhile(x->arg);
    for (int j = 1; j <= x->num; j++)
        keep_first_error(&all, read_small(n, x, piece, source(n, x, j)));
    mr_node_done(&n->small, piece);
    mr_node_wake(n);
    return all;
}

/* ---- one piece, if they fit: blocks of any lengths --------------------------------------------------------------- */

/* A line about blocks that go another way: not a notice of an error. */
#define LATER NOTICES

/* Before several blocks are their lengths. */
struct lengths {
    uint32_t of[MR_NODE_RANKS_MAX];
};

static size_t lengths_bytes(int blocks)
{
    return blocks > 1 ? ((size_t)blocks * sizeof(uint32_t) + 7) & ~(size_t)7 : 0;
}

static int blocks_varied(const struct mr_node *n, const struct mr_varied *x)
{
    return x->only < 0 ? n->ranks - 1 : 1;
}

static enum mr_err write_varied(struct mr_node *n, const struct mr_varied *x, uint64_t piece, bool *later)
{
    struct mr_node_line *line = mr_node_first(&n->small, n->me, piece);
    int blocks = blocks_varied(n, x), first = x->only < 0 ? n->me + 1 : x->only;
    size_t most = n->small.shape.slot_bytes, header = lengths_bytes(blocks), all = header;
    struct lengths lengths;
    enum mr_err err;
    char *to;

    for (int j = 0; j < blocks && all <= most; j++) {
        size_t len = x->gives(x->arg, (first + j) % n->ranks);

        lengths.of[j] = (uint32_t)len;
        all = len > most ? most + 1 : all + len;
    }
    *later = all > most;
    err = mr_node_await_room(n, piece);
    if (err)
        return err;
    if (!*later) {
        to = mr_node_data(&n->small, n->me, piece, all);
        mr_node_to_write(n, &n->small, piece, all);
        memcpy(to, lengths.of, header ? (size_t)blocks * sizeof(uint32_t) : 0);
        to += header;
        for (int j = 0; j < blocks; to += lengths.of[j++])
            if (lengths.of[j])
                x->fill(x->arg, (first + j) % n->ranks, 0, lengths.of[j], to);
    }
    mr_node_publish(line, piece, *later ? LATER : all);
    mr_node_wake(n);
    return MR_SUCCESS;
}

/* The block for this rank in a piece of so many bytes; false: the piece makes no sense. */
static bool find_varied(const struct mr_node *n, int src, int blocks, const char **at, size_t bytes, size_t *len)
{
    size_t header = lengths_bytes(blocks), offset = header;
    int mine = (n->me - src - 1 + n->ranks) % n->ranks;
    struct lengths lengths;

    *len = bytes;
    if (blocks == 1)
        return true;
    if (bytes < header)
        return false;
    memcpy(lengths.of, *at, (size_t)blocks * sizeof(uint32_t));
    for (int j = 0; j < mine; j++)
        offset += lengths.of[j];
    *at += offset;
    *len = lengths.of[mine];
    return offset <= bytes && *len <= bytes - offset;
}

static enum mr_err read_varied(struct mr_node *n, const struct mr_varied *x, uint64_t piece, int src, bool *later)
{
    const struct mr_node_line *line = mr_node_first(&n->small, src, piece);
    enum mr_err err = mr_node_await(n, line, piece, src);
    size_t expects = x->expects(x->arg, src), len;
    const char *at;
    uint64_t bytes;

    if (err)
        return err;
    bytes = mr_node_bytes(line);
    *later = bytes == LATER;
    if (*later)
        return MR_SUCCESS;
    if (unlikely(bytes > NOTICES))
        return notice(src, bytes);
    at = mr_node_data(&n->small, src, piece, bytes);
    if (bytes > n->small.shape.slot_bytes ||
        !find_varied(n, src, x->only < 0 ? n->ranks - 1 : 1, &at, (size_t)bytes, &len)) {
        mr_node_break(n); /* the rank is in another operation */
        return mr_node_amount(src, bytes, expects);
    }
    if (len && expects)
        x->take(x->arg, src, 0, len < expects ? len : expects, at);
    return len > expects ? mr_node_amount(src, len, expects) : MR_SUCCESS;
}

enum mr_err mr_node_exchange_varied(struct mr_node *n, const struct mr_varied *x, bool *later)
{
    uint64_t piece = n->small.next++;
    enum mr_err all = MR_SUCCESS;

    if (x->writes)
        all = write_varied(n, x, piece, &later[n->me]);
    if (x->meanwhile && !all)
        x->meanwhile(x->arg);
    for (int j = 1; j <= x->num; j++) {
        int src = rank_at_stride(n, x->stride, j);

        keep_first_error(&all, read_varied(n, x, piece, src, &later[src]));
    }
    mr_node_done(&n->small, piece);
    mr_node_wake(n);
    return all;
}

/* ---- several ----------------------------------------------------------------------------------------------------- */

struct cut {
    size_t bytes, each;
    uint64_t from, num; /* pieces */
};

static struct cut cut_of(struct mr_node *n, const struct mr_node_exchange *x, size_t bytes)
{
    size_t most = n->bulk.shape.slot_bytes / (size_t)blocks_of(n, x) & ~(size_t)63;
    struct cut c = {.bytes = bytes, .each = most, .from = n->bulk.next};

    if (!n->crowded && bytes / PIECES_WANTED < most) {
        size_t least = PIECE_MIN < most ? PIECE_MIN : most;

        c.each = (bytes / PIECES_WANTED + 63) & ~(size_t)63;
        c.each = c.each < least ? least : c.each < most ? c.each : most;
    }
    if (x->grain)
        c.each = c.each / x->grain * x->grain;
    c.num = (bytes + c.each - 1) / c.each;
    n->bulk.next += c.num;
    return c;
}

static size_t length_of(const struct cut *c, uint64_t k)
{
    size_t at = (size_t)k * c->each;

    return c->bytes - at < c->each ? c->bytes - at : c->each;
}

static size_t bytes_of_piece(const struct mr_node *n, const struct mr_node_exchange *x, const struct cut *c, uint64_t k)
{
    return length_of(c, k) * (size_t)blocks_of(n, x);
}

static void write_piece(struct mr_node *n, const struct mr_node_exchange *x, const struct cut *c, uint64_t k, char *to)
{
    uint64_t piece = c->from + k;

    fill_blocks(n, x, (size_t)k * c->each, length_of(c, k), to);
    mr_node_publish(mr_node_first(&n->bulk, n->me, piece), piece, x->gives);
    mr_node_wake(n);
}

/*
 * A rank that also reads is one piece ahead of its reads; with more ranks than cores, as far ahead as there is room,
 * because each wait is a change of processes.
 */
static enum mr_err write_ahead(struct mr_node *n, const struct mr_node_exchange *x, const struct cut *c, uint64_t k,
                               uint64_t *written)
{
    uint64_t ahead = n->crowded || !x->num ? c->num : k + 2;
    char *to = NULL;
    enum mr_err err = MR_SUCCESS;

    if (*written == k)
        err = mr_node_begin_long(n, c->from + k, bytes_of_piece(n, x, c, k), &to);
    else if (*written < ahead)
        to = mr_node_try_long(n, c->from + *written, bytes_of_piece(n, x, c, *written));
    while (!err && to) {
        write_piece(n, x, c, (*written)++, to);
        to = *written < c->num && *written < ahead
                 ? mr_node_try_long(n, c->from + *written, bytes_of_piece(n, x, c, *written))
                 : NULL;
    }
    return err;
}

static enum mr_err take_piece(struct mr_node *n, const struct mr_node_exchange *x, const struct cut *c, uint64_t k,
                              int src)
{
    size_t len = length_of(c, k);
    char *at;
    enum mr_err err = mr_node_await_long(n, src, c->from + k, bytes_of_piece(n, x, c, k), &at);

    if (err)
        return err;
    x->take(x->arg, src, (size_t)k * c->each, len, at + (size_t)block_of(n, x, src, n->me) * len);
    return MR_SUCCESS;
}

/* All announce their amounts; a reading rank learns whether the amount is as expected. */
static enum mr_err announce(struct mr_node *n, const struct mr_node_exchange *x)
{
    uint64_t piece = n->small.next++;
    enum mr_err err = x->writes ? write_small(n, x, piece, false) : MR_SUCCESS;

    for (int j = 1; j <= x->num && !err; j++) {
        const struct mr_node_line *line = mr_node_first(&n->small, source(n, x, j), piece);

        err = mr_node_await(n, line, piece, source(n, x, j));
        if (!err && mr_node_bytes(line) != x->expects) {
            err = mr_node_amount(source(n, x, j), mr_node_bytes(line), x->expects);
            mr_node_break(n);
            err = err ? err : MR_ERR_COUNT;
        }
    }
    mr_node_done(&n->small, piece);
    return err;
}

static enum mr_err exchange_bulk(struct mr_node *n, const struct mr_node_exchange *x, size_t bytes)
{
    struct cut c = cut_of(n, x, bytes);
    uint64_t written = 0;
    enum mr_err err = MR_SUCCESS;

    if (x->writes) /* the first pieces go at once: others find them after the announcement */
        err = write_ahead(n, x, &c, 0, &written);
    if (!err)
        err = announce(n, x);
    if (x->meanwhile && !err)
        x->meanwhile(x->arg);
    for (uint64_t k = 0; k < c.num && !err; k++) {
        if (x->writes && written < c.num)
            err = write_ahead(n, x, &c, k, &written);
        for (int j = 1; j <= x->num && !err; j++)
            err = take_piece(n, x, &c, k, source(n, x, j));
        if (!err) /* or this rank has left */
            mr_node_done(&n->bulk, c.from + k);
        mr_node_wake(n);
    }
    return err;
}

enum mr_err mr_node_exchange(struct mr_node *n, const struct mr_node_exchange *x)
{
    size_t bytes = x->num ? x->expects : x->gives;

    if (bytes <= n->small.shape.slot_bytes / (size_t)blocks_of(n, x) &&
        (!x->writes || x->gives <= n->small.shape.slot_bytes / (size_t)blocks_of(n, x)))
        return exchange_small(n, x);
    if (x->writes && x->gives != bytes) {
        mr_node_break(n);
        return mr_node_amount(n->me, x->gives, bytes);
    }
    return exchange_bulk(n, x, bytes);
}
