/* SPDX-License-Identifier: BSD-3-Clause */
/* See sms.h. */
#include "fabricd/fabric/sms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESTART_TIMEOUT_MS 60000

static struct opensm opensm_of(const struct conf_opensm *c)
{
    return (struct opensm){
        .config = c->config,
        .pid_file = c->pid_file[0] ? c->pid_file : NULL,
        .restart = c->restart[0] ? c->restart : NULL,
    };
}

/* ---- which ---- */

static bool has_port(const struct sms *s, const struct smp_port *p)
{
    for (unsigned i = 0; i < s->num_ports; i++)
        if (!strcmp(s->port[i].device, p->device) && s->port[i].num == p->num)
            return true;
    return false;
}

/* The port of this guid; else the configured port, or the first. */
static struct smp_port port_of(uint64_t guid, const struct conf *c)
{
    struct smp_port up[SMP_PORTS_MAX], configured = {.num = (int)c->port};
    unsigned n = smp_active_ports(up);
    for (unsigned i = 0; guid && i < n; i++)
        if (up[i].guid == guid)
            return up[i];
    snprintf(configured.device, sizeof(configured.device), "%.*s", (int)sizeof(configured.device) - 1, c->device);
    for (unsigned i = 0; i < n && !configured.guid; i++)
        if ((!*c->device || !strcmp(up[i].device, c->device)) && (!c->port || up[i].num == (int)c->port))
            configured.guid = up[i].guid;
    return configured;
}

/* What the SMPs to a plane need: the option m_key of its opensm, also while opensm does not run. */
struct plane_keys {
    struct smp_key of[SMP_KEYS_MAX];
    unsigned n;
};

static void read_mkey(struct plane_keys *keys, const char *config, const uint64_t *guid, int ports,
                      const struct conf *c)
{
    struct text text = {0};
    char value[64];
    uint64_t key = 0, named = 0;
    if (!text_read_file(&text, config, OPENSM_CONF_MAX)) {
        if (opensm_conf_get(text_str(&text), "m_key", value, sizeof(value)))
            key = strtoull(value, NULL, 0);
        if (ports < 1 && opensm_conf_get(text_str(&text), "guid", value, sizeof(value)))
            named = strtoull(value, NULL, 16);
    }
    text_free(&text);
    for (int k = 0; k < (ports < 1 ? 1 : ports) && key && keys->n < SMP_KEYS_MAX; k++) {
        uint64_t wanted = ports < 1 ? named : guid[k], at = port_of(wanted, c).guid;
        if (!wanted || at == wanted)
            keys->of[keys->n++] = (struct smp_key){at, key};
    }
}

void sms_find(struct sms *s, const struct conf *c)
{
    struct plane_keys keys = {0};
    *s = (struct sms){0};
    for (unsigned i = 0; i < c->num_opensm; i++) {
        uint64_t guid[OPENSM_PORTS_MAX];
        struct opensm o = opensm_of(&c->opensm[i]);
        int running = opensm_running(&o, guid);
        read_mkey(&keys, o.config, guid, running, c);
        for (int k = 0; k < running && s->num_ports < VERIFY_SUBNETS_MAX; k++) {
            struct smp_port p = port_of(guid[k], c);
            if (has_port(s, &p))
                continue;
            s->sm_of_port[s->num_ports] = s->n;
            s->port[s->num_ports++] = p;
        }
        if (running > 0)
            s->sm[s->n++].opensm = o;
    }
    smp_know_keys(keys.of, keys.n);
}

static void sm_free(struct sm *m)
{
    text_free(&m->old_conf);
    text_free(&m->new_conf);
    partition_file_free(&m->old_part);
    partition_file_free(&m->new_part);
}

void sms_free(struct sms *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        sm_free(&s->sm[i]);
    }
    *s = (struct sms){0};
}

const struct opensm *sms_stopped(const struct sms *s, bool undo)
{
    for (unsigned i = 0; i < s->n; i++) {
        const struct sm *m = &s->sm[i];
        bool knows = undo && m->turns && m->turns == opensm_turns(&m->opensm);
        if (!knows && opensm_is_stopped(&m->opensm))
            return &m->opensm;
    }
    return NULL;
}

void sms_note_stopped(struct sms *s)
{
    for (unsigned i = 0; i < s->n; i++)
        s->sm[i].turns = opensm_is_stopped(&s->sm[i].opensm) ? opensm_turns(&s->sm[i].opensm) : 0;
}

