/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for the inputs of simfab's management side: netlists, models, paths, datagrams, messages of programs
 * on umad connections, and the words of faults and flows. FUZZ_KIND chooses. Besides not crashing: an accepted netlist
 * is a sound fabric, settings of a manager keep the data plane's state within bounds, and numbers in commands are
 * within their ranges. (The attach protocol: fuzz_engine.c.)
 */

#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "simfab/engine/base/text.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fault/fault.h"
#include "simfab/engine/fault/flow.h"
#include "simfab/engine/mgmt/agents.h"
#include "simfab/engine/mgmt/mad.h"
#include "simfab/engine/mgmt/mad_wire.h"
#include "simfab/engine/mgmt/pma.h"
#include "simfab/engine/mgmt/route.h"
#include "simfab/engine/mgmt/samples.h"
#include "simfab/engine/mgmt/sysfs.h"
#include "simfab/engine/mgmt/trap.h"
#include "simfab/proto.h"
#include "simfab/umad_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

__attribute__((noinline)) static void need(bool ok)
{
    if (!ok)
        abort();
}

static void sound(const struct fabric *f)
{
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = f->nodes[i];

        need(n->node_guid && (n->kind != NODE_CA || (n->host && *n->dev_name)));
        for (unsigned k = 0; k <= n->num_ports; k++) {
            const struct port *p = &n->ports[k];

            need(p->guid && p->num == k && p->node == n);
            need(!p->peer || (p->peer->peer == p && p->peer != p && p->peer->cable_up == p->cable_up));
            need(p->op_vls >= 1 && p->op_vls <= p->vl_cap && p->mtu_neighbor >= 1 && p->mtu_neighbor <= p->mtu_cap);
            need(p->state >= PORT_DOWN && p->state <= PORT_ACTIVE && p->lmc <= 7 && p->lid < FABRIC_LIDS);
            need(p->phys_state >= PHYS_SLEEP && p->phys_state <= PHYS_LINKUP);
            need(!k || (p->state == PORT_DOWN) == (p->phys_state != PHYS_LINKUP));
            need(!(p->width_active & (p->width_active - 1)) && port_rate_bps(p) > 0);
        }
    }
}

static void with_file(const uint8_t *data, size_t size, void (*use)(const char *path))
{
    int fd = memfd_create("x", 0);
    char path[64];

    need(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    use(path);
    close(fd);
}

static void netlist(const char *path)
{
    struct parse_error err;
    struct model *m = model_load(NULL, &err);
    struct fabric *f = fabric_load(path, m, &err);

    if (f)
        sound(f);
    else
        need(strchr(err.text, ':') != NULL);
    fabric_free(f);
    model_free(m);
}

static void model(const char *path)
{
    struct parse_error err;
    struct model *m = model_load(path, &err);

    need(m ? m->mtu >= 1 && m->mtu <= 5 && m->vl_cap >= 1 && m->vlarb_cap <= FABRIC_VLARB_MAX && m->width && m->speed
           : strchr(err.text, ':') != NULL);
    model_free(m);
}

static struct port *sampler; /* a port that waits for time to pass */

static void samples_later(struct port *at, uint64_t delay_ps)
{
    sampler = at;
}

static const struct fabric_upcalls fabric_up = {
    .port_changed = mad_port_event, .bad_key = mad_bad_key, .samples_later = samples_later};

static void time_passes(void)
{
    struct port *at = sampler;

    sampler = NULL;
    if (at)
        samples_due(at);
}

/* Records of an operation byte, a length byte, and as many bytes */
static void programs(const uint8_t *data, size_t size)
{
    struct parse_error err;
    struct model *mo = model_load(NULL, &err);
    struct fabric *f = fabric_load("etc/topologies/two-switches-two-paths.net", mo, &err);
    struct mad *m;
    struct sf_hello hello = {.kind = SF_CONN_UMAD, .host = "h1"};
    uint8_t msg[sizeof(struct umad_req) + 2 * UMAD_HDR + 1024], sink[65536];
    int pair[2];

    need(f != NULL);
    f->up = &fabric_up;
    sampler = NULL;
    m = mad_new(f);
    need(m && !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair));
    mad_accept(m, pair[1], &hello);
    while (size >= 2) {
        size_t n = data[1] < size - 2 ? data[1] : size - 2;
        struct umad_req req = {.op = data[0] & 7, .bytes = n};
        struct port *from = &f->nodes[data[0] >> 3 & 3]->ports[data[0] >> 5 & 1];

        if (data[0] >> 6 & 1)
            time_passes();
        if ((data[0] & 7) == 6) { /* a datagram of any shape, from any port */
            uint8_t mad[MAD_BYTES] = {1, 0x81, 1, 2};
            struct mad_packet pkt = {.mad = mad, .bytes = sizeof mad, .slid = 4, .dlid = n > 3 ? data[5] : 0};

            memcpy(mad, data + 2, n);
            pkt.qpn = mad[1] != 1 && mad[1] != 0x81;
            mad_send(from, &pkt);
        } else if ((data[0] & 7) ==
                   7) { /* a question to a performance agent: no manager gave ports a LID to be asked at */
            uint8_t mad[MAD_BYTES] = {0};

            memcpy(mad, data + 2, n);
            pma_answer(&from->node->ports[from->node->kind == NODE_CA], mad);
        } else {
            /* short records stand for whole messages: the rest is zero */
            if (req.op == UMAD_OP_WRITE)
                req.bytes = UMAD_HDR + (n > 200 ? 700 : 256);
            else if (req.op == UMAD_OP_REGISTER)
                req.bytes = sizeof(struct ib_user_mad_reg_req);
            else if (req.op == UMAD_OP_REGISTER2)
                req.bytes = sizeof(struct ib_user_mad_reg_req2);
            memset(msg, 0, sizeof msg);
            memcpy(msg, &req, sizeof req);
            memcpy(msg + sizeof req, data + 2, n < req.bytes ? n : req.bytes);
            send(pair[0], msg, sizeof req + req.bytes, MSG_NOSIGNAL);
        }
        mad_run(m);
        while (recv(pair[0], sink, sizeof sink, MSG_DONTWAIT) > 0)
            ;
        data += 2 + n;
        size -= 2 + n;
    }
    sound(f);
    close(pair[0]);
    mad_run(m);
    mad_free(m);
    fabric_free(f);
    model_free(mo);
}

