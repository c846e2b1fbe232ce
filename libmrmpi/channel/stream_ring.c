/* SPDX-License-Identifier: BSD-3-Clause */
/* Channel stream: rings of shared memory to and from processes on this node. */
#include "libmrmpi/channel/stream_peer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAM_SHORT (4096 + 1) /* shorter messages take the fast path into a ring */
/* Rings to few processes are deep; with many, their memory matters more. */
#define STREAM_FEW_RINGS 8
static const struct mr_ring_shape deep_ring = {.num_slots = 64, .data_bytes = 256u << 10};
static const struct mr_ring_shape flat_ring = {.num_slots = 32, .data_bytes = 2 * STREAM_PACKET};

/* ---- rings of ours ----------------------------------------------------------------------------------------------- */

/* Without memory, or memfds, packets go over the socket. */
void mr_stream_offer_ring(struct stream_peer *p)
{
    struct mr_ring_shape shape = mr_stream.num_rings < STREAM_FEW_RINGS ? deep_ring : flat_ring;
    struct stream_frame frame = {.what = FRAME_RING, .len = sizeof shape, .hdr.seq = ++p->ring.number};
    struct iovec part[2] = {{&frame, sizeof frame}, {&shape, sizeof shape}};
    struct stream_bytes *b;
    int fd = p->out.local ? mr_job_ring_make(&p->ring.memory, shape) : -ENOTSUP;

    if (fd < 0) {
        if (p->out.local)
            mr_log(MR_LOG_INFO, "process %u of another job: no shared memory with it: %s",
                   mr_guest_card(mr_stream_guest_of(p))->rank, strerror(-fd));
        return;
    }
    mr_stream.num_rings++;
    mr_ring_writer_init(&p->ring.writer, mr_job_ring_packets(&p->ring.memory), shape);
    p->ring.first = NULL;
    p->ring.last = &p->ring.first;
    if (mr_stream_put_off(p, part, 2, 0, false)) {
        close(fd);
        mr_stream_drop_ring(p);
        return;
    }
    b = container_of(p->out.last, struct stream_bytes, next);
    b->fd = fd;
    mr_stream_want_room(p);
}

/* The receiver has mapped our ring: the packets that follow go there. */
void mr_stream_use_ring(struct stream_peer *p, uint32_t number)
{
    if (!p->ring.memory.head || p->ring.used || number != p->ring.number || mr_stream_leaves(p) ||
        !mr_stream_say(p, FRAME_USED, 0, NULL, 0))
        return;
    p->ring.used = true;
    mr_vc_change(p->vc, &mr_channel_ring);
    p->vc->fast_below = STREAM_SHORT;
    mr_log(MR_LOG_DEBUG, "process %u of another job: shared memory carries its packets",
           mr_guest_card(mr_stream_guest_of(p))->rank);
}

static __attribute__((noinline)) void wake_reader(struct stream_peer *p)
{
    if (mr_stream_say(p, FRAME_WAKE, 0, NULL, 0) && !p->out.connecting && !mr_stream_write_waiting(p))
        mr_stream_note_failure(p);
}

static inline void tell_reader(struct stream_peer *p)
{
    mr_stat_add(MR_STAT_SHM_JOBS_SENT, 1);
    if (unlikely(mr_job_ring_must_wake(&p->ring.memory)))
        wake_reader(p);
}

static int queue_packet(struct stream_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct stream_packet *w = malloc(sizeof *w + len);

    if (!w)
        return -ENOMEM;
    *w = (struct stream_packet){.hdr = *hdr, .len = len};
    if (len)
        memcpy(w->payload, payload, len);
    *p->ring.last = w;
    p->ring.last = &w->next;
    mr_stream_count_queued(p, 1);
    return 0;
}

int mr_stream_ring_send(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct stream_peer *p = vc->stream;

    mr_stream_stay(p);
    if (unlikely(p->out.leaving)) { /* BYE was not the last */
        p->out.leaving = false;
        mr_stream_say(p, FRAME_WAKE, 0, NULL, 0);
    }
    if (p->ring.first || !mr_ring_write(&p->ring.writer, hdr, payload, len))
        return queue_packet(p, hdr, payload, len);
    tell_reader(p);
    return 0;
}

bool mr_stream_ring_send_short(struct mr_vc *vc, const void *payload, size_t len, int rank, int tag, uint32_t ctx)
{
    struct mr_hdr hdr = {.note = vc->note, .seq = vc->next_seq, .rank = rank, .tag = tag, .ctx = ctx};
    struct stream_peer *p = vc->stream;

    if (vc->error || p->out.leaving || mr_stream_leaves(p) || p->ring.first)
        return false;
    if (!mr_ring_write_brief(&p->ring.writer, &hdr, payload, len))
        return false;
    tell_reader(p);
    return true;
}

