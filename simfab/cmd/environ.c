/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of programs on a simulated host, and `simfab exec`. */
#include "simfab/cmd/environ.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simfab/cmd/cmd.h"
#include "simfab/cmd/paths.h"
#include "simfab/cmd/query.h"
#include "simfab/cmd/say.h"

#if defined(__SANITIZE_ADDRESS__)
static int find_runtime(struct dl_phdr_info *info, size_t size, void *path)
{
    const char *name = strrchr(info->dlpi_name, '/');

    if (!name || strncmp(name, "/libasan.so", 11))
        return 0;
    snprintf(path, PATH_MAX, "%s:", info->dlpi_name);
    return 1;
}

/*
 * A build with the address sanitizer: its runtime must come first in programs built without the sanitizer. Errors of
 * those programs are ignored: leaks, and opensm's free of a datagram after libibumad has written it but before write()
 * returns. Options already in the environment are kept.
 */
static void sanitizer_runtime(const char *dir, char path[PATH_MAX])
{
    const char *options = getenv("ASAN_OPTIONS");
    char supp[PATH_MAX], *with;
    FILE *f;

    path[0] = 0;
    dl_iterate_phdr(find_runtime, path);
    if (options && strstr(options, "suppressions="))
        return;
    snprintf(supp, sizeof supp, "%s/asan.supp", dir);
    f = fopen(supp, "we");
    if (!f)
        return;
    fputs("interceptor_via_lib:libibumad\n", f);
    fclose(f);
    if (asprintf(&with, "detect_leaks=0:suppressions=%s%s%s", supp, options ? ":" : "", options ? options : "") > 0) {
        setenv("ASAN_OPTIONS", with, 1);
        free(with);
    }
}
#else
static void sanitizer_runtime(const char *dir, char path[PATH_MAX])
{
    path[0] = 0;
}
#endif

/* Puts ASSIGNMENT before the variable's present value, which has priority. */
static bool put_option(const char *variable, const char *assignment)
{
    const char *old = getenv(variable);
    char *with;
    bool ok;

    if (old && strstr(old, assignment))
        return true;
    if (asprintf(&with, "%s%s%s", assignment, old && *old ? ":" : "", old ? old : "") < 0)
        return false;
    ok = !setenv(variable, with, 1);
    free(with);
    return ok;
}

/*
 * For programs built with a sanitizer. The address sanitizer must come first, but calls through this library reach the
 * sanitizer nevertheless. The thread sanitizer sees only half of the locks of uninstrumented libraries, through this
 * library, and would report errors.
 */
