/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Uses the virtual channels directly, without MPI: every rank sends numbered packets of many sizes to every other and
 * writes large patterns into buffers that the other advertises; every byte, the order and the number of notifications
 * are checked. Run under mrrun. Argument: packets per peer. Prints one line and exits 0 if all held.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/model.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/net/net.h"

enum { DATA = 1, WANT, READY, BYE };

static const struct mr_launch *job;
static unsigned packets = 2000;
static const size_t put_sizes[] = {1, 4095, 16384, 100001, 1048576, 9000003};
#define PUTS (sizeof put_sizes / sizeof *put_sizes)

struct peer {
    unsigned got; /* numbered packets */
    unsigned puts_sent, puts_landed, byes;
    unsigned char *target, *source;
    struct mr_region *region;
};
static struct peer *peers;

static void die(const char *what, int rank, long a, long b)
{
    fprintf(stderr, "rank %d: %s, peer %d: %ld, expected %ld\n", job->rank, what, rank, a, b);
    mr_launch_abort(1, what);
}

static unsigned char pattern(int from, size_t i, unsigned round)
{
    return (unsigned char)(i * 31 + (i >> 8) * 7 + (unsigned)from * 13 + round);
}

static size_t packet_size(unsigned i, size_t max)
{
    return i % 7 == 0 ? 0 : i % 7 == 1 ? max : i * 37 % (max + 1);
}

static void send_or_die(struct mr_vc *vc, struct mr_hdr *hdr, const void *data, size_t len)
{
    int err = mr_vc_send(vc, hdr, data, len);

    if (err)
        die("mr_vc_send", mr_vc_world_rank(vc), err, 0);
}

/* Expose the next buffer to the peer. */
static void want_put(struct mr_vc *vc, struct peer *p)
{
    struct mr_hdr hdr = {.kind = WANT, .tag = (int32_t)p->puts_landed, .len = put_sizes[p->puts_landed]};
    struct mr_remote remote;
    int err = mr_vc_advertise(vc, p->target, hdr.len, MR_VC_PUT, &p->region, &remote);

    if (err)
        die("mr_vc_advertise", mr_vc_world_rank(vc), err, 0);
    mr_vc_expect(p->region, 1000 + p->puts_landed);
    hdr.rreq = 1000 + p->puts_landed;
    send_or_die(vc, &hdr, &remote, sizeof remote);
}

static void deliver(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    int rank = mr_vc_world_rank(vc);
    struct peer *p = &peers[rank];
    const unsigned char *data = payload;
    struct mr_remote remote;

    switch (hdr->kind) {
    case DATA:
        if ((unsigned)hdr->tag != p->got)
            die("packet out of order", rank, hdr->tag, p->got);
        if (len != packet_size(p->got, mr_vc_eager_max(vc)) || hdr->len != len)
            die("packet of wrong length", rank, (long)len, (long)hdr->len);
        for (size_t i = 0; i < len; i++)
            if (data[i] != pattern(rank, i, p->got))
                die("packet with wrong byte", rank, data[i], pattern(rank, i, p->got));
        p->got++;
        break;
    case WANT:
        if (len != sizeof remote)
            die("wrong offer", rank, (long)len, sizeof remote);
        memcpy(&remote, payload, sizeof remote);
        for (size_t i = 0; i < hdr->len; i++)
            p->source[i] = pattern(job->rank, i, (unsigned)hdr->tag);
        if (mr_net_begin_transfer(
                vc, &(struct mr_net_transfer){.buf = p->source, .size = hdr->len, .remote = &remote, .cookie = p}))
            die("mr_net_begin_transfer", rank, -1, 0);
        break;
    case BYE:
        p->byes++;
        break;
    }
}

static void noted(struct mr_vc *vc, uint8_t note)
{
    if (note)
        die("wrong note", mr_vc_world_rank(vc), note, 0);
}

static void put_sent(void *cookie, int error)
{
    struct peer *p = cookie;

    if (error)
        die("put failed", (int)(p - peers), error, 0);
    p->puts_sent++;
}

