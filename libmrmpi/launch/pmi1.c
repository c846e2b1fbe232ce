/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-1: a line asked, a line answered. Keys live in a named space, the job's. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/launch/backend.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/launch/pmi.h"

static int pmi1_value(struct mr_pmi *pmi, const char *name, char *value, size_t cap)
{
    return mr_pmi1_value(pmi->message, name, value, cap);
}

/* Sends pmi->message, of len characters. */
static int send_line(struct mr_pmi *pmi, int len)
{
    if (len < 0 || len > MR_PMI_MESSAGE_MAX)
        return -EMSGSIZE;
    return mr_pmi_send(pmi, pmi->message, (size_t)len);
}

static bool is_pmi1_answer(struct mr_pmi *pmi, const char *command)
{
    char text[64];

    return !pmi1_value(pmi, "cmd", text, sizeof(text)) && !strcmp(text, command);
}

/* Sends pmi->message and reads the answer, whose command must be the wanted one. */
static int ask_pmi1(struct mr_pmi *pmi, int len, const char *asked, const char *wanted)
{
    int err = send_line(pmi, len);

    if (!err)
        err = mr_pmi_read_line(pmi, MR_PMI_SOON);
    if (err)
        return err;
    return is_pmi1_answer(pmi, wanted) ? 0 : mr_pmi_nonsense(pmi, asked);
}

static int __attribute__((format(printf, 2, 3))) write_line(struct mr_pmi *pmi, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int len = vsnprintf(pmi->message, sizeof(pmi->message), fmt, ap);
    va_end(ap);
    return len;
}

/* Where an answer has no rc all is well. */
static bool pmi1_refused(struct mr_pmi *pmi)
{
    char text[32];

    return !pmi1_value(pmi, "rc", text, sizeof(text)) && strcmp(text, "0") != 0;
}

static int read_max(struct mr_pmi *pmi, const char *name, long long min, size_t *out)
{
    char text[32];
    long long n;

    if (pmi1_value(pmi, name, text, sizeof(text)) || !mr_pmi_number(text, min, INT32_MAX, &n))
        return mr_pmi_nonsense(pmi, "get_maxes");
    *out = (size_t)n;
    return 0;
}

/* Clients of PMI-1 always ask, so launchers have an answer. An answer without a number does not stop a job. */
static int learn_pmi1_appnum(struct mr_pmi *pmi)
{
    char text[32];
    long long n;
    int err = send_line(pmi, write_line(pmi, "cmd=get_appnum\n"));

    if (!err)
        err = mr_pmi_read_line(pmi, MR_PMI_SOON);
    pmi->appnum = -1;
    if (!err && !pmi1_value(pmi, "appnum", text, sizeof(text)) && mr_pmi_number(text, 0, INT32_MAX, &n))
        pmi->appnum = (int)n;
    return err;
}

static int pmi1_begin(struct mr_pmi *pmi)
{
    int err = ask_pmi1(pmi, write_line(pmi, "cmd=get_maxes\n"), "get_maxes", "maxes");

    if (!err)
        err = read_max(pmi, "keylen_max", 32, &pmi->key_max);
    if (!err)
        err = read_max(pmi, "vallen_max", 64, &pmi->value_max);
    if (!err)
        err = ask_pmi1(pmi, write_line(pmi, "cmd=get_my_kvsname\n"), "get_my_kvsname", "my_kvsname");
    if (!err && (pmi1_refused(pmi) || pmi1_value(pmi, "kvsname", pmi->job, sizeof(pmi->job)) || !*pmi->job))
        err = mr_pmi_nonsense(pmi, "get_my_kvsname");
    if (!err)
        err = learn_pmi1_appnum(pmi);
    return err;
}

static int pmi1_put(struct mr_pmi *pmi, const char *key, const char *value)
{
    int err = ask_pmi1(pmi, write_line(pmi, "cmd=put kvsname=%s key=%s value=%s\n", pmi->job, key, value), "put",
                       "put_result");

    return !err && pmi1_refused(pmi) ? mr_pmi_nonsense(pmi, "put") : err;
}

static int pmi1_fence_ask(struct mr_pmi *pmi)
{
    return send_line(pmi, write_line(pmi, "cmd=barrier_in\n"));
}

/* Hydra's proxies hand questions for this key to mpiexec, and answer others themselves. */
static int pmi1_fence_question(struct mr_pmi *pmi)
{
    return send_line(pmi, write_line(pmi, "cmd=get kvsname=%s key=PMI_dead_processes\n", pmi->job));
}

static int pmi1_fence_answer(struct mr_pmi *pmi, enum mr_pmi_wait wait)
{
    int err = mr_pmi_read_line(pmi, wait);

    if (err)
        return err;
    if (pmi->questioned && is_pmi1_answer(pmi, "get_result"))
        return MR_PMI_FENCE_LIFE;
    return is_pmi1_answer(pmi, "barrier_out") && !pmi1_refused(pmi) ? MR_PMI_FENCE_OVER
                                                                    : mr_pmi_nonsense(pmi, "barrier_in");
}

static int pmi1_get(struct mr_pmi *pmi, const char *key, char *value, size_t cap)
{
    int err = ask_pmi1(pmi, write_line(pmi, "cmd=get kvsname=%s key=%s\n", pmi->job, key), "get", "get_result");

    if (err)
        return err;
    if (pmi1_refused(pmi))
        return -ENOENT;
    return pmi1_value(pmi, "value", value, cap) ? mr_pmi_nonsense(pmi, "get") : 0;
}

