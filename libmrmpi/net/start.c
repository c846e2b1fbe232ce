/* SPDX-License-Identifier: BSD-3-Clause */
/* The channel's beginning and end: settings, fabricd, devices, upcalls of lower folders. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/base/wire.h"
#include "libmrmpi/net/internal.h"
#include "libmrmpi/net/stripe/renew.h"
#include "libmrmpi/net/view/view.h"

#define FABRIC_TIMEOUT_MS 1000

/* ---- up from the HCA --------------------------------------------------------------------------------------------- */

static void on_datagram(struct mr_rail *rail, const void *data, size_t len)
{
    mr_handshake_datagram(rail, data, len);
}

static void on_rail_changed(struct mr_rail *rail)
{
    mr_view_port(rail);
    mr_recovery_rail_changed(rail);
}

static int on_device_renewed(struct mr_device *dev)
{
    int err = mr_packets_renew();

    return err ? err : mr_renew_device(dev);
}

static const struct mr_verbs_handlers handlers = {
    .device_renewed = on_device_renewed,
    .packet = mr_net_packet,
    .segment = mr_net_segment,
    .landed = mr_net_landed,
    .datagram = on_datagram,
    .rail_changed = on_rail_changed,
    .rail_moved = mr_recovery_rail_moved,
    .rail_keys = mr_recovery_rail_keys,
    .zsend_done = mr_net_zsend_done,
    .pkey = mr_fabric_pkey,
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

static uint32_t hash_job_id(const char *s)
{
    uint32_t h = 2166136261u;

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}

static void ask_fabricd(const struct mr_launch *launch)
{
    struct mr_fabric_qos *q = &mr_peers.qos;
    int err = mr_fabric_open(mr_config.fabricd_socket, mr_config.job_id, FABRIC_TIMEOUT_MS, q);

    if (!err) {
        mr_log(MR_LOG_INFO, "job %s is of class %s: service level %u for small messages, %u for large ones%s",
               mr_config.job_id, *q->class_name ? q->class_name : "(no policy)", q->level[MR_LEVEL_SMALL].sl[0],
               q->level[MR_LEVEL_BULK].sl[0],
               q->generation && !q->verified ? "; the fabric's tables are not verified" : "");
        return;
    }
    if (err == -ENOENT || err == -ECONNREFUSED) {
        if (!launch->rank)
            mr_log(MR_LOG_WARN, "there is no fabricd at %s: all traffic goes on service level 0",
                   mr_config.fabricd_socket);
    } else if (!launch->local_rank) {
        mr_log(MR_LOG_WARN, "fabricd at %s cannot be asked (%s): till it can this host's traffic is on service level 0",
               mr_config.fabricd_socket, strerror(-err));
    }
}

void mr_net_finalize(void)
{
    while (mr_config.leaks && mr_verbs_poll()) /* so that all finished requests have come back */
        ;
    mr_net_tell_breaks(mr_clock_ns(), true);
    mr_addresses_close();
    mr_peers_free();
    mr_bulk_finalize();
    mr_assemblies_free(&mr_net.assemblies);
    mr_packets_close();
    mr_qps_all_gone();
    mr_verbs_close();
    mr_fabric_close();
    memset(&mr_net, 0, sizeof mr_net);
    memset(&mr_peers, 0, sizeof mr_peers);
}

static void choose_ring_design(const struct mr_launch *launch)
{
    mr_net.rings = mr_kinds_that_are(mr_kinds_set(&mr_peers.kinds), MR_IS_RING);
    if (!mr_ring_design_parse(mr_config.ring_design, &mr_net.ring_design)) {
        mr_net.ring_design = MR_RING_ZEROCOPY;
        if (!launch->rank)
            mr_log(MR_LOG_WARN, "MRMPI_RING_DESIGN=%s: must be basic, piggyback, pipelined or zerocopy; zerocopy it is",
                   mr_config.ring_design);
    }
    mr_net.by_ring = mr_net.rings && mr_net.ring_design != MR_RING_ZEROCOPY;
    mr_config.ring_size = mr_ring_size(mr_net.ring_design, mr_config.ring_size, mr_config.eager_max);
}

static int choose_kinds(const struct mr_launch *launch)
{
    char form[MR_KINDS_TEXT];
    const char *why;

    if (!mr_kinds_parse(mr_config.links, mr_config.reliable, mr_budget_exceeded(launch), &mr_peers.kinds, &why)) {
        mr_log(MR_LOG_ERROR, "%s=%s is not %s", why, !strcmp(why, "MRMPI_LINKS") ? mr_config.links : mr_config.reliable,
               mr_kinds_form(why, form));
        return -EINVAL;
    }
    if (mr_peers.kinds.unsafe && !launch->rank)
        mr_log(MR_LOG_WARN, "MRMPI_RELIABLE=no: a packet that the network loses is lost, and the job will wait for it "
                            "for ever");
    mr_budget_init();
    choose_ring_design(launch);
    if (!strcasecmp(mr_config.ud_rndv, "copy"))
        mr_config.ud_pool = 0;
    else if (strcasecmp(mr_config.ud_rndv, "zcopy") && !launch->rank)
        mr_log(MR_LOG_WARN, "MRMPI_UD_RNDV=%s: must be zcopy or copy; zcopy it is", mr_config.ud_rndv);
    return mr_steer_init();
}

/* Datagrams are as long as the shortest MTU at most, and a packet is no more than so many. */
static void limit_packets(void)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rail_addr *a = &mr_verbs.rail[i].addr;
        size_t most = (size_t)MR_PARTS_MAX * (mr_udp_mtu(a, a) - MR_PART_HEADER) - MR_WIRE_MAX - MR_ACK_WIRE_MAX;

        if (!mr_verbs.datagrams || mr_config.eager_max <= most)
            continue;
        mr_log(MR_LOG_INFO, "MRMPI_EAGER_MAX is %zu: more does not fit into %u datagrams of rail %u", most,
               MR_PARTS_MAX, i);
        mr_config.eager_max = most;
    }
}

