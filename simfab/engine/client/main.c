/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simfab-engine: the process of the fabric. Started by the simfab command; serves $SIMFAB_DIR/engine.sock until told to
 * stop, or until the starting process is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/client/events.h"
#include "simfab/engine/client/server.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/sched.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fault/fault.h"
#include "simfab/engine/fault/flow.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/mgmt/mad.h"
#include "simfab/engine/mgmt/subnet.h"
#include "simfab/engine/wire/fc.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/switch.h"
#include "simfab/engine/wire/trace_log.h"

struct options {
    const char *topology, *model, *dir;
    int ready_fd, notice_fd;
    int static_lmc; /* -1: a subnet manager will come */
    bool no_relay;
};

static const char usage[] =
    "usage: simfab-engine --topology FILE [--model FILE] --dir DIR [--ready-fd N] [--notice-fd N]\n"
    "                     [--static-subnet LMC] [--no-relay]\n"
    "The engine of one simulated fabric; started by `simfab run`.\n"
    "--static-subnet configures the subnet at once, with LMC, without a subnet manager.\n"
    "--no-relay has the engine give each thread its turn; it makes no difference to virtual time.\n";

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {{"topology", required_argument, NULL, 't'},
                                          {"model", required_argument, NULL, 'm'},
                                          {"dir", required_argument, NULL, 'd'},
                                          {"ready-fd", required_argument, NULL, 'r'},
                                          {"notice-fd", required_argument, NULL, 'n'},
                                          {"static-subnet", required_argument, NULL, 's'},
                                          {"no-relay", no_argument, NULL, 'l'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int c;

    *o = (struct options){.ready_fd = -1, .notice_fd = -1, .static_lmc = -1};
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 't':
            o->topology = optarg;
            break;
        case 'm':
            o->model = optarg;
            break;
        case 'd':
            o->dir = optarg;
            break;
        case 'r':
            o->ready_fd = atoi(optarg);
            break;
        case 'n':
            o->notice_fd = atoi(optarg);
            break;
        case 's':
            o->static_lmc = atoi(optarg);
            if (o->static_lmc < 0 || o->static_lmc > 7) {
                fputs("simfab-engine: --static-subnet: an LMC is 0 to 7\n", stderr);
                return -1;
            }
            break;
        case 'l':
            o->no_relay = true;
            break;
        case 'h':
            fputs(usage, stdout);
            return 1;
        default:
            fputs(usage, stderr);
            return -1;
        }
    }
    if (!o->topology || !o->dir || optind != argc) {
        fputs(usage, stderr);
        return -1;
    }
    return 0;
}

/* Tells the starter that the engine is ready, or the error; the error also goes to stderr if that is another file. */
static void tell_starter(int ready_fd, const char *text)
{
    if (ready_fd >= 0 && write(ready_fd, text, strlen(text)) < 0)
        engine_log("ready descriptor: %s", strerror(errno));
    if (ready_fd != STDERR_FILENO)
        engine_log("%s", text);
}

/*
 * How long simulated hosts have been up at time 0. The same number on every fabric: a program's clocks begin at the
 * same figures, and a double holds them equally finely (to 0.2 ps for the first quarter of an hour).
 */
#define UPTIME_S 1024ull

static int build_sim(struct sim *s, const struct options *o)
{
    struct parse_error err = {""};

    s->model = model_load(o->model, &err);
    if (s->model)
        s->fabric = fabric_load(o->topology, s->model, &err);
    if (!s->fabric) {
        tell_starter(o->ready_fd, err.text);
        return -1;
    }
    evq_init(&s->q);
    s->epoch_ns = clock_ns(CLOCK_REALTIME) / 1000000000 * 1000000000;
    s->mono_epoch_ns = UPTIME_S * 1000000000;
    s->started_mono_ns = real_ns();
    events_init(s);
    wire_init(s);
    hcas_init(s);
    sched_init(s);
    s->mad = mad_new(s->fabric);
    if (!s->mad) {
        tell_starter(o->ready_fd, "the management plane could not be started");
        return -1;
    }
    s->dir = o->dir;
    s->no_relay = o->no_relay;
    if (o->static_lmc >= 0) {
        s->static_subnet = true;
        s->static_lmc = (uint8_t)o->static_lmc;
        subnet_configure(s->fabric, s->static_lmc);
    }
    if (faults_init(s, &err) || flows_init(s, &err)) {
        tell_starter(o->ready_fd, err.text);
        return -1;
    }
    return 0;
}

static void end_trace(struct sim *s)
{
    struct text t = {0};

    fc_take_all(s);
    if (!trace_log_stop(s, &t))
        engine_log("trace: %s", t.buf);
    text_free(&t);
}

static void tear_down(struct sim *s)
{
    end_trace(s);
    while (s->num_procs)
        server_detach(s->procs[0]);
    faults_fini(s);
    flows_fini(s);
    if (s->mad)
        mad_free(s->mad);
    if (s->fabric) {
        sched_fini(s);
        hcas_fini(s);
        links_fini(s);
        fabric_free(s->fabric);
    }
    evq_fini(&s->q);
    free(s->procs);
    free(s->proc_by_id);
    if (s->model)
        model_free(s->model);
}

int main(int argc, char **argv)
{
    struct options o;
    struct sim sim = {0};
    struct server *server;
    int rc = parse(argc, argv, &o);

    if (rc)
        return rc < 0 ? 2 : 0;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stderr, NULL, _IOLBF, 0);
    if (o.notice_fd > STDERR_FILENO && !fcntl(o.notice_fd, F_SETFD, FD_CLOEXEC))
        engine_notices_to(o.notice_fd);
    if (build_sim(&sim, &o))
        return 2;
    server = server_open(&sim, o.dir);
    if (!server) {
        tell_starter(o.ready_fd, "cannot listen in the fabric's directory");
        return 1;
    }
    tell_starter(o.ready_fd, "ready\n");
    if (o.ready_fd > STDERR_FILENO)
        close(o.ready_fd);
    while (!sim.stop)
        server_turn(server);
    faults_tell_missed(&sim);
    flows_tell_missed(&sim);
    tear_down(&sim);
    server_close(server);
    return 0;
}
