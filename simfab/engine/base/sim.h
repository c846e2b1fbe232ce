/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulation, one per engine, reachable from all code that needs the time, the model or the fabric. */
#ifndef SIMFAB_SIM_H
#define SIMFAB_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/base/event.h"
#include "simfab/proto.h"

struct alarm;
struct clock_upcalls;
struct fabric;
struct faults;
struct flows;
struct hca_upcalls;
struct link_end;
struct mad;
struct model;
struct proc;
struct sched;
struct server;
struct trace_log;

struct sim {
    struct event_queue q;
    struct fabric *fabric;
    struct model *model;
    struct mad *mad;
    struct sched *sched;
    struct faults *faults;
    struct flows *flows;
    const char *dir;    /* the fabric's directory */
    bool no_relay;      /* turns are passed on by the engine alone */
    bool static_subnet; /* no manager: the engine configures the subnet, with this LMC */
    uint8_t static_lmc;
    struct server *server;
    struct trace_log *trace; /* NULL: no trace */
    /* upcalls from a folder to higher folders: link.h, sched.h, hca.h */
    const struct link_end *adapter_end;
    const struct clock_upcalls *clock_up;
    const struct hca_upcalls *hca_up;

    struct proc **procs; /* attached processes: by host, rank, attachment (attach.c) */
    uint32_t num_procs, procs_cap;
    struct proc **proc_by_id; /* NULL where the process is gone: events name processes by number */
    uint32_t next_proc_id, by_id_cap;
    uint32_t running;               /* actors that the engine waits for */
    uint64_t runs;                  /* runs of actors begun, */
    uint64_t vain_runs;             /* of these, looks at memory or the world without a result */
    uint64_t relayed;               /* and runs begun without the engine (relay.c) */
    uint64_t waits, waits_together; /* waits of the engine for actors: all, and while actors are held */
    struct alarm *free_alarms;
    uint32_t alarms_set, due; /* timers and time-outs to come, and time-outs that have come without a return yet */
    bool signalled;           /* a process is to notice the end of a timer before time goes on */
    uint32_t spinners;        /* actors excluded as spinners */
    bool asleep;              /* a running actor was found asleep, and is to be looked at again soon */
    bool known_spinners;      /* an actor has proved to be a spinner */
    bool together;            /* actors are held on the engine's processor: their runs have been short (cpu.h) */
    uint32_t ready_qps;       /* queue pairs waiting for their adapter's turn */
    bool holding;             /* time stands still: the subnet manager deals with a fault (fault.c) */
    uint32_t background;      /* sources of events that do not move time by themselves: flows, faults to come */

    uint64_t epoch_ns, mono_epoch_ns;
    uint64_t started_mono_ns;
    uint64_t stuck_since_ns, stuck_looked_ns; /* real time: since when time waits for running actors; stuck.c */
    uint64_t rests;                           /* times without a running actor */
    uint64_t busy_ns;                         /* real time spent on events */
    uint32_t port_events;                     /* changes of ports, as processes are told */
    uint64_t published_ps;                    /* the time last published to processes */
    uint64_t world_looks, world_ns;           /* looks at threads out of sight (world.h), and real time spent on them */
    uint64_t packets_delivered, packets_dropped;
    uint32_t tsc_count[SF_TSC_WAYS]; /* processes so far, by their handling of the time stamp counter */
    bool stop;
};

static inline uint64_t sim_now(const struct sim *s)
{
    return s->q.now_ps;
}

#endif