static int pmi1_mapping(struct mr_pmi *pmi, char *value, size_t cap)
{
    return pmi1_get(pmi, "PMI_process_mapping", value, cap);
}

static int pmi1_universe(struct mr_pmi *pmi)
{
    char text[32];
    long long n;
    int err = ask_pmi1(pmi, write_line(pmi, "cmd=get_universe_size\n"), "get_universe_size", "universe_size");

    if (err)
        return err;
    return pmi1_refused(pmi) || pmi1_value(pmi, "size", text, sizeof(text)) || !mr_pmi_number(text, 0, INT32_MAX, &n)
               ? 0
               : (int)n;
}

/* ---- starting a job ---- */

/* A line of an order; a line break in the text would make two of it. */
static bool put_line(FILE *out, const char *name, int number, const char *text)
{
    if (number < 0)
        fprintf(out, "%s=%s\n", name, text);
    else
        fprintf(out, "%s%d=%s\n", name, number, text);
    return !strchr(text, '\n');
}

static bool put_infos(FILE *out, const struct mr_launch_part *p)
{
    const char *const info[][2] = {{"wdir", p->wdir},
                                   {"host", p->host},
                                   {"host", p->add_host},
                                   {"hostfile", p->hostfile},
                                   {"hostfile", p->add_hostfile}};
    bool fine = true;
    int n = 0;

    for (size_t i = 0; i < sizeof(info) / sizeof(info[0]); i++) {
        if (!info[i][1])
            continue;
        put_line(out, "info_key_", n, info[i][0]);
        fine &= put_line(out, "info_val_", n++, info[i][1]);
    }
    fprintf(out, "info_num=%d\n", n);
    return fine;
}

/* Hydra knows no variables of an order: env(1) sets them. */
static bool put_command(FILE *out, const struct mr_launch_part *p)
{
    char path[4096];
    const char *program = mr_launch_program(p, path, sizeof(path));
    bool fine = put_line(out, "execname", -1, p->env ? "/usr/bin/env" : program);
    int n = 0;

    for (const char *line = p->env; line && *(line += strspn(line, "\n")); line += strcspn(line, "\n"))
        fprintf(out, "arg%d=%.*s\n", ++n, (int)strcspn(line, "\n"), line);
    if (p->env)
        fine &= put_line(out, "arg", ++n, program);
    for (char *const *a = p->argv; a && *a; a++)
        fine &= put_line(out, "arg", ++n, *a);
    fprintf(out, "argcnt=%d\n", n);
    return fine;
}

static char *write_order(const struct mr_launch_order *order, bool *fine)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    *fine = true;
    for (int i = 0; out && i < order->parts; i++) {
        const struct mr_launch_part *p = &order->part[i];

        fprintf(out, "mcmd=spawn\nnprocs=%d\n", mr_launch_most(p));
        *fine &= put_command(out, p);
        fprintf(out, "totspawns=%d\nspawnssofar=%d\npreput_num=1\npreput_key_0=%s\npreput_val_0=%s\n", order->parts,
                i + 1, MR_PMI_PARENT_KEY, order->parent);
        *fine &= put_infos(out, p);
        fprintf(out, "endcmd\n");
    }
    if (!out || fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

static int pmi1_start(struct mr_pmi *pmi, const struct mr_launch_order *order)
{
    bool fine;
    int err;
    char *text;

    if ((err = mr_launch_check_programs(order)))
        return err;
    text = write_order(order, &fine);
    if (!text)
        return -ENOMEM;
    if (!fine)
        err = mr_launch_fail(-EINVAL, "%s (%s) takes no line breaks in the words of a command", pmi->launcher,
                             pmi->protocol->name);
    else if (strlen(text) > MR_PMI_MESSAGE_MAX / 2)
        err = mr_launch_fail(-EINVAL, "%s (%s) takes no command of more than %d characters", pmi->launcher,
                             pmi->protocol->name, MR_PMI_MESSAGE_MAX / 2);
    if (!err)
        err = mr_pmi_send(pmi, text, strlen(text));
    free(text);
    if (!err)
        err = mr_pmi_read_line(pmi, MR_PMI_SOON);
    if (err)
        return err;
    if (!is_pmi1_answer(pmi, "spawn_result"))
        return mr_pmi_nonsense(pmi, "spawn");
    return pmi1_refused(pmi)
               ? mr_launch_fail(-EINVAL, "%s (%s) refuses to start the processes", pmi->launcher, pmi->protocol->name)
               : 0;
}

static int pmi1_abort(struct mr_pmi *pmi, int code, const char *why)
{
    return send_line(pmi, write_line(pmi, "cmd=abort exitcode=%d\n", code));
}

static int pmi1_finish(struct mr_pmi *pmi)
{
    return ask_pmi1(pmi, write_line(pmi, "cmd=finalize\n"), "finalize", "finalize_ack");
}

const struct mr_pmi_protocol mr_pmi_protocol1 = {
    .name = "PMI-1",
    .version = 1,
    .subversion = 1,
    .begin = pmi1_begin,
    .put = pmi1_put,
    .fence_ask = pmi1_fence_ask,
    .fence_question = pmi1_fence_question,
    .fence_answer = pmi1_fence_answer,
    .get = pmi1_get,
    .mapping = pmi1_mapping,
    .universe = pmi1_universe,
    .start = pmi1_start,
    .abort = pmi1_abort,
    .finish = pmi1_finish,
};
