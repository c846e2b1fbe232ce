/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Automatic path migration under load: a stream of messages between two HCAs of one host, with two ports each. The
 * cable of the path breaks, or the program requests migration. No message may be lost, doubled or out of order, both
 * ends get the event, and the stream goes on by the other port. For migrate.sh, which counts the lines with "right".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/simfab/host_ends.h"

enum { BYTES = 65536, DEEP = 16, MESSAGES = 200, FAILS_AT = 20, TIMEOUT = 10 /* 4.2 ms */, RETRIES = 2 };

/* An end with both ports, beyond host_ends.h. */
struct side {
    struct hca_end end;
    uint16_t lid[3]; /* by port */
    struct ibv_qp *qp;
    unsigned migrations, failures; /* events of the queue pair */
};

static struct side a, b;

static void must(int err, const char *what)
{
    if (err)
        die("%s: %s", what, strerror(err > 0 ? err : errno));
}

static void side_open(struct side *s, int device)
{
    struct ibv_port_attr port;

    end_open(&s->end, device, DEEP * BYTES);
    for (uint8_t i = 1; i <= 2; i++) {
        must(ibv_query_port(s->end.ctx, i, &port), "ibv_query_port");
        s->lid[i] = port.lid;
    }
    must(fcntl(s->end.ctx->async_fd, F_SETFL, O_NONBLOCK), "fcntl");
}

static void take_events(struct side *s)
{
    struct ibv_async_event e;

    while (!ibv_get_async_event(s->end.ctx, &e)) {
        if (e.event_type == IBV_EVENT_PATH_MIG && e.element.qp == s->qp)
            s->migrations++;
        else if (e.event_type == IBV_EVENT_PATH_MIG_ERR)
            s->failures++;
        ibv_ack_async_event(&e);
    }
}

static void connect_by(struct side *s, const struct side *to, uint8_t port)
{
    struct ibv_qp_attr at = {.qp_state = IBV_QPS_RTR,
                             .path_mtu = s->end.mtu,
                             .dest_qp_num = to->qp->qp_num,
                             .max_dest_rd_atomic = 4,
                             .min_rnr_timer = 1,
                             .ah_attr = {.dlid = to->lid[port], .port_num = port}};

    must(ibv_modify_qp(s->qp, &at,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "ibv_modify_qp to RTR");
    at = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = TIMEOUT, .retry_cnt = RETRIES, .rnr_retry = 7, .max_rd_atomic = 4};
    must(ibv_modify_qp(s->qp, &at,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC),
         "ibv_modify_qp to RTS");
}

/* Loads another path for the queue pair, with migration allowed once the peer has another path, too. */
static void load_path(struct side *s, const struct side *to, uint8_t port)
{
    struct ibv_qp_attr at = {.alt_ah_attr = {.dlid = to->lid[port], .port_num = port},
                             .alt_port_num = port,
                             .alt_timeout = TIMEOUT,
                             .path_mig_state = IBV_MIG_REARM};

    must(ibv_modify_qp(s->qp, &at, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE), "loading a path");
}

static bool is(const struct side *s, enum ibv_mig_state state, uint8_t port)
{
    struct ibv_qp_attr at;
    struct ibv_qp_init_attr init;

    must(ibv_query_qp(s->qp, &at, IBV_QP_PATH_MIG_STATE | IBV_QP_PORT, &init), "ibv_query_qp");
    return at.path_mig_state == state && at.port_num == port;
}

static void pair_make(uint8_t port)
{
    a.qp = end_qp(&a.end, IBV_QPT_RC, false);
    b.qp = end_qp(&b.end, IBV_QPT_RC, false);
    connect_by(&a, &b, port);
    connect_by(&b, &a, port);
    a.migrations = b.migrations = a.failures = b.failures = 0;
}

static void pair_end(void)
{
    take_events(&a); /* a queue pair goes when all of its events are acknowledged */
    take_events(&b);
    must(ibv_destroy_qp(a.qp), "ibv_destroy_qp");
    must(ibv_destroy_qp(b.qp), "ibv_destroy_qp");
}

/* ---- the stream ------------------------------------------------------------------------------------------------ */

static uint32_t sent, received;

static uint8_t *slot(struct side *s, uint32_t n)
{
    return s->end.buf + n % DEEP * BYTES;
}

static void post_receive(uint32_t n)
{
    struct ibv_sge sge = {(uintptr_t)slot(&b, n), BYTES, b.end.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

    must(ibv_post_recv(b.qp, &wr, &bad), "ibv_post_recv");
}

static void post_message(uint32_t n)
{
    struct ibv_sge sge = {(uintptr_t)slot(&a, n), BYTES, a.end.mr->lkey};
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1, .imm_data = n};
    struct ibv_send_wr *bad;

    memset(slot(&a, n), (int)(n % 251 + 1), BYTES);
    must(ibv_post_send(a.qp, &wr, &bad), "ibv_post_send");
}

/* The error in the received data, if any. */
static const char *receive(void)
{
    struct ibv_wc wc;
    int n = ibv_poll_cq(b.end.recv_cq, 1, &wc);
    const uint8_t *p = slot(&b, received);

    if (n <= 0)
        return n ? "ibv_poll_cq" : NULL;
    if (wc.status)
        return ibv_wc_status_str(wc.status);
    if (wc.imm_data != received || wc.byte_len != BYTES)
        return "a message is lost, doubled or out of order";
    if (*p != received % 251 + 1 || memcmp(p, p + 1, BYTES - 1) != 0)
        return "a message's bytes are not those that were sent";
    if (++received + DEEP <= MESSAGES)
        post_receive(received + DEEP - 1);
    return NULL;
}