uint64_t sms_turns(const struct sms *s)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < s->n; i++)
        sum += opensm_turns(&s->sm[i].opensm);
    return sum;
}

bool sms_ready(const struct sms *s, uint64_t *cpu_ms)
{
    bool ready = false;
    *cpu_ms = 0;
    for (unsigned i = 0; i < s->n; i++) {
        uint64_t ms;
        ready |= opensm_is_ready(&s->sm[i].opensm, &ms);
        *cpu_ms += ms;
    }
    return ready;
}

void sms_name(const struct sms *s, struct text *out)
{
    unsigned n = 0;
    text_printf(out, "opensm");
    for (unsigned i = 0; i < s->n; i++) {
        int pid[OPENSM_PORTS_MAX], found = opensm_pids(&s->sm[i].opensm, pid);
        for (int k = 0; k < found; k++)
            text_printf(out, n++ ? ", %d" : " (pid %d", pid[k]);
    }
    text_printf(out, n ? ")" : ", which does not run any more,");
}

int sms_none(const struct conf *c, struct text *why)
{
    uint64_t guid[OPENSM_PORTS_MAX];
    struct opensm o = opensm_of(&c->opensm[0]);
    int rc = opensm_running(&o, guid);
    rc = rc < 0 ? rc : -ESRCH;
    if (o.pid_file)
        text_printf(why, "opensm does not run here (pid file %s): %s; start it and apply again", o.pid_file,
                    strerror(-rc));
    else
        text_printf(why,
                    "no opensm that reads %s runs here: start it and apply again, or apply on the host where it runs",
                    o.config);
    return rc == -ENOENT ? -ESRCH : rc; /* no pid file: not started */
}

/* ---- files ---- */

int sms_read(struct sms *s, struct text *why)
{
    for (unsigned i = 0; i < s->n; i++) {
        struct sm *m = &s->sm[i];
        text_free(&m->old_conf);
        int rc = text_read_file(&m->old_conf, m->opensm.config, OPENSM_CONF_MAX);
        if (!rc && strlen(text_str(&m->old_conf)) != m->old_conf.len)
            rc = -EILSEQ; /* a zero byte: not a text file, and the rest would be lost */
        if (rc && rc != -ENOENT) {
            text_printf(why, "%s: %s", m->opensm.config, strerror(-rc));
            return rc;
        }
        opensm_partitions(&m->opensm, text_str(&m->old_conf), m->partitions);
        rc = sms_read_partitions(m->partitions, &m->old_part);
        if (rc) {
            text_printf(why, "%s: %s", m->partitions, strerror(-rc));
            return rc;
        }
        partition_file_copy(&m->new_part, &m->old_part);
    }
    return 0;
}

int sms_read_partitions(const char *path, struct partition_file *f)
{
    partition_file_free(f);
    int rc = text_read_file(&f->text, path, PARTITIONS_MAX);
    f->there = !rc;
    if (!rc && strlen(text_str(&f->text)) != f->text.len)
        rc = -EILSEQ;
    return rc == -ENOENT ? 0 : rc;
}

