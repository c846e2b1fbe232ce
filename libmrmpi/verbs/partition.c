/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The partitions of a rail. The partitions in the port's table at the opening get queue pairs for datagrams, one set
 * for each partition, because a queue pair receives in one partition only. When the subnet manager changes the table
 * these follow: to another index of the same key. A partition that leaves the table keeps its queue pairs, in case it
 * comes back. The first new partition gets those of the reserve; later ones are used by later jobs.
 */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/port.h"

#define TEXT 256

static void say_keys(const struct mr_rail *rail, enum mr_log_level level, const char *what)
{
    uint16_t key[MR_PARTITIONS_MAX];
    char text[TEXT];

    mr_log(level, "%s port %u: P_Keys %s%s", rail->dev->name, rail->port,
           mr_pkeys_text(key, mr_rail_keys(rail, key), text, sizeof text), what);
}

int mr_partitions_open(struct mr_rail *rail, const struct ibv_port_attr *port)
{
    struct mr_pkey found[MR_PKEYS_MAX];
    uint16_t wish = (uint16_t)mr_config.pkey;
    const char *whose = "MRMPI_PKEY";
    unsigned num;

    if (!mr_pkey_partition(wish) && mr_verbs_up.pkey) {
        wish = mr_verbs_up.pkey(rail->dev->name, (int)rail->port);
        whose = "fabricd's policy";
    }
    rail->wished_pkey = wish;
    num = mr_port_pkeys(rail->dev->ctx, rail->port, port, wish, found);
    if (!num) {
        mr_log(MR_LOG_WARN,
               "%s port %u is not used: its table of P_Keys is empty, so it is in no partition; look at the partitions "
               "of the subnet manager",
               rail->dev->name, rail->port);
        return -ENOKEY;
    }
    for (unsigned i = 0; i < num && i < MR_PKEYS_MAX; i++)
        rail->partition[rail->num_partitions++] =
            (struct mr_rail_partition){.number = mr_pkey_partition(found[i].key), .now = found[i]};
    if (!rail->addr.global)
        rail->partition[rail->num_partitions++] = (struct mr_rail_partition){.now = {.index = found[0].index}};
    say_keys(rail, MR_LOG_INFO, "");
    if (num > MR_PKEYS_MAX)
        mr_log(MR_LOG_WARN,
               "%s port %u is in %u partitions; %u are used, and the one that MRMPI_PKEY or fabricd names is among "
               "them",
               rail->dev->name, rail->port, num, MR_PKEYS_MAX);
    if (wish && !rail->addr.global && mr_pkey_partition(wish) && !mr_rail_partition(rail, wish))
        mr_log(MR_LOG_WARN, "%s port %u is not in the partition of %s, P_Key 0x%04x; it uses others", rail->dev->name,
               rail->port, whose, wish);
    return 0;
}

/* The reserve becomes the first new partition: returns its set, or 0. */
static uint32_t take_new(struct mr_rail *rail, const struct mr_pkey *found, unsigned num)
{
    struct mr_rail_partition *reserve = &rail->partition[rail->num_partitions - 1];
    uint32_t taken = 0;

    for (unsigned i = 0; i < num; i++) {
        if (mr_rail_partition(rail, found[i].key))
            continue;
        mr_log(MR_LOG_INFO, "%s port %u: P_Key 0x%04x is new%s", rail->dev->name, rail->port, found[i].key,
               reserve->number ? "; jobs that start now can use it" : "");
        if (reserve->number)
            continue;
        reserve->number = mr_pkey_partition(found[i].key);
        reserve->late = true;
        taken = 1u << (rail->num_partitions - 1);
    }
    return taken;
}

/* Returns the set with another index now. */
static uint32_t follow_table(struct mr_rail *rail, const struct ibv_port_attr *port, bool *changed)
{
    struct mr_pkey found[MR_PKEYS_MAX];
    unsigned num = mr_port_pkeys(rail->dev->ctx, rail->port, port, rail->wished_pkey, found);
    uint32_t moved;

    num = num < MR_PKEYS_MAX ? num : MR_PKEYS_MAX;
    moved = take_new(rail, found, num);
    for (unsigned i = 0; i < rail->num_partitions; i++) {
        struct mr_rail_partition *p = &rail->partition[i];
        struct mr_pkey now = {.key = 0, .index = p->now.index};

        for (unsigned k = 0; k < num; k++)
            if (mr_pkey_partition(found[k].key) == p->number)
                now = found[k];
        *changed |= now.key != p->now.key || now.index != p->now.index;
        moved |= (uint32_t)(now.index != p->now.index) << i;
        p->now = now;
    }
    if (*changed)
        say_keys(rail, MR_LOG_WARN, " now: the subnet manager has changed them");
    return moved;
}

void mr_partitions_changed(struct mr_rail *rail)
{
    struct ibv_port_attr port;
    bool changed = false;
    uint32_t moved;

    if (rail->dev->fatal || ibv_query_port(rail->dev->ctx, rail->port, &port))
        return;
    moved = follow_table(rail, &port, &changed);
    if (!changed)
        return;
    for (unsigned i = 0; i < rail->num_partitions; i++)
        if (moved >> i & 1) {
            mr_ud_moved(rail, i);
            mr_udp_moved(rail, i);
        }
    mr_verbs_up.rail_keys(rail, moved);
}

void mr_partitions_renew(struct mr_rail *rail, const struct ibv_port_attr *port)
{
    bool changed = false;

    follow_table(rail, port, &changed);
}
