/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Link errors beyond bad luck, as detected by ports: too many bad packets, receive buffers that overrun despite credit,
 * missing flow control. The port reports the error to the manager (traps 129, 130, 131) and lets the link recover,
 * which takes a moment in both directions (specification, chapter 7.12).
 */
#include "simfab/engine/wire/link_error.h"

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/wire/fc.h"
#include "simfab/engine/wire/link.h"

#define RECOVERY_PS      2000000ull /* duration of a recovery */
#define WATCHDOG_SYMBOLS 400000u    /* limit without an update (chapter 7.9) */

static void recover(struct link_dir *l)
{
    struct link_dir *dirs[2] = {l, l->to->out};
    uint64_t until = sim_now(l->sim) + RECOVERY_PS;

    if (l->recovered_ps == until)
        return; /* both ends have seen the error */
    for (int i = 0; i < 2; i++) {
        dirs[i]->recovered_ps = until;
        dirs[i]->from->count.link_recovers++;
        dirs[i]->busy_until_ps = max_u64(dirs[i]->busy_until_ps, until);
    }
}

/*
 * A packet's checksum was wrong. Ports forgive as many of these as good packets come between, and LocalPhyErrors more.
 */
void link_bad_packet(struct link_dir *l)
{
    struct port *p = l->to;

    p->count.symbol_errors++;
    p->count.rcv_errors++;
    p->count.rcv_physical++;
    if (++p->physical_errors <= p->local_phys_errors)
        return;
    p->physical_errors = 0;
    p->count.local_integrity++;
    recover(l);
    port_notify(p, PORT_EV_INTEGRITY);
}

/* A packet found no room. The error is excessive after OverrunErrors consecutive periods of flow control. */
void link_no_room(struct link_dir *l)
{
    struct port *p = l->to;
    uint64_t period = sim_now(l->sim) / fc_period_ps(l) + 1;

    p->count.rcv_errors++;
    p->count.rcv_overrun++;
    if (period == l->overrun_period)
        return;
    l->overrun_run = period == l->overrun_period + 1 ? l->overrun_run + 1 : 1;
    l->overrun_period = period;
    if (l->overrun_run < p->overrun_errors)
        return;
    l->overrun_run = 0;
    p->count.excess_overrun++;
    recover(l);
    port_notify(p, PORT_EV_OVERRUN);
}

static void start_watchdog(struct link_dir *l);

/* The sender of l has heard nothing of its credits for too long. */
static void watchdog(void *obj, uint64_t watch_no)
{
    struct link_dir *l = obj;

    if (!l->fc_off || watch_no != l->fc_watch)
        return; /* flow control has come back meanwhile */
    l->sim->background--;
    if (l->from->state >= PORT_INIT) {
        recover(l);
        port_notify(l->from, PORT_EV_WATCHDOG);
    }
    start_watchdog(l);
}

static void start_watchdog(struct link_dir *l)
{
    uint64_t limit = transfer_ps((uint64_t)WATCHDOG_SYMBOLS * port_lanes(l->from), port_rate_bps(l->from));

    l->sim->background++;
    evq_push_quiet(&l->sim->q, sim_now(l->sim) + limit, watchdog, l, l->fc_watch);
}

void link_flow_control(struct link_dir *l, bool off)
{
    if (l->fc_off == off)
        return;
    l->fc_off = off;
    l->fc_watch++;
    if (off) {
        start_watchdog(l);
        return;
    }
    l->sim->background--;
    for (unsigned vl = 0; vl < FABRIC_VLS; vl++)
        fc_freed(l, vl, 0);
}