/* Gone also after a loss of power. */
static int remove_synced(const char *path)
{
    char dir[PATH_MAX];
    snprintf(dir, sizeof(dir), "%s", path);
    char *slash = strrchr(dir, '/');
    if (unlink(path))
        return errno == ENOENT ? 0 : -errno;
    if (slash)
        slash[slash == dir] = 0;
    int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

int sms_write_partitions(const char *path, const struct partition_file *f, struct text *why)
{
    if (f->there)
        return sms_write_file(path, &f->text, why);
    int rc = remove_synced(path);
    if (rc)
        text_printf(why, "%s%s: %s", why->len ? "\n" : "", path, strerror(-rc));
    return rc;
}

bool sms_merge_partitions(struct sms *s, const struct policy *p, const struct host_keys *jobs, const char *adapters)
{
    bool differ = false, members = p && policy_has_members(p);
    for (unsigned i = 0; i < s->n; i++) {
        struct sm *m = &s->sm[i];
        partition_file_free(&m->new_part);
        if (members && adapters)
            partitions_merge(&m->old_part, p, jobs, adapters, &m->new_part);
        else if (members)
            partition_file_copy(&m->new_part, &m->old_part);
        else
            partitions_take_section(&m->old_part, NULL, &m->new_part);
        differ = differ || !partition_file_equal(&m->old_part, &m->new_part);
    }
    return differ;
}

bool sms_partitions_free(const struct sms *s, const struct policy *p, struct text *why)
{
    bool good = true;
    for (unsigned i = 0; i < s->n && good; i++)
        good = partitions_free(&s->sm[i].old_part, p, s->sm[i].partitions, why);
    return good;
}

/* Of the first port that it serves; 0: unknown. */
static uint64_t guid_of_config(const struct sms *s, const char *config)
{
    for (unsigned i = 0; i < s->num_ports; i++)
        if (!strcmp(s->sm[s->sm_of_port[i]].opensm.config, config))
            return s->port[i].guid;
    return 0;
}

const struct qos_tables *sms_tables(const struct sms *s, const char *config, const char *conf,
                                    const struct qos_tables *common, const struct plane_tables *planes)
{
    char value[64];
    uint64_t guid = guid_of_config(s, config);
    if (!guid && opensm_conf_get(conf, "guid", value, sizeof(value)))
        guid = strtoull(value, NULL, 16);
    return tables_of_plane(planes, common, guid);
}

static const struct qos_tables *tables_of(const struct sms *s, unsigned i, const struct qos_tables *common,
                                          const struct plane_tables *planes)
{
    return sms_tables(s, s->sm[i].opensm.config, text_str(&s->sm[i].old_conf), common, planes);
}

bool sms_fit_planes(const struct sms *s, const struct qos_tables *common, const struct plane_tables *planes,
                    struct text *why)
{
    for (unsigned i = 0; i < s->num_ports; i++) {
        const struct qos_tables *of_file = tables_of(s, s->sm_of_port[i], common, planes);
        if (tables_equal(of_file, tables_of_plane(planes, common, s->port[i].guid)))
            continue;
        text_printf(why,
                    "%s is read by the opensm of planes whose links can have different lanes (%s port %d is of one): "
                    "give each plane's opensm a file of its own",
                    s->sm[s->sm_of_port[i]].opensm.config, s->port[i].device, s->port[i].num);
        return false;
    }
    return true;
}

bool sms_merge(struct sms *s, const struct qos_tables *common, const struct plane_tables *planes)
{
    bool differ = false;
    for (unsigned i = 0; i < s->n; i++) {
        struct sm *m = &s->sm[i];
        text_free(&m->new_conf);
        opensm_conf_merge(text_str(&m->old_conf), tables_of(s, i, common, planes), &m->new_conf);
        differ = differ || strcmp(text_str(&m->old_conf), text_str(&m->new_conf));
    }
    return differ;
}

void sms_clean(const char *config)
{
    char *path = realpath(config, NULL);
    text_remove_unfinished(path ? path : config);
    free(path);
}

int sms_write_file(const char *config, const struct text *conf, struct text *why)
{
    char *path = realpath(config, NULL); /* opensm reads the file behind a link */
    int rc = text_write_file(path ? path : config, text_str(conf), conf->len);
    if (rc)
        text_printf(why, "%s%s: %s", why->len ? "\n" : "", config, strerror(-rc));
    free(path);
    return rc;
}

static int write_conf(const struct sm *m, const struct text *conf, struct text *why)
{
    return sms_write_file(m->opensm.config, conf, why);
}

/* Written only after a change: without members of classes the file is the administrator's alone. */
static int write_partitions(const struct sm *m, struct text *why)
{
    struct partition_file now = {0};
    int rc = sms_read_partitions(m->partitions, &now);
    if (rc)
        text_printf(why, "%s%s: %s", why->len ? "\n" : "", m->partitions, strerror(-rc));
    else if (!partition_file_equal(&now, &m->new_part))
        rc = sms_write_partitions(m->partitions, &m->new_part, why);
    partition_file_free(&now);
    return rc;
}

int sms_write(const struct sms *s, struct text *why)
{
    int rc = 0;
    for (unsigned i = 0; i < s->n && !rc; i++) {
        rc = write_conf(&s->sm[i], &s->sm[i].new_conf, why);
        if (!rc)
            rc = write_partitions(&s->sm[i], why);
    }
    return rc;
}

void sms_keep(struct sms *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        struct sm *m = &s->sm[i];
        text_free(&m->new_conf);
        text_put(&m->new_conf, text_str(&m->old_conf), m->old_conf.len);
        partition_file_copy(&m->new_part, &m->old_part);
    }
}

