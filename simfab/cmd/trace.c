/* SPDX-License-Identifier: BSD-3-Clause */
/* `simfab trace`: opens the file here, as whoever asks, and gives the engine the descriptor. */
#include "simfab/cmd/trace.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simfab/cmd/cmd.h"
#include "simfab/cmd/paths.h"
#include "simfab/cmd/query.h"
#include "simfab/cmd/say.h"

const char usage_trace[] =
    "usage: simfab trace start FILE [--links PATTERN] [--limit BYTES]\n"
    "       simfab trace stop\n"
    "\n"
    "Writes what happens on the links into FILE until it is stopped or the fabric ends: packets with service level, "
    "queue pairs\n"
    "and size, credits and queues of each lane, waits for credits, lost packets with the reason, and port states, at "
    "virtual\n"
    "times. It is trace-event JSON: ui.perfetto.dev and chrome://tracing show it.\n"
    "\n"
    "  --links PATTERN  only links one end of which is called so, as a shell pattern: \"h1 *\", \"leaf? 3\"; the names "
    "are those of\n"
    "                   simfab status\n"
    "  --limit BYTES    the most that the file may have, with k, M or G; default: 1G. What comes later is left out, "
    "and "
    "counted\n"
    "\n"
    "If the engine is killed the closing bracket is missing; the viewers take the file nevertheless.\n";

int trace_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    struct stat st;

    if (fd < 0 || fstat(fd, &st)) {
        complain("%s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        complain("%s: a trace wants a regular file: the whole fabric would wait for whoever reads it", path);
    } else {
        return fd; /* the engine empties the file, which may be the file of the running trace */
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

bool trace_begin(const char *dir, const char *path, int fd, uint64_t limit, const char *links)
{
    char order[256], *text;

    if (snprintf(order, sizeof order, "start %llu %s", (unsigned long long)limit, links) >= 160) {
        complain("--links %s: too long", links);
        return false;
    }
    text = query_with_fd(dir, "", SF_OP_TRACE, order, fd);
    if (!text && errno == EBUSY)
        complain("a trace is being written already: simfab trace stop ends it");
    else if (!text && errno == ENXIO)
        complain("no link is called \"%s\": simfab status tells their names, such as \"h1 mlx5_0 1\"", links);
    else if (!text)
        complain("%s: the engine does not take it: %s", path, strerror(errno));
    free(text);
    return text != NULL;
}

static bool parse_limit(const char *text, uint64_t *limit)
{
    static const char units[] = "kMG";
    char *end;
    unsigned long long v;
    const char *unit;

    errno = 0;
    v = strtoull(text, &end, 10);
    unit = *end ? strchr(units, *end) : NULL;
    if (!isdigit((unsigned char)*text) || errno || (*end && (!unit || end[1])) || v > UINT64_MAX >> 34) {
        complain("--limit %s: a number of bytes is wanted, such as 500M", text);
        return false;
    }
    if (unit)
        v <<= 10 * (unit - units + 1);
    if (v < 4096) {
        complain("--limit %s: at least 4096 bytes", text);
        return false;
    }
    *limit = v;
    return true;
}

static int start(const char *path, uint64_t limit, const char *links)
{
    const char *dir = fabric_dir();
    int fd = dir ? trace_open(path) : -1;
    bool ok;

    if (fd < 0)
        return EXIT_USAGE;
    ok = trace_begin(dir, path, fd, limit, links);
    close(fd);
    return ok ? 0 : 1;
}

static int stop(void)
{
    const char *dir = fabric_dir();
    char *text = dir ? query_text(dir, "", SF_OP_TRACE, "stop") : NULL;

    if (!dir)
        return EXIT_USAGE;
    if (!text) {
        complain(errno == ESRCH ? "no trace is being written" : "the engine at %s does not answer: %s", dir,
                 strerror(errno));
        return 1;
    }
    fputs(text, stdout);
    free(text);
    return fflush(stdout) ? 1 : 0;
}

/* args is the command line with room for a program name in front. */
static int run_trace(int argc, char **args)
{
    static const struct option longs[] = {
        {"links", required_argument, NULL, 'l'}, {"limit", required_argument, NULL, 'b'}, {NULL, 0, NULL, 0}};
    uint64_t limit = TRACE_LIMIT_DEFAULT;
    const char *links = "";
    int c;

    args[0] = "simfab trace"; /* a name for getopt */
    while ((c = getopt_long(argc, args, "", longs, NULL)) != -1) {
        if (c == 'l')
            links = optarg;
        else if (c != 'b' || !parse_limit(optarg, &limit))
            return EXIT_USAGE;
    }
    if (optind + 2 == argc && !strcmp(args[optind], "start"))
        return start(args[optind + 1], limit, links);
    if (optind + 1 == argc && argc == 2 && !strcmp(args[optind], "stop"))
        return stop();
    fputs(usage_trace, stderr);
    return EXIT_USAGE;
}

int cmd_trace(int argc, char **argv)
{
    char **args = calloc((size_t)argc + 2, sizeof *args);
    int status = 1;

    if (args) {
        memcpy(args + 1, argv, (size_t)argc * sizeof *argv);
        status = run_trace(argc + 1, args);
    }
    free(args);
    return status;
}
