/* SPDX-License-Identifier: BSD-3-Clause */
/* When messages that follow each other are read: see burst.h. */
#include "libmrmpi/p2p/choice/burst.h"

#define PAGE_SHIFT 12

enum buffer { UNKNOWN, NEW, KNOWN };

/*
 * Each page has one place: of two pages for the same place, none is remembered while they alternate. No two such pages
 * are closer together than the number of places, wherever they begin, nor at the distance of all places. Returns the
 * bytes copied until now.
 */
static uint32_t count_buffer_use(struct mr_burst_buffers *b, const void *buf, size_t len, unsigned *at)
{
    uintptr_t page = (uintptr_t)buf >> PAGE_SHIFT;
    uint32_t before;

    *at = (page + page / MR_BURST_BUFFERS) % MR_BURST_BUFFERS;
    if (b->of[*at].page != page) {
        b->of[*at].page = page;
        b->of[*at].bytes = 0;
        b->of[*at].memory = MR_BURST_UNREGISTERED;
    }
    before = b->of[*at].bytes;
    b->of[*at].bytes = len > UINT32_MAX - before ? UINT32_MAX : before + (uint32_t)len;
    return before;
}

static void sample(struct mr_burst *b, const void *buf, size_t len)
{
    if (b->samples == MR_BURST_SAMPLES)
        return;
    len = len < MR_BURST_SAMPLE ? len : MR_BURST_SAMPLE;
    b->samples++;
    b->copied_ns += b->copy_ns(buf, len);
    b->copied += len;
}

/* True if copying this number of bytes from or into a buffer takes at least as long as registering the buffer. */
static bool is_worth(struct mr_burst *b, uint64_t bytes, const void *buf, size_t len)
{
    if (bytes < (uint64_t)b->model->register_at * b->devices)
        return false;
    sample(b, buf, len);
    return b->samples == MR_BURST_SAMPLES &&
           bytes * b->copied_ns >= mr_model_register_ns(b->model, len, b->devices) * b->copied;
}

/* True if another registration is allowed. Reading the clock takes as long as copying 256 bytes. */
static bool is_time(struct mr_burst *owner, struct mr_burst_buffers *b)
{
    uint64_t now;

    if (b->skip) {
        b->skip--;
        return false;
    }
    now = owner->clock_ns();
    if (now >= b->next_ns)
        return true;
    b->skip = b->next_ns - now > MR_BURST_SOON_NS ? MR_BURST_SKIP - 1 : 1;
    return false;
}

/* False for memory that was unmapped since its registration: no byte was copied from or into the new memory there. */
static bool is_still_registered(const struct mr_burst *owner, struct mr_burst_buffers *b, unsigned at, const void *buf,
                                size_t len)
{
    if (b->of[at].memory == MR_BURST_UNREGISTERED)
        return false;
    if (owner->is_registered(buf, len)) {
        b->of[at].memory = MR_BURST_SEEN;
        return true;
    }
    if (b->of[at].memory == MR_BURST_SEEN && !owner->is_registered(buf, 1)) /* otherwise it has only grown */
        b->of[at].bytes = (uint32_t)len;
    b->of[at].memory = MR_BURST_UNREGISTERED;
    return false;
}

/* NEW: to be registered now, if allowed. */
static enum buffer find_buffer(struct mr_burst *owner, struct mr_burst_buffers *b, const void *buf, size_t len,
                               unsigned pace, bool may)
{
    unsigned at;
    uint32_t bytes = count_buffer_use(b, buf, len, &at);

    if (is_still_registered(owner, b, at, buf, len))
        return KNOWN;
    if (!is_worth(owner, bytes, buf, len) || !may)
        return UNKNOWN;
    if (!is_time(owner, b))
        return UNKNOWN;
    b->next_ns = owner->clock_ns() + (uint64_t)pace * owner->devices;
    b->of[at].memory = MR_BURST_WISHED;
    return NEW;
}

/* ---- the better protocol ----------------------------------------------------------------------------------------- */

/* Time of 1024 bytes. */
static uint64_t copy_ps(const struct mr_burst *b)
{
    return b->copied_ns * 1024000 / b->copied;
}

/* True if, as far as known, eager messages are limited by copies. */
static bool is_bound(const struct mr_burst *b)
{
    uint32_t ps = mr_trial_first_ps(&b->trials);

    return ps ? ps <= MR_TRIAL_COPIES * copy_ps(b) : mr_trial_is_second(&b->trials);
}

/* The next registration of a buffer to send from need not wait for the interval chosen before their use was known. */
static void hasten(struct mr_burst *b, uint64_t now)
{
    uint64_t soon = now + (uint64_t)MR_BURST_FAST_NS * b->devices;

    if (b->sent.next_ns <= soon)
        return;
    b->sent.next_ns = soon;
    b->sent.skip = 0;
}

