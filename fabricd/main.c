/* SPDX-License-Identifier: BSD-3-Clause */
/* fabricd: options, configuration, loop. See fabricd(8). */
#include "fabricd/start.h"
#include "fabricd/dbus/dbus.h"
#include "fabricd/jobs/life.h"
#include "fabricd/base/log.h"
#include "fabricd/requests.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: fabricd [--config FILE] [--socket PATH] [--state DIR]\n"
                            "\n"
                            "Compiles the fabric's quality-of-service policy, has opensm put it in force, verifies\n"
                            "every port, and tells MPI jobs their service levels and rails over a UNIX socket.\n"
                            "\n"
                            "  -c, --config FILE  settings (default " CONF_DEFAULT_FILE ")\n"
                            "  -s, --socket PATH  instead of the configuration's socket; %h is the host's name\n"
                            "  -d, --state DIR    instead of the configuration's state directory\n"
                            "  -t, --test         check the configuration and exit\n"
                            "  -h, --help         show this\n"
                            "  -V, --version      show the version\n"
                            "\n"
                            "SIGHUP puts the configured policy file in force again. fabricctl talks to the daemon.\n";

static bool read_conf(const char *path, bool must, struct conf *c)
{
    struct text t = {0};
    struct diag d = {.file = path};
    conf_defaults(c);
    int rc = text_read_file(&t, path, 1u << 20);
    bool ok = !rc ? conf_parse(c, text_str(&t), t.len, &d) : rc == -ENOENT && !must;
    if (rc && !ok)
        fprintf(stderr, "fabricd: %s: %s\n", path, text_read_error(rc));
    fputs(text_str(&d.out), stderr);
    text_free(&d.out);
    text_free(&t);
    return ok;
}

static bool override(char *to, size_t size, const char *value, const char *what)
{
    if (value && strlen(value) >= size) {
        fprintf(stderr, "fabricd: %s %s: too long (%zu characters at most)\n", what, value, size - 1);
        return false;
    }
    if (value)
        strcpy(to, value);
    return true;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"socket", required_argument, NULL, 's'},
        {"state", required_argument, NULL, 'd'},
        {"test", no_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    const char *config = NULL, *socket = NULL, *state = NULL;
    bool test = false;
    for (int o; (o = getopt_long(argc, argv, "c:s:d:thV", options, NULL)) != -1;) {
        switch (o) {
        case 'c':
            config = optarg;
            break;
        case 's':
            socket = optarg;
            break;
        case 'd':
            state = optarg;
            break;
        case 't':
            test = true;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        case 'V':
            printf("fabricd %s\n", MRMPI_VERSION);
            return 0;
        default:
            fputs("Try 'fabricd --help'.\n", stderr);
            return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "fabricd: unexpected argument '%s'. Try 'fabricd --help'.\n", argv[optind]);
        return 2;
    }
    static struct conf conf;
    static struct daemon daemon;
    if (!read_conf(config ? config : CONF_DEFAULT_FILE, config != NULL, &conf) ||
        !override(conf.socket, sizeof(conf.socket), socket, "socket") ||
        !override(conf.state, sizeof(conf.state), state, "state directory"))
        return 2;
    char expanded[sizeof(conf.state)];
    if (!conf_expand_host(conf.state, expanded, sizeof(expanded))) {
        fprintf(stderr, "fabricd: state directory %s: too long with the host's name\n", conf.state);
        return 2;
    }
    strcpy(conf.state, expanded);
    if (test)
        return 0;
    int rc = daemon_start(&daemon, &conf, &requests_events);
    if (!rc && !(daemon.users = users_start(daemon.event, requests_user_known, &daemon)))
        log_warn("names and groups of users are not known: %s", strerror(errno));
    struct life *life = rc ? NULL : life_start(&daemon);
    struct dbus *dbus = rc ? NULL : dbus_start(&daemon);
    if (!rc)
        rc = sd_event_loop(daemon.event);
    dbus_stop(dbus);
    life_stop(life);
    users_stop(daemon.users);
    daemon.users = NULL;
    daemon_stop(&daemon);
    return rc < 0 ? 1 : rc;
}