static bool set_sanitizers(void)
{
    return put_option("ASAN_OPTIONS", "verify_asan_link_order=0") &&
           put_option("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
}

/* LD_PRELOAD with lib in front, other libraries kept, an earlier libsimfab.so dropped. */
static char *preload_list(const char *dir, const char *lib)
{
    const char *old = getenv("LD_PRELOAD");
    char runtime[PATH_MAX], *list;

    sanitizer_runtime(dir, runtime);
    if (old && strstr(old, "/libasan.so"))
        runtime[0] = 0;
    list = malloc(strlen(runtime) + strlen(lib) + (old ? strlen(old) : 0) + 2);
    if (!list)
        return NULL;
    strcpy(list, runtime);
    strcat(list, lib);
    for (const char *p = old ? old : ""; *p;) {
        size_t n = strcspn(p, ": ");
        const char *name = "/libsimfab.so";

        if (n && !(n >= strlen(name) && !strncmp(p + n - strlen(name), name, strlen(name)))) {
            strcat(list, ":");
            strncat(list, p, n);
        }
        p += n + (p[n] != 0);
    }
    return list;
}

bool check_settings(void)
{
    static const char *const known[] = {"", "trap", "patch", "real"};
    const char *tsc = getenv("SIMFAB_TSC");

    for (size_t i = 0; tsc && i < sizeof known / sizeof *known; i++)
        if (!strcmp(tsc, known[i]))
            return true;
    if (tsc)
        complain("SIMFAB_TSC=%s: it may be trap, patch or real, or unset", tsc);
    return !tsc;
}

bool enter_host(const char *dir, const char *host, bool real_clock)
{
    char lib[PATH_MAX], bus[PATH_MAX + 256];
    char *list;
    bool ok;

    if (!find_preload(lib))
        return false;
    list = preload_list(dir, lib);
    snprintf(bus, sizeof bus, "unix:path=%s/bus-%s", dir, host); /* not this machine's bus; the host may have none */
    ok = list && set_sanitizers() && !setenv("LD_PRELOAD", list, 1) && !setenv("SIM_HOST", host, 1) &&
         !setenv("SIMFAB_DIR", dir, 1) && !setenv("DBUS_SYSTEM_BUS_ADDRESS", bus, 1) &&
         (!real_clock || !setenv("SIMFAB_CLOCK", "real", 1));
    if (!ok)
        complain("%s", strerror(errno));
    free(list);
    return ok;
}

/* Turns a list with a name per line into one line: of a long list the beginning, and the number of names. */
static void shorten(char *hosts)
{
    enum { SHOWN = 20 };
    unsigned n = 0;
    char *end = NULL;

    for (char *p = hosts; *p; p++) {
        if (*p != '\n')
            continue;
        if (++n == SHOWN)
            end = p;
        *p = p[1] ? ' ' : 0;
    }
    if (n > 2 * SHOWN) /* for room */
        snprintf(end, strlen(end) + 1, " ... %u in all", n);
}

bool check_host(const char *dir, const char *host)
{
    char *hosts = query_text(dir, "", SF_OP_STATUS, "hosts");
    bool found = false;

    if (!hosts) {
        complain("the engine at %s does not answer: %s", dir, strerror(errno));
        return false;
    }
    for (char *p = hosts; *p && !found;) {
        size_t n = strcspn(p, "\n");

        found = n == strlen(host) && !strncmp(p, host, n);
        p += n + (p[n] == '\n');
    }
    if (!found) {
        shorten(hosts);
        complain("there is no host \"%s\" in this fabric; there are: %s", host, hosts);
    }
    free(hosts);
    return found;
}

/* False for a host killed by a fault, which takes no processes. */
static bool host_is_alive(const char *dir, const char *host)
{
    char words[SF_HOST_MAX + 16], *answer = NULL;
    bool alive = true;

    if (snprintf(words, sizeof words, "alive\n%s", host) < (int)sizeof words)
        answer = query_text(dir, "", SF_OP_FAULT, words);
    if (answer && *answer == '-') {
        complain("%s", answer + 1);
        alive = false;
    }
    free(answer);
    return alive;
}

/* The engine lets others wait for the starting program. A failure here does not prevent the start. */
static void announce(const char *dir, const char *host)
{
    free(query_text(dir, host, SF_OP_COMING, ""));
}

const char usage_exec[] = "usage: simfab exec [--real-clock] HOST -- CMD...\n"
                          "\n"
                          "Becomes CMD on the simulated host HOST: it sees HOST's name, its InfiniBand devices and "
                          "virtual time. Works inside\n"
                          "`simfab run`.\n"
                          "\n"
                          "  --real-clock  CMD keeps the real clock, as daemons want it; the same as SIMFAB_CLOCK=real "
                          "in the environment\n";

int cmd_exec(int argc, char **argv)
{
    bool real_clock = argc >= 1 && !strcmp(argv[0], "--real-clock");
    const char *dir, *host;
    char **command;
    int e;

    argc -= real_clock;
    argv += real_clock;
    host = argc >= 1 && argv[0][0] != '-' ? argv[0] : NULL;
    command = argv + (argc >= 2 && !strcmp(argv[1], "--") ? 2 : 1);
    if (!host || command >= argv + argc) {
        fputs(usage_exec, stderr);
        return EXIT_USAGE;
    }
    dir = fabric_dir();
    if (!dir || !check_settings() || !check_host(dir, host) || !host_is_alive(dir, host) ||
        !enter_host(dir, host, real_clock))
        return EXIT_USAGE;
    announce(dir, host);
    execvp(command[0], command);
    e = errno;
    complain("%s: %s", command[0], strerror(e));
    return e == ENOENT ? EXIT_NOT_FOUND : 126;
}
