/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `simfab opensm` and its socket in the supervisor, $SIMFAB_DIR/control.sock: a request ("restart", "wait" or "kill",
 * "first" or "standby", a subnet's number or 0 for all), an answer ("ok", or the error).
 */
#include "simfab/cmd/control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "simfab/cmd/cmd.h"
#include "simfab/cmd/opensm.h"
#include "simfab/cmd/paths.h"
#include "simfab/cmd/pump.h"
#include "simfab/cmd/say.h"

enum { SM_STOP_MS = 5000 };

static bool control_address(const char *dir, struct sockaddr_un *addr)
{
    *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    return snprintf(addr->sun_path, sizeof addr->sun_path, "%s/control.sock", dir) < (int)sizeof addr->sun_path;
}

bool control_open(struct run *r)
{
    struct sockaddr_un addr;

    r->control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (r->control < 0 || !control_address(r->dir, &addr) || bind(r->control, (struct sockaddr *)&addr, sizeof addr) ||
        listen(r->control, 8)) {
        complain("%s/control.sock: %s", r->dir, strerror(errno));
        return false;
    }
    return true;
}

static bool restart(struct run *r, struct sm *sm)
{
    sm_stop(r, sm, SM_STOP_MS);
    return sm_start(r, sm);
}

/* True if the request is about this opensm. only: a subnet, 0 for all. */
static bool is_meant(const struct sm *sm, bool standby, unsigned only)
{
    return sm->standby == standby && (!only || sm->subnet == only);
}

/* As in a crash: without notice to the subnet. */
static void kill_sm(struct run *r, struct sm *sm)
{
    sm->expected = true;
    if (sm->pid)
        kill(sm->pid, SIGKILL);
    while (sm->pid && !run_is_over(r))
        run_pump(r, -1, 10);
}

static const char *serve_one(struct run *r, struct sm *sm, const char *verb)
{
    if (!strcmp(verb, "restart") && !restart(r, sm))
        return "opensm could not be started: see the output of simfab run";
    if (!sm->pid)
        return "no opensm is running (simfab opensm restart starts one)";
    if (!strcmp(verb, "kill"))
        kill_sm(r, sm);
    else if (!sm->up && !sm_wait_up(r, sm))
        return "the subnet did not come up: see opensm.log";
    return NULL;
}

/* "restart", "wait", "kill": all; "restart 2": the second subnet's; "restart standby 2": its standby. */
static const char *serve_request(struct run *r, const char *request)
{
    char verb[16] = "", who[16] = "";
    unsigned only = 0, found = 0;
    bool standby;

    if (sscanf(request, "%15s %15s %u", verb, who, &only) < 2 ||
        (strcmp(verb, "restart") && strcmp(verb, "wait") && strcmp(verb, "kill")))
        return "unknown request";
    standby = !strcmp(who, "standby");
    for (unsigned i = 0; i < r->num_sms; i++) {
        const char *wrong = is_meant(&r->sm[i], standby, only) ? serve_one(r, &r->sm[i], verb) : NULL;

        if (wrong)
            return wrong;
        found += is_meant(&r->sm[i], standby, only);
    }
    if (found)
        return "ok";
    return standby ? "no opensm stands by: simfab run --standby-sm HOST starts one" : "there is no such subnet";
}

void control_serve(struct run *r)
{
    char request[64];
    const char *answer;
    ssize_t n;
    int fd = accept4(r->control, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (run_pump(r, fd, 1000) > 0 && (n = recv(fd, request, sizeof request - 1, 0)) > 0) {
        request[n] = 0;
        answer = serve_request(r, request);
        send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    }
    close(fd);
}

static int ask_supervisor(const char *dir, const char *request)
{
    struct sockaddr_un addr;
    char answer[256];
    ssize_t n = -1;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd >= 0 && control_address(dir, &addr) && !connect(fd, (struct sockaddr *)&addr, sizeof addr) &&
        send(fd, request, strlen(request), MSG_NOSIGNAL) > 0)
        n = recv(fd, answer, sizeof answer - 1, 0);
    if (n <= 0) {
        complain("the supervisor of %s does not answer: %s", dir, n == 0 ? "it is ending" : strerror(errno));
        return 1;
    }
    answer[n] = 0;
    if (!strcmp(answer, "ok"))
        return 0;
    complain("%s", answer);
    return 1;
}

/* Prints the process ids written by the supervisor, of all subnets or one. */
static int print_pids(const char *dir, bool standby, unsigned only)
{
    bool found = false;

    for (unsigned i = 1; i <= SMS_MAX; i++) {
        char path[PATH_MAX], number[16] = "";
        int pid;
        FILE *f;

        if (i > 1)
            snprintf(number, sizeof number, "-%u", i);
        snprintf(path, sizeof path, "%s/opensm%s%s/opensm.pid", dir, standby ? "-standby" : "", number);
        f = only && only != i ? NULL : fopen(path, "re");
        if (!f)
            continue;
        if (fscanf(f, "%d", &pid) == 1) {
            printf("%d\n", pid);
            found = true;
        }
        fclose(f);
    }
    if (!found)
        complain("no opensm %s in this fabric (simfab opensm restart%s starts one)",
                 standby ? "stands by" : "is running", standby ? " standby" : "");
    return found ? 0 : 1;
}

int control_command(const char *verb, int argc, char **argv, const char *help)
{
    bool standby = argc && !strcmp(argv[0], "standby");
    char request[64], **rest = argv + standby;
    const char *dir, *number;
    unsigned only;

    argc -= standby;
    number = argc ? rest[0] : "";
    only = (unsigned)strtoul(number, NULL, 10);
    if (argc > 1 || number[strspn(number, "0123456789")] || (argc && (only < 1 || only > SMS_MAX))) {
        fputs(help, stderr);
        return EXIT_USAGE;
    }
    dir = fabric_dir();
    if (!dir)
        return EXIT_USAGE;
    if (!strcmp(verb, "pid"))
        return print_pids(dir, standby, only);
    snprintf(request, sizeof request, "%s %s %u", verb, standby ? "standby" : "first", only);
    return ask_supervisor(dir, request);
}

const char usage_opensm[] =
    "usage: simfab opensm pid|wait|restart [standby] [SUBNET]\n"
    "\n"
    "  pid      print the process id of the opensm that `simfab run` started (kill -HUP makes it read its "
    "configuration)\n"
    "  wait     wait until it has brought the subnet up\n"
    "  restart  stop it, start it again with $SIMFAB_DIR/opensm/opensm.conf, wait until the subnet is up (needed for "
    "lmc)\n"
    "\n"
    "A fabric of several subnets has several: the number picks one, 1 or 2 and so on; without it all are meant. "
    "standby: the one\n"
    "that `simfab run --standby-sm` started.\n";

int cmd_opensm(int argc, char **argv)
{
    if (argc < 1 || (strcmp(argv[0], "pid") && strcmp(argv[0], "wait") && strcmp(argv[0], "restart"))) {
        fputs(usage_opensm, stderr);
        return EXIT_USAGE;
    }
    return control_command(argv[0], argc - 1, argv + 1, usage_opensm);
}