static void path(const uint8_t *data, size_t size)
{
    static struct fabric *f;
    static struct model *mo;
    struct parse_error err;
    char text[512], body[8192];
    size_t n = size < sizeof text - 1 ? size : sizeof text - 1;

    if (!f) {
        mo = model_load(NULL, &err);
        f = fabric_load("etc/topologies/two-hosts-two-rails.net", mo, &err);
    }
    memcpy(text, data, n);
    text[n] = 0;
    need(sysfs_answer(f->hosts[0], text, body, sizeof body) <= sizeof body);
    need(sysfs_answer(f->hosts[0], text, body, 40) <= 40);
}

static void words(const uint8_t *data, size_t size)
{
    char line[1024];
    size_t n = size < sizeof line - 1 ? size : sizeof line - 1;
    struct text t = {0}, again = {0};
    struct fault_cmd fault;
    struct flow_cmd flow;

    memcpy(line, data, n);
    line[n] = 0;
    if (fault_parse(line, &fault, &t)) {
        need(memchr(fault.name, 0, sizeof fault.name) && fault.port <= FABRIC_PORTS_MAX);
        need(!(fault.has & FAULT_LOSS) || (fault.loss >= 0 && fault.loss <= 1));
        need(!(fault.has & FAULT_CORRUPT) || (fault.corrupt >= 0 && fault.corrupt <= 1));
        for (unsigned i = 1; i < FAULT_DROPS_MAX; i++)
            need(!fault.drop[i] || fault.drop[i] > fault.drop[i - 1]);
        if (fault.verb == FAULT_SET)
            fault_print(&fault, &again);
    } else {
        need(t.used > 0);
    }
    text_free(&t);
    text_free(&again);
    if (flow_parse(line, &flow, &t))
        need(flow.verb != FLOW_ADD ||
             (flow.sl < FABRIC_SLS && flow.size && flow.size <= FLOW_SIZE_MAX && flow.rate_mbps >= 0));
    else
        need(t.used > 0);
    text_free(&t);
}

static void netlist_file(const uint8_t *data, size_t size)
{
    with_file(data, size, netlist);
}

static void model_file(const uint8_t *data, size_t size)
{
    with_file(data, size, model);
}

/* Kinds of input; FUZZ_KIND in the environment chooses. */
static const struct {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
} kinds[] = {
    {"netlist", netlist_file}, {"model", model_file}, {"datagrams", programs}, {"paths", path}, {"words", words},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*run)(const uint8_t *data, size_t size);
    const char *kind = getenv("FUZZ_KIND");

    for (size_t i = 0; !run && kind && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kind, kinds[i].name))
            run = kinds[i].run;
    need(run != NULL);
    run(data, size);
    return 0;
}