/*
 * MESSAGES messages, DEEP at a time; happens() is called after FAILS_AT of them. Returns the status of a failed
 * message, or 0.
 */
static enum ibv_wc_status stream(void (*happens)(void), const char **wrong)
{
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    uint32_t done = 0;
    struct ibv_wc wc;

    sent = received = 0;
    for (uint32_t i = 0; i < DEEP; i++)
        post_receive(i);
    while (!*wrong && !status && (done < MESSAGES || received < MESSAGES)) {
        if (sent < MESSAGES && sent - done < DEEP && sent - received < DEEP)
            post_message(sent++);
        if (ibv_poll_cq(a.end.send_cq, 1, &wc) > 0) {
            status = wc.status;
            done++;
        }
        *wrong = receive();
        if (happens && received == FAILS_AT) {
            happens();
            happens = NULL;
        }
    }
    take_events(&a);
    take_events(&b);
    return status;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void command(const char *line)
{
    if (system(line))
        die("%s failed", line);
}

static void senders_cable(void)
{
    command("simfab fault link 'h1 mlx5_0' 1 down after=100us");
}

static void receivers_cable(void)
{
    command("simfab fault link 'h1 mlx5_1' 1 down after=100us");
}

static void cables_other_ports(void)
{
    command("simfab fault link 'h1 mlx5_0' 2 down after=100us");
}

static void ask(struct side *s)
{
    struct ibv_qp_attr at = {.path_mig_state = IBV_MIG_MIGRATED};

    must(ibv_modify_qp(s->qp, &at, IBV_QP_PATH_MIG_STATE), "asking for migration");
}

static void sender_asks(void)
{
    ask(&a);
}

static void receiver_asks(void)
{
    ask(&b);
}

static bool both_active(const struct side *s)
{
    struct ibv_port_attr port;

    for (uint8_t i = 1; i <= 2; i++) {
        must(ibv_query_port(s->end.ctx, i, &port), "ibv_query_port");
        if (port.state != IBV_PORT_ACTIVE)
            return false;
    }
    return true;
}

/* All cables are back. The subnet manager works in real time, and may be slow. */
static void mend(void)
{
    command("simfab fault clear");
    for (int i = 0; i < 600 && !(both_active(&a) && both_active(&b)); i++)
        command("env -u LD_PRELOAD sleep 0.1");
}

/* ---- cases ----------------------------------------------------------------------------------------------------- */

/* From one port to the other while a stream runs. Both sides are armed by the first messages of the stream. */
static const char *migrate(void (*happens)(void), uint8_t from, uint8_t to)
{
    const char *wrong = NULL;
    enum ibv_wc_status status;
    unsigned before[] = {a.migrations, b.migrations};

    load_path(&a, &b, to);
    load_path(&b, &a, to);
    if (!is(&a, IBV_MIG_REARM, from))
        return "not rearmed, or not at that port";
    status = stream(happens, &wrong);
    if (!wrong && status)
        wrong = ibv_wc_status_str(status);
    else if (!wrong && (a.migrations != before[0] + 1 || b.migrations != before[1] + 1 || a.failures || b.failures))
        wrong = "not one event of migration at each end";
    else if (!wrong && (!is(&a, IBV_MIG_MIGRATED, to) || !is(&b, IBV_MIG_MIGRATED, to)))
        wrong = "not migrated, or not to that port";
    return wrong;
}

static void report(const char *what, const char *wrong)
{
    printf("%s: %s\n", what, wrong ? wrong : "right");
}

static void one(const char *what, void (*happens)(void))
{
    pair_make(1);
    report(what, migrate(happens, 1, 2));
    mend();
    pair_end();
}

/* There and back again, on one queue pair; without an event the path stays. */
static void there_and_back(void)
{
    const char *wrong = NULL;

    pair_make(1);
    report("there", migrate(senders_cable, 1, 2));
    mend();
    report("back", migrate(cables_other_ports, 2, 1));
    mend();
    load_path(&a, &b, 2);
    load_path(&b, &a, 2);
    if (stream(NULL, &wrong) || wrong || !is(&a, IBV_MIG_ARMED, 1) || !is(&b, IBV_MIG_ARMED, 1) || a.migrations != 2)
        report("nothing happens", wrong ? wrong : "not armed");
    else
        report("nothing happens", NULL);
    pair_end();
}

/* Without another path the connection breaks with its cable. */
static void no_path(void)
{
    const char *wrong = NULL;
    enum ibv_wc_status status;

    pair_make(1);
    status = stream(senders_cable, &wrong);
    if (!wrong && (status != IBV_WC_RETRY_EXC_ERR || a.migrations))
        wrong = ibv_wc_status_str(status);
    report("no other path", wrong);
    mend();
    pair_end();
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    side_open(&a, 0);
    side_open(&b, 1);
    one("the sender's cable", senders_cable);
    one("the receiver's cable", receivers_cable);
    one("the sender asks", sender_asks);
    one("the receiver asks", receiver_asks);
    there_and_back();
    no_path();
    return 0;
}
