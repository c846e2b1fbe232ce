/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `simfab opensm` and its ear in the supervisor, $SIMFAB_DIR/control.sock: one request ("restart" or "wait", and a
 * subnet's number if not for all), one answer ("ok", or what is wrong).
 */
#include "simfab/cmd/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

/* "restart", "wait": all; "restart 2": the second's. */
static const char *serve_request(struct run *r, const char *request)
{
    char verb[16] = "";
    unsigned only = 0;

    if (sscanf(request, "%15s %u", verb, &only) < 1 || (strcmp(verb, "restart") && strcmp(verb, "wait")))
        return "unknown request";
    if (only > r->num_sms)
        return "there is no such subnet";
    for (unsigned i = 0; i < r->num_sms; i++)
        if ((!only || i == only - 1) && !strcmp(verb, "restart") && !restart(r, &r->sm[i]))
            return "opensm could not be started: see the output of simfab run";
    for (unsigned i = 0; i < r->num_sms; i++) {
        if (only && i != only - 1)
            continue;
        if (!r->sm[i].pid)
            return "no opensm is running (simfab opensm restart starts one)";
        if (!r->sm[i].up && !sm_wait_up(r, &r->sm[i]))
            return "the subnet did not come up: see $SIMFAB_DIR/opensm/opensm.log";
    }
    return "ok";
}

void control_serve(struct run *r)
{
    char request[32];
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

/* The process ids that the supervisor has written; those of all subnets, or of one. */
static int print_pids(const char *dir, unsigned only)
{
    bool found = false;

    for (unsigned i = 1; i <= SMS_MAX; i++) {
        char path[PATH_MAX], number[16] = "";
        int pid;
        FILE *f;

        if (i > 1)
            snprintf(number, sizeof number, "-%u", i);
        snprintf(path, sizeof path, "%s/opensm%s/opensm.pid", dir, number);
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
        complain("no opensm is running in this fabric (simfab opensm restart starts one)");
    return found ? 0 : 1;
}

int cmd_opensm(int argc, char **argv)
{
    const char *dir, *end = argc == 2 ? argv[1] + strspn(argv[1], "0123456789") : "";
    char request[32];

    if (argc < 1 || argc > 2 || (strcmp(argv[0], "pid") && strcmp(argv[0], "wait") && strcmp(argv[0], "restart")) ||
        *end || (argc == 2 && (atoi(argv[1]) < 1 || atoi(argv[1]) > SMS_MAX))) {
        fputs(usage_opensm, stderr);
        return EXIT_USAGE;
    }
    dir = fabric_dir();
    if (!dir)
        return EXIT_USAGE;
    if (!strcmp(argv[0], "pid"))
        return print_pids(dir, argc == 2 ? (unsigned)atoi(argv[1]) : 0);
    snprintf(request, sizeof request, "%s %s", argv[0], argc == 2 ? argv[1] : "");
    return ask_supervisor(dir, request);
}