/* Packets of a full ring. */
int mr_stream_write_ring(struct stream_peer *p)
{
    int n = 0;

    while (p->ring.first &&
           mr_ring_write(&p->ring.writer, &p->ring.first->hdr, p->ring.first->payload, p->ring.first->len)) {
        mr_stream_drop_packet(p);
        tell_reader(p);
        n++;
    }
    return n;
}

int mr_stream_write_rings(void)
{
    int n = 0;

    for (struct stream_peer *p = mr_stream.peers; p && mr_stream.num_in_queue; p = p->next)
        n += mr_stream_write_ring(p);
    return n;
}

/* By our own connection to the process, if open yet. */
static void take_ring(struct stream_in *in)
{
    if (in->ring.head && !in->ring_taken)
        in->ring_taken = mr_stream_say(in->peer, FRAME_TAKEN, in->ring_number, NULL, 0);
}

void mr_stream_take_rings(struct stream_peer *p)
{
    for (struct stream_in *in = mr_stream.ins; in; in = in->next)
        if (in->peer == p)
            take_ring(in);
}

/* ---- rings of processes ------------------------------------------------------------------------------------------ */

void mr_stream_leave_ring(struct stream_in *in)
{
    struct stream_in **at = &mr_stream.used;

    if (in->ring_used) {
        while (*at != in)
            at = &(*at)->next_used;
        *at = in->next_used;
        mr_stream.num_used--;
    }
    in->ring_used = false;
    mr_job_ring_leave(&in->ring);
}

void mr_stream_hear_of_ring(struct stream_in *in, uint32_t number, const uint8_t *at, uint32_t len)
{
    int fd = in->given, err = 0;
    struct mr_ring_shape shape;

    in->given = -1;
    if (!mr_stream.copy)
        mr_stream.copy = malloc(STREAM_PACKET);
    if (in->ring.head || len != sizeof shape || fd < 0 || !mr_stream.copy)
        err = -EPROTO;
    if (!err) {
        memcpy(&shape, at, sizeof shape);
        err = mr_job_ring_join(&in->ring, shape, fd);
    }
    if (fd >= 0)
        close(fd);
    if (err) {
        mr_log(MR_LOG_INFO, "process %u of another job: its shared memory is not used: %s",
               mr_guest_card(mr_stream_guest_of(in->peer))->rank, strerror(-err));
        return;
    }
    mr_ring_reader_init(&in->reader, mr_job_ring_packets(&in->ring), shape, (uint32_t)mr_stream_guest_of(in->peer));
    in->ring_number = number;
    take_ring(in);
}

/* False: there is no such ring. */
bool mr_stream_begin_reading(struct stream_in *in)
{
    if (!in->ring.head || in->ring_used)
        return false;
    in->ring_used = true;
    in->next_used = mr_stream.used;
    mr_stream.used = in;
    mr_stream.num_used++;
    return true;
}

/*
 * The writer could change a packet after the check. The bytes of eager messages only reach the program; the library
 * reads other packets, from a copy.
 */
static void deliver_from_ring(struct stream_in *in, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (hdr->kind != MR_VC_KIND_EAGER && len)
        payload = memcpy(mr_stream.copy, payload, len);
    in->bye = false;
    mr_vc_arrived_from(in->peer->vc, hdr, payload, len);
}

/* At most so many packets. Returns their number, or -1: the ring is damaged. */
int mr_stream_read_ring(struct stream_in *in, unsigned most)
{
    struct mr_hdr hdr;
    const void *payload;
    uint32_t far;
    size_t len;
    unsigned n;

    for (n = 0; n < most; n++) {
        int got = mr_ring_peek(&in->reader, &hdr, &payload, &len, &far);

        if (!got) {
            mr_ring_tell(&in->reader);
            break;
        }
        if (got < 0 || !payload || len > STREAM_PACKET)
            return -1;
        deliver_from_ring(in, &hdr, payload, len);
        mr_ring_release(&in->reader);
    }
    return (int)n;
}

void mr_stream_log_damage(const struct stream_in *in, const char *what)
{
    mr_log(MR_LOG_ERROR, "process %u of another job sent a damaged %s: nothing more is taken from it",
           mr_guest_card(mr_stream_guest_of(in->peer))->rank, what);
}

/* The ring holds no more packets from before the last frame. */
void mr_stream_empty_ring(struct stream_in *in)
{
    if (!in->ring_used || mr_stream_read_ring(in, in->reader.shape.num_slots) >= 0)
        return;
    mr_stream_log_damage(in, "packet through shared memory");
    in->bye = false;
    mr_stream_leave_ring(in);
}
