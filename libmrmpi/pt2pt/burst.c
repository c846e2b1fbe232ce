/* SPDX-License-Identifier: BSD-3-Clause */
/* When messages that follow each other are read: see burst.h. */
#include "libmrmpi/pt2pt/burst.h"

#define PAGE_SHIFT 12

enum buffer { UNKNOWN, NEW, KNOWN };

/*
 * Each page has one place, whatever the distance of buffers: of two that want the same, none is remembered while they
 * take turns. NEW: it is to be registered now.
 */
static enum buffer find(struct mr_burst_buffers *b, const void *buf, size_t len, uint64_t pace)
{
    uintptr_t page = (uintptr_t)buf >> PAGE_SHIFT;
    unsigned at = (page ^ page / MR_BURST_BUFFERS) % MR_BURST_BUFFERS;

    b->bytes += len;
    if (b->of[at].page != page) {
        b->of[at].page = page;
        b->of[at].bytes = 0;
        b->of[at].registered = false;
    }
    if (b->of[at].registered)
        return KNOWN;
    if (b->of[at].bytes >= MR_BURST_WORTH && b->bytes >= b->next) {
        b->next = b->bytes + pace;
        b->of[at].registered = true;
        return NEW;
    }
    if (b->of[at].bytes < MR_BURST_WORTH)
        b->of[at].bytes += (uint32_t)len;
    return UNKNOWN;
}

static void next_burst(struct mr_burst *b)
{
    b->before = b->now;
    b->now = 0;
    b->asked = false; /* its send is complete */
}

/* New buffers are offered whatever is better, so that it can be tried with all of them. */
bool mr_burst_join(struct mr_burst *b, const void *buf, size_t len)
{
    enum buffer is;

    if (!b->open++)
        next_burst(b);
    b->now += len;
    if (b->now <= MR_BURST_BYTES && b->before < MR_BURST_BYTES)
        return false;
    b->seen++;
    is = find(&b->sent, buf, len, b->reads ? MR_BURST_FAST : MR_BURST_PACE);
    if (is == UNKNOWN)
        return false;
    if (b->rest) {
        b->rest--;
        return false;
    }
    if (!b->trusted && b->asked)
        return false;
    b->ready++;
    if (is == KNOWN && b->trusted && !b->reads)
        return false;
    b->asked = true;
    return true;
}

/* The sender keeps the pace. */
bool mr_burst_filled(struct mr_burst *b, const void *buf, size_t len)
{
    return find(&b->filled, buf, len, MR_BURST_FAST) != UNKNOWN;
}

void mr_burst_taken(struct mr_burst *b, bool read)
{
    b->trusted = read;
    b->asked = false;
    if (read) {
        b->rests = MR_BURST_REST;
    } else if (!b->rest) {
        b->rest = b->rests < MR_BURST_REST ? MR_BURST_REST : b->rests;
        b->rests = b->rest < MR_BURST_RESTS ? b->rest * 2 : b->rest;
    }
}

/* ---- the better way ---------------------------------------------------------------------------------------------- */

static void sent_eagerly(struct mr_burst *b)
{
    if (b->ready < b->seen / 8)
        return;
    if (b->wait) {
        b->wait--;
        return;
    }
    b->reads = true;
    b->trials = 0;
    b->least_ns = UINT64_MAX;
}

static void read_instead(struct mr_burst *b)
{
    uint64_t took = b->took_ns[true];

    if (took > b->took_ns[false] - b->took_ns[false] / 16) {
        b->waits = b->waits ? b->waits * 2 : 1;
        if (b->waits > MR_BURST_TRIALS)
            b->waits = MR_BURST_TRIALS;
        b->wait = b->waits;
        b->reads = false;
        return;
    }
    b->waits = 0;
    if (took < b->least_ns)
        b->least_ns = took;
    if (++b->trials >= MR_BURST_TRIALS || took > b->least_ns + b->least_ns / 4)
        b->reads = false; /* to see what that takes now */
}

void mr_burst_look(struct mr_burst *b, uint64_t now_ns)
{
    bool timed = b->settled, reads = b->reads;

    if (timed) {
        b->took_ns[reads] = now_ns - b->began_ns;
        if (reads)
            read_instead(b);
        else
            sent_eagerly(b);
    }
    b->settled = !timed || reads == b->reads;
    b->began_ns = now_ns;
    b->look_at = b->sent.bytes + (b->settled ? MR_BURST_TIMED : MR_BURST_SETTLED);
    b->seen = b->ready = 0;
}
