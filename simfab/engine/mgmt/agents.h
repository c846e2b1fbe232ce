/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the management plane: what its files share. mad.c routes, trap.c repeats notices, sma.c and pma.c answer for
 * the simulated hardware, umad.c talks to programs.
 *
 * A struct mad_port hangs on every struct port. Agents (one registration of one open umad each) are known to the port
 * that their umad stands for. A datagram in flight is a struct mad_packet on the sender's stack; receivers copy.
 */
#ifndef SIMFAB_AGENTS_H
#define SIMFAB_AGENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/proto.h"

struct timer {
    struct timer *prev, *next; /* in the order of deadlines; NULL, NULL: not set */
    uint64_t deadline_ns;
    void (*fire)(struct timer *t);
    struct mad *mad;
};

void timer_set(struct mad *m, struct timer *t, uint64_t delay_ms);
void timer_cancel(struct timer *t);
uint64_t timer_now_ns(void); /* of the clock that timers go by */

struct umad_file;
struct agent;
struct trap;

struct mad {
    struct fabric *f;
    int epfd, timerfd;
    struct timer timers; /* list head */
    uint64_t armed_ns;   /* when timerfd expires; 0: never */
    struct umad_in *in;  /* what programs have sent, while it is served */
    struct mad_port *ports;
    struct umad_file *files;
    uint32_t last_agent;     /* the number given last: upper half of transaction ids */
    struct port *going_down; /* by a Set whose answer leaves first, to this physical state */
    enum phys_state going_to;
    uint32_t last_trap; /* the same for traps */
};

struct mad_port {
    struct mad *mad;
    struct port *port;
    struct agent *agents;
    struct umad_file *issm, *issm_waiting;
    struct trap *traps;
    struct timer lease;
    uint8_t last_state;
    uint8_t changes_untold; /* of notice 144, beside the capability mask */
};

static inline struct mad_port *mad_port_of(const struct port *p)
{
    return p->mad;
}

#define MAD_QKEY 0x80010000u /* of every queue pair 1 */

/* A datagram with what a receiver learns from its packet's headers. */
struct mad_packet {
    const uint8_t *mad;
    size_t bytes; /* 256, or more for a multi-segment message that travels whole */
    uint8_t qpn;  /* 0 or 1, of both ends */
    uint16_t slid, dlid;
    uint8_t sl;
    uint16_t pkey; /* of datagrams to queue pair 1 */
    uint32_t qkey;
    bool grh;
    uint8_t sgid[16];
    uint32_t flow_label;
    uint8_t traffic_class, hop_limit;
};

/* ---- mad.c ---------------------------------------------------------------------------------------------------- */

enum mad_result { MAD_SENT, MAD_LOST, MAD_BAD_ROUTE };

/*
 * Carry a datagram from a port to wherever it goes, deliver it there and carry back what the hardware answers.
 * MAD_LOST: nobody got it. MAD_BAD_ROUTE: a directed route that does not begin (or return) at this port.
 */
enum mad_result mad_send(struct port *from, const struct mad_packet *pkt);

bool mad_is_response(const uint8_t *mad);
unsigned mad_header_bytes(uint8_t mgmt_class); /* where a class's data begins: 24, 56 (SA), 64, 40 */
bool mad_class_has_rmpp(uint8_t mgmt_class);

/* ---- sma.c, pma.c: answer a request at port; false: no answer. resp is 256 bytes, a copy of the request --------- */

bool sma_answer(struct port *at, const struct port *ingress, uint16_t slid, uint8_t *resp);
bool pma_answer(struct port *at, uint8_t *resp);
/* What the attributes show of the counter that is at this offset of struct port_count, the widest of them. */
uint64_t pma_shown(const struct port *p, size_t offset);
/* samples.c: p is the port that is asked for, one of those that the agent at at speaks for. */
uint16_t samples_control(struct port *at, const struct port *p, uint8_t *data, bool set);
uint16_t samples_result(const struct port *at, uint8_t *data, bool extended);
void sma_settle(struct mad *m);          /* after the answer has left: do what it could not have outlived */
void sma_lease_expired(struct timer *t); /* the M_Key's lease of the mad_port that holds the timer */

/* ---- trap.c --------------------------------------------------------------------------------------------------- */

#define TRAP_PORT_STATE   128
#define TRAP_INTEGRITY    129
#define TRAP_OVERRUN      130
#define TRAP_WATCHDOG     131
#define TRAP_LOCAL_CHANGE 144
#define TRAP_BAD_MKEY     256
#define TRAP_BAD_PKEY     257
#define TRAP_BAD_QKEY     258
#define TRAP_SWITCH_PKEY  259

/* Tell the subnet manager of the port's node, again and again until it answers. */
void trap_bad_mkey(struct port *p, const uint8_t *smp, uint16_t slid);
/* A TrapRepress has come to port; true if it was for one of its traps. */
bool trap_repress(struct port *p, const uint8_t *smp);
void traps_free(struct mad_port *mp);
uint32_t traps_waiting(const struct mad_port *mp); /* for an answer */

/* ---- umad.c --------------------------------------------------------------------------------------------------- */

struct umad_in *umad_in_new(void);
struct umad_file *umad_accept(struct mad *m, int fd, const struct sf_hello *hello);
void umad_ready(struct umad_file *u, uint32_t events);
void umad_close(struct umad_file *u);

/* Hand a datagram to the agent that wants it; false if none does. */
bool agent_deliver(struct port *at, const struct mad_packet *pkt);

#endif