static void review_burst(struct mr_burst *b)
{
    uint64_t now = b->clock_ns();
    unsigned can = b->seen ? 8 * b->ready / b->seen : 8;

    b->many = b->seen && 2 * b->known >= b->seen;
    b->exchanges = b->arrived > b->seen / 8;
    if (b->trials.second && !can)
        mr_trial_spoil(&b->trials);
    mr_trial_check(&b->trials, now, can, b->exchanges, copy_ps(b));
    if (mr_trial_pays(&b->trials))
        hasten(b, now);
    b->seen = b->known = b->ready = b->arrived = 0;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void next_burst(struct mr_burst *b)
{
    b->before = b->now;
    b->now = 0;
    b->most_before = b->most;
    b->most = 0;
    b->asked = false; /* its send is complete */
    b->begins = true;
}

/* New buffers are offered in any case, so that reading can be tried with all; but not if both sides send. */
static bool is_offered(struct mr_burst *b, enum buffer is)
{
    if (!is_bound(b))
        return false;
    if (mr_backoff_skips(&b->eager))
        return false;
    if (!b->trusted && b->asked)
        return false;
    b->ready++;
    if (!b->trials.second && ((is == KNOWN && b->trusted) || b->exchanges || b->arrived > b->seen / 8))
        return false;
    b->asked = true;
    return true;
}

/* This number of bytes of this burst have come, or did of the one before: likely again. */
static bool has_had(const struct mr_burst *b, size_t bytes)
{
    return b->now > bytes || b->before >= bytes;
}

/* Enough is under way at a time, or was in the last burst, to hide a round trip. */
static bool is_deep(const struct mr_burst *b)
{
    return b->most >= b->model->zsend_at || b->most_before >= b->model->zsend_at;
}

/*
 * A burst's first few registered buffers decide about reading. They are not at its end: nothing is under way there any
 * more to hide their round trip.
 */
static bool is_at_end(const struct mr_burst *b, size_t len)
{
    return !b->many && b->open && b->before >= b->model->burst_at && b->now < b->before &&
           b->now + len + b->model->zsend_at > b->before && !mr_trial_pays(&b->trials);
}

enum mr_send_protocol mr_burst_join(struct mr_burst *b, const void *buf, size_t len, bool can_offer)
{
    enum buffer is = find_buffer(b, &b->sent, buf, len, mr_trial_pays(&b->trials) ? MR_BURST_FAST_NS : MR_BURST_PACE_NS,
                                 !can_offer || !is_at_end(b, len));
    enum mr_send_protocol eagerly;

    if (!b->open++)
        next_burst(b);
    b->now += len;
    if (b->open * len > b->most)
        b->most = b->open * len;
    eagerly = is == UNKNOWN ? MR_BURST_COPY : is_deep(b) ? MR_BURST_ZSEND : MR_BURST_ANSWER;
    if (!can_offer || !has_had(b, b->model->burst_at))
        return eagerly;
    sample(b, buf, len); /* before the first check there are all of them */
    if (is == NEW)
        mr_trial_spoil(&b->trials);
    b->trials.shallow = b->model->shallow; /* a round trip is measured after the first messages */
    if (mr_trial_sent(&b->trials, len, b->most > b->most_before ? b->most : b->most_before, b->begins))
        review_burst(b);
    b->begins = false;
    b->seen++;
    b->known += is != UNKNOWN;
    return is != UNKNOWN && is_offered(b, is) ? MR_BURST_OFFER : eagerly;
}

enum mr_send_protocol mr_burst_alone(struct mr_burst *b, const void *buf, size_t len)
{
    return find_buffer(b, &b->sent, buf, len, MR_BURST_PACE_NS, true) == UNKNOWN ? MR_BURST_COPY : MR_BURST_ANSWER;
}

size_t mr_burst_copies_as(const struct mr_burst *b, size_t len)
{
    uint64_t as = b->copied ? len * b->copied_ns * b->model->copy_mbps / 1000 / b->copied : len;

    return b->samples == MR_BURST_SAMPLES && as < len ? as : len;
}

bool mr_burst_delays(struct mr_burst *b, const void *buf, size_t len, size_t all)
{
    sample(b, buf, len);
    return b->samples == MR_BURST_SAMPLES && mr_burst_copies_as(b, all) >= b->model->zsend_at;
}

bool mr_burst_whole(struct mr_burst *b, const void *buf, size_t len, bool filled)
{
    struct mr_burst_buffers *of = filled ? &b->filled : &b->sent;
    uint64_t next_ns = of->next_ns;
    unsigned skip = of->skip;
    bool found;

    /* does not wait for single messages, nor they for it */
    of->next_ns = of->whole_ns;
    of->skip = 0;
    found = find_buffer(b, of, buf, len, MR_BURST_FAST_NS, true) != UNKNOWN;
    of->whole_ns = of->next_ns;
    of->next_ns = next_ns;
    of->skip = skip;
    return found;
}

void mr_burst_filled(struct mr_burst *b, const void *buf, size_t len)
{
    unsigned at;

    if (len < b->model->offer_at)
        return;
    b->arrived++;
    count_buffer_use(&b->filled, buf, len, &at);
}

bool mr_burst_offered(struct mr_burst *b, const void *buf, size_t len)
{
    b->arrived++;
    b->filled.skip = 0; /* a refused one is the last for a while */
    return find_buffer(b, &b->filled, buf, len, MR_BURST_FAST_NS, true) != UNKNOWN;
}

void mr_burst_taken(struct mr_burst *b, bool read)
{
    b->trusted = read;
    b->asked = false;
    if (read) {
        mr_backoff_succeeded(&b->eager);
        return;
    }
    mr_trial_spoil(&b->trials);
    if (!b->eager.left)
        mr_backoff_failed(&b->eager, MR_BACKOFF_FIRST);
}