int sms_write_all(const struct sms *s, struct text *why)
{
    int rc = 0;
    for (unsigned i = 0; i < s->n; i++) {
        int one = write_conf(&s->sm[i], &s->sm[i].new_conf, why);
        int other = write_partitions(&s->sm[i], why);
        rc = rc ? rc : one ? one : other;
    }
    return rc;
}

int sms_write_tables(const struct sms *s, const struct qos_tables *common, const struct plane_tables *planes,
                     struct text *why)
{
    int rc = 0;
    for (unsigned i = 0; i < s->n && !rc; i++) {
        struct text conf = {0};
        opensm_conf_merge(text_str(&s->sm[i].old_conf), tables_of(s, i, common, planes), &conf);
        rc = write_conf(&s->sm[i], &conf, why);
        text_free(&conf);
    }
    return rc;
}

/* ---- processes ---- */

bool sms_runs(const struct sms *s, const char *config)
{
    int pid[OPENSM_PORTS_MAX];
    for (unsigned i = 0; i < s->n; i++)
        if (!strcmp(s->sm[i].opensm.config, config))
            return opensm_pids(&s->sm[i].opensm, pid) > 0;
    return false;
}

int sms_all_run(const struct sms *s, struct text *why)
{
    int pid[OPENSM_PORTS_MAX];
    for (unsigned i = 0; i < s->n; i++) {
        int n = opensm_pids(&s->sm[i].opensm, pid);
        if (n > 0)
            continue;
        text_printf(why, "the opensm that reads %s does not run any more", s->sm[i].opensm.config);
        return -ESRCH;
    }
    return 0;
}

int sms_reload(const struct sms *s, struct text *why)
{
    int rc = 0;
    for (unsigned i = 0; i < s->n; i++) {
        int one = opensm_reload(&s->sm[i].opensm);
        if (one)
            text_printf(why, "%sthe opensm that reads %s %s (%s): start it and apply again", why->len ? "\n" : "",
                        s->sm[i].opensm.config, one == -ESRCH ? "does not run any more" : "cannot be told",
                        strerror(-one));
        rc = rc ? rc : one;
    }
    return rc;
}

unsigned sms_leave_dead(struct sms *s, struct smp_port dead[VERIFY_SUBNETS_MAX])
{
    unsigned place[CONF_OPENSM_MAX], kept = 0, ports = 0, num_dead = 0;
    for (unsigned i = 0; i < s->n; i++) {
        bool runs = !opensm_is_gone(&s->sm[i].opensm);
        place[i] = runs ? kept : CONF_OPENSM_MAX;
        if (!runs) {
            sm_free(&s->sm[i]);
        } else {
            s->sm[kept++] = s->sm[i];
        }
    }
    for (unsigned i = 0; i < s->num_ports; i++) {
        unsigned to = place[s->sm_of_port[i]];
        if (to == CONF_OPENSM_MAX) {
            dead[num_dead++] = s->port[i];
            continue;
        }
        s->port[ports] = s->port[i];
        s->sm_of_port[ports++] = to;
    }
    s->n = kept;
    s->num_ports = ports;
    return num_dead;
}

bool sms_can_restart(const struct sms *s, struct text *why)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->sm[i].opensm.restart)
            return true; /* one command may restart all of them */
    text_printf(why, "lmc changes only when opensm restarts, and fabricd.yaml has no opensm: restart: command");
    return false;
}

/* The same command once. */
static bool is_first(const struct sms *s, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (s->sm[k].opensm.restart && !strcmp(s->sm[k].opensm.restart, s->sm[i].opensm.restart))
            return false;
    return true;
}

int sms_restart(const struct sms *s, struct text *why)
{
    for (unsigned i = 0; i < s->n; i++) {
        const struct opensm *o = &s->sm[i].opensm;
        if (!o->restart || !is_first(s, i))
            continue;
        int rc = opensm_restart(o, RESTART_TIMEOUT_MS);
        if (!rc)
            continue;
        if (rc > 0)
            text_printf(why, "the restart command failed with status %d: %s", rc, o->restart);
        else
            text_printf(why, "the restart command: %s: %s", strerror(-rc), o->restart);
        return rc > 0 ? -EIO : rc;
    }
    return 0;
}
