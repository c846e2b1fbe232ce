/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's own settings: fabricd.yaml, described in fabricd(8). Owns its strings; read once at start. */
#ifndef FABRICD_CONF_H
#define FABRICD_CONF_H

#include "fabricd/base/text.h"

#include <limits.h>
#include <stdint.h>

#define CONF_DEFAULT_SOCKET "/run/fabricd/fabricd.sock"
#define CONF_DEFAULT_FILE   "/etc/fabricd/fabricd.yaml"

#define CONF_OPENSM_MAX 8

/* An opensm that may run on this host and is then ours. */
struct conf_opensm {
    char config[PATH_MAX];   /* the file of settings */
    char pid_file[PATH_MAX]; /* or empty */
    char restart[PATH_MAX];  /* a command, or empty */
};

struct conf {
    char policy[PATH_MAX]; /* put in force at start if the state directory has none */
    char state[PATH_MAX];  /* directory */
    char socket[108];      /* %h is the host name */
    unsigned num_opensm;
    struct conf_opensm opensm[CONF_OPENSM_MAX];
    bool verify_high_limit;
    uint32_t verify_timeout_s, verify_interval_s;
    char device[64]; /* empty: the first active port */
    uint32_t port;
    uint32_t rails_interval_ms;
    uint32_t clients_per_uid, clients_max;
};

/* False with errors in d. $NAME and ${NAME} in paths and commands are taken from the environment. */
bool conf_parse(struct conf *c, const char *text, size_t len, struct diag *d);
void conf_defaults(struct conf *c);

/* Replace %h by the host name; false if it does not fit. */
bool conf_expand_host(const char *in, char *out, size_t size);

#endif
