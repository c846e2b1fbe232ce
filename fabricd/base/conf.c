/* SPDX-License-Identifier: BSD-3-Clause */
/* fabricd.yaml to struct conf. */
#include "fabricd/base/conf.h"
#include "fabricd/base/ydoc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

void conf_defaults(struct conf *c)
{
    *c = (struct conf){
        .state = "/var/lib/fabricd",
        .socket = CONF_DEFAULT_SOCKET,
        .verify_high_limit = true,
        .verify_timeout_s = 30,
        .verify_interval_s = 10,
        .rails_interval_ms = 1000,
        .clients_per_uid = 1024,
        .clients_max = 4096,
    };
}

bool conf_expand_host(const char *in, char *out, size_t size)
{
    char host[256] = "";
    size_t n = 0;
    gethostname(host, sizeof(host) - 1);
    for (; *in; in++) {
        const char *put = in[0] == '%' && in[1] == 'h' ? host : NULL;
        size_t len = put ? strlen(put) : 1;
        if (n + len >= size)
            return false;
        memcpy(out + n, put ? put : in, len);
        n += len;
        in += put != NULL;
    }
    out[n] = 0;
    return true;
}

/* $NAME and ${NAME}; "$$" is a dollar sign. */
static bool expand(struct ydoc *y, yaml_node_t *at, const char *what, const char *in, struct text *out)
{
    while (*in) {
        size_t plain = strcspn(in, "$");
        text_put(out, in, plain);
        in += plain;
        if (!*in)
            break;
        in++;
        if (*in == '$') {
            text_put(out, in++, 1);
            continue;
        }
        bool braces = *in == '{';
        in += braces;
        size_t n = strspn(in, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        char name[64];
        if (!n || n >= sizeof(name) || (braces && in[n] != '}')) {
            diag_error(y->diag, ydoc_place(at), "%s has a '$' without a name; allowed: $NAME, ${NAME} and $$", what);
            return false;
        }
        memcpy(name, in, n);
        name[n] = 0;
        in += n + braces;
        const char *value = getenv(name);
        if (!value) {
            diag_error(y->diag, ydoc_place(at), "%s uses $%s, which is not set in the environment", what, name);
            return false;
        }
        text_put(out, value, strlen(value));
    }
    return true;
}

static void path_value(struct ydoc *y, yaml_node_t *n, const char *what, char *out, size_t size, bool absolute)
{
    char raw[PATH_MAX];
    struct text t = {0};
    if (!n || !ydoc_string(y, n, what, raw, sizeof(raw)) || !expand(y, n, what, raw, &t)) {
        text_free(&t);
        return;
    }
    if (t.len >= size)
        diag_error(y->diag, ydoc_place(n), "%s has %zu characters; allowed: up to %zu", what, t.len, size - 1);
    else if (absolute && *text_str(&t) != '/')
        diag_error(y->diag, ydoc_place(n), "%s is '%s'; allowed: an absolute path", what, text_str(&t));
    else
        memcpy(out, text_str(&t), t.len + 1);
    text_free(&t);
}

static void parse_one_opensm(struct ydoc *y, yaml_node_t *n, struct conf_opensm *c)
{
    struct ykey k[] = {{"config", true, NULL}, {"pid_file", false, NULL}, {"restart", false, NULL}};
    char pid_file[PATH_MAX] = "";
    ydoc_map(y, n, "opensm", k, COUNT(k));
    path_value(y, k[0].value, "config", c->config, sizeof(c->config), true);
    path_value(y, k[1].value, "pid_file", pid_file, sizeof(pid_file), true);
    if (!conf_expand_host(pid_file, c->pid_file, sizeof(c->pid_file)))
        diag_error(y->diag, ydoc_place(k[1].value), "pid_file is too long with the host's name");
    path_value(y, k[2].value, "restart", c->restart, sizeof(c->restart), false);
}

/* One, or a list of them. */
static void parse_opensm(struct ydoc *y, yaml_node_t *n, struct conf *c)
{
    if (n->type != YAML_SEQUENCE_NODE) {
        c->num_opensm = 1;
        parse_one_opensm(y, n, &c->opensm[0]);
        return;
    }
    yaml_node_t *item;
    while ((item = ydoc_item(y, n, c->num_opensm)) && c->num_opensm < CONF_OPENSM_MAX)
        parse_one_opensm(y, item, &c->opensm[c->num_opensm++]);
    if (item || !c->num_opensm)
        diag_error(y->diag, ydoc_place(item ? item : n), "opensm is a list of 1 to %d", CONF_OPENSM_MAX);
}

static void parse_verify(struct ydoc *y, yaml_node_t *n, struct conf *c)
{
    struct ykey k[] = {{"timeout", false, NULL},
                       {"interval", false, NULL},
                       {"device", false, NULL},
                       {"port", false, NULL},
                       {"high_limit", false, NULL}};
    ydoc_map(y, n, "verify", k, COUNT(k));
    if (k[0].value)
        ydoc_uint(y, k[0].value, "timeout", 1, 3600, &c->verify_timeout_s);
    if (k[1].value)
        ydoc_uint(y, k[1].value, "interval", 0, 86400, &c->verify_interval_s);
    if (k[2].value)
        ydoc_string(y, k[2].value, "device", c->device, sizeof(c->device));
    if (k[3].value)
        ydoc_uint(y, k[3].value, "port", 1, 254, &c->port);
    if (k[4].value)
        ydoc_bool(y, k[4].value, "high_limit", &c->verify_high_limit);
}

static void parse_clients(struct ydoc *y, yaml_node_t *n, struct conf *c)
{
    struct ykey k[] = {{"per_uid", false, NULL}, {"total", false, NULL}};
    ydoc_map(y, n, "clients", k, COUNT(k));
    if (k[0].value)
        ydoc_uint(y, k[0].value, "per_uid", 1, 65536, &c->clients_per_uid);
    if (k[1].value)
        ydoc_uint(y, k[1].value, "total", 1, 65536, &c->clients_max);
}

bool conf_parse(struct conf *c, const char *text, size_t len, struct diag *d)
{
    struct ydoc y;
    unsigned before = d->errors;
    if (!ydoc_load(&y, text, len, d))
        return false;
    struct ykey k[] = {{"policy", false, NULL}, {"state", false, NULL},  {"socket", false, NULL},
                       {"opensm", false, NULL}, {"verify", false, NULL}, {"rails", false, NULL},
                       {"clients", false, NULL}};
    ydoc_map(&y, ydoc_root(&y), "the configuration", k, COUNT(k));
    path_value(&y, k[0].value, "policy", c->policy, sizeof(c->policy), true);
    path_value(&y, k[1].value, "state", c->state, sizeof(c->state), true);
    path_value(&y, k[2].value, "socket", c->socket, sizeof(c->socket), true);
    if (k[3].value)
        parse_opensm(&y, k[3].value, c);
    if (k[4].value)
        parse_verify(&y, k[4].value, c);
    if (k[5].value) {
        struct ykey r[] = {{"interval_ms", false, NULL}};
        if (ydoc_map(&y, k[5].value, "rails", r, COUNT(r)) && r[0].value)
            ydoc_uint(&y, r[0].value, "interval_ms", 10, 3600000, &c->rails_interval_ms);
    }
    if (k[6].value)
        parse_clients(&y, k[6].value, c);
    ydoc_free(&y);
    return d->errors == before;
}