static void put_landed(int rank, uint64_t rreq, int error)
{
    struct peer *p = &peers[rank];

    if (error || rreq != 1000 + p->puts_landed)
        die("wrong landing", rank, (long)rreq, 1000 + p->puts_landed);
    for (size_t i = 0; i < put_sizes[p->puts_landed]; i++)
        if (p->target[i] != pattern(rank, i, p->puts_landed))
            die("landed with wrong byte", rank, p->target[i], pattern(rank, i, p->puts_landed));
    mr_vc_withdraw(p->region);
    if (++p->puts_landed < PUTS)
        want_put(mr_vc_make(rank), p);
}

static void failed(struct mr_vc *vc, int error)
{
    die("peer lost", mr_vc_world_rank(vc), error, 0);
}

static bool skips(int r)
{
    return r == job->rank || job->node_of[r] == job->node_of[job->rank];
}

static void exchange(unsigned char *buf)
{
    bool busy = true;

    for (unsigned i = 0; i < packets; i++)
        for (int r = 0; r < job->size; r++) {
            struct mr_vc *vc = mr_vc_make(r);
            struct mr_hdr hdr = {.kind = DATA, .tag = (int32_t)i};

            if (skips(r))
                continue;
            hdr.len = packet_size(i, mr_vc_eager_max(vc));
            for (size_t k = 0; k < hdr.len; k++)
                buf[k] = pattern(job->rank, k, i);
            send_or_die(vc, &hdr, buf, hdr.len);
            if (i % 64 == 0)
                mr_vc_poll();
        }
    for (int r = 0; r < job->size; r++)
        if (!skips(r))
            want_put(mr_vc_make(r), &peers[r]);
    while (busy) {
        mr_vc_poll();
        busy = !mr_vc_drained();
        for (int r = 0; r < job->size; r++)
            busy |= !skips(r) && (peers[r].got < packets || peers[r].puts_sent < PUTS || peers[r].puts_landed < PUTS);
    }
    for (int r = 0; r < job->size; r++) {
        struct mr_hdr hdr = {.kind = BYE};

        if (!skips(r))
            send_or_die(mr_vc_make(r), &hdr, NULL, 0);
    }
    for (busy = true; busy;) {
        mr_vc_poll();
        busy = !mr_vc_drained();
        for (int r = 0; r < job->size; r++)
            busy |= !skips(r) && !peers[r].byes;
    }
}

int main(int argc, char **argv)
{
    static const struct mr_vc_upcalls up = {
        .deliver = deliver, .noted = noted, .put_sent = put_sent, .put_landed = put_landed, .failed = failed};
    unsigned char *buf = malloc(1 << 20);
    char why[256];
    int err;

    if (argc > 1)
        packets = (unsigned)strtoul(argv[1], NULL, 10);
    if (mr_config_init() || mr_model_init(why, sizeof why) || mr_launch_init(&job))
        return 1;
    mr_log_identity(job->rank, job->local_rank, job->node_name);
    peers = calloc((size_t)job->size, sizeof *peers);
    for (int r = 0; r < job->size; r++) {
        peers[r].target = malloc(put_sizes[PUTS - 1]);
        peers[r].source = malloc(put_sizes[PUTS - 1]);
    }
    err = mr_vc_init(job, &up, &mr_channel_net);
    if (err || (err = mr_launch_fence()) || (err = mr_shm_ready())) {
        fprintf(stderr, "rank %d: %s\n", job->rank, strerror(-err));
        mr_launch_abort(1, "no start");
    }
    exchange(buf);
    mr_launch_fence();
    mr_stats_print();
    mr_vc_finalize();
    if (!job->rank)
        printf("ranks %d packets %u puts %zu\n", job->size, packets, PUTS);
    for (int r = 0; r < job->size; r++) {
        free(peers[r].target);
        free(peers[r].source);
    }
    free(peers);
    free(buf);
    return mr_launch_finalize() != 0;
}