static void forget_peer(struct mr_peer *p)
{
    free(mr_net_of(p)->pace);
}

static void peer_established(struct mr_peer *p)
{
    if (p->guest_run)
        mr_stream_railed(p->vc);
    mr_net_renew_short(p);
    mr_net_tell_health(p);
    mr_rings_established(p);
}

static const struct mr_peer_events peer_events = {.lossy = mr_rely_begin,
                                                  .preferred = mr_net_renew_short,
                                                  .established = peer_established,
                                                  .doubted = mr_net_note_doubt,
                                                  .broken = mr_net_note_break,
                                                  .lost = mr_net_renew_short,
                                                  .freed = forget_peer};

unsigned mr_net_devices(void)
{
    return mr_verbs.num_rails ? mr_bulk_least_devices() : 1;
}

bool mr_net_is_registered(const void *buf, size_t len)
{
    return mr_verbs.num_rails && mr_regs_has_some(buf, len);
}

/* The ranks of a job on one node need none, guests have theirs told. */
static int tell_address(const struct mr_launch *launch)
{
    struct mr_address_long ours;

    if (launch->num_nodes > 1)
        return mr_address_publish();
    mr_address_describe(&ours);
    return 0;
}

int mr_net_init(const struct mr_launch *launch)
{
    size_t packet_max;
    int err;

    memset(&mr_net, 0, sizeof mr_net);
    memset(&mr_peers, 0, sizeof mr_peers);
    mr_peers.launch = launch;
    mr_peers.peer_size = sizeof(struct mr_net_peer);
    mr_connect_init(&(struct mr_connect_upcalls){.confirmed = mr_net_confirmed});
    mr_view_init();
    mr_peer_subscribe(&peer_events);
    mr_bulk_init();
    err = choose_kinds(launch);
    if (err)
        return err;
    packet_max = MR_WIRE_MAX + mr_config.eager_max + MR_ACK_WIRE_MAX;
    mr_peers.run = hash_job_id(launch->job_id);
    mr_peers.peer = calloc((size_t)launch->size, sizeof *mr_peers.peer);
    if (!mr_peers.peer)
        return -ENOMEM;
    ask_fabricd(launch);
    mr_assemblies_init(&mr_net.assemblies, packet_max);
    mr_rings_init(mr_net.ring_design, (unsigned)mr_config.ring_slots,
                  MR_WIRE_MAX + mr_config.ring_size + MR_ACK_WIRE_MAX);
    err = mr_verbs_open(&handlers, packet_max, mr_kinds_that_are(mr_kinds_set(&mr_peers.kinds), MR_IS_DATAGRAM),
                        mr_fabric_rejects, NULL);
    if (!err) {
        mr_rely_init();
        mr_rates_take();
        mr_net_take_health();
        mr_bulk_open_memory();
    }
    if (!err)
        err = mr_packets_open(packet_max, mr_verbs.num_rails);
    if (!err)
        err = mr_spread_init();
    if (!err)
        limit_packets();
    if (!err)
        err = tell_address(launch);
    if (err)
        mr_net_finalize();
    else
        mr_net.caps = mr_net_find_caps();
    return err;
}
