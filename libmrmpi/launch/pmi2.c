/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-2: a frame asked, a frame answered. A fence publishes all values put before. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/backend.h"
#include "libmrmpi/launch/pmi.h"

static int pmi2_value(struct mr_pmi *pmi, const char *name, char *value, size_t cap)
{
    return mr_pmi2_value(pmi->message, name, value, cap);
}

/* One write for the header and the text, because some launchers read them so. */
static int __attribute__((format(printf, 2, 3))) send_frame(struct mr_pmi *pmi, const char *fmt, ...)
{
    char header[MR_PMI_FRAME_HEADER + 1];
    va_list ap;

    va_start(ap, fmt);
    int len = vsnprintf(pmi->message + MR_PMI_FRAME_HEADER, sizeof(pmi->message) - MR_PMI_FRAME_HEADER, fmt, ap);
    va_end(ap);
    if (len < 0 || len > MR_PMI_MESSAGE_MAX - MR_PMI_FRAME_HEADER)
        return -EMSGSIZE;
    snprintf(header, sizeof(header), "%*d", MR_PMI_FRAME_HEADER, len);
    memcpy(pmi->message, header, MR_PMI_FRAME_HEADER);
    return mr_pmi_send(pmi, pmi->message, MR_PMI_FRAME_HEADER + (size_t)len);
}

/* The answer to a command is called COMMAND-response and says rc=0. */
static bool is_pmi2_answer(struct mr_pmi *pmi, const char *command)
{
    char text[64];
    size_t len = strlen(command);

    return !pmi2_value(pmi, "cmd", text, sizeof(text)) && !strncmp(text, command, len) &&
           !strcmp(text + len, "-response");
}

static int check_pmi2_answer(struct mr_pmi *pmi, const char *command)
{
    char text[64];

    if (!is_pmi2_answer(pmi, command) || pmi2_value(pmi, "rc", text, sizeof(text)) || strcmp(text, "0") != 0)
        return mr_pmi_nonsense(pmi, command);
    return 0;
}

static int read_pmi2_answer(struct mr_pmi *pmi, const char *command)
{
    int err = mr_pmi_read_frame(pmi, MR_PMI_SOON);

    return err ? err : check_pmi2_answer(pmi, command);
}

static int read_pmi2_number(struct mr_pmi *pmi, const char *name, long long min, int *out)
{
    char text[32];
    long long n;

    if (pmi2_value(pmi, name, text, sizeof(text)) || !mr_pmi_number(text, min, MR_PMI_RANKS_MAX, &n))
        return mr_pmi_nonsense(pmi, "fullinit");
    *out = (int)n;
    return 0;
}

/* Of the answer to fullinit. */
static int read_appnum(struct mr_pmi *pmi)
{
    char text[32];
    long long n;

    return pmi2_value(pmi, "appnum", text, sizeof(text)) || !mr_pmi_number(text, 0, INT32_MAX, &n) ? -1 : (int)n;
}

static int pmi2_begin(struct mr_pmi *pmi)
{
    const char *job = mr_config_foreign("PMI_JOBID"); /* required by Slurm */
    char escaped[MR_PMI_NAME_MAX];
    int err = mr_pmi2_escape(job ? job : "", escaped, sizeof(escaped)) < 0
                  ? mr_launch_fail(-EINVAL, "PMI_JOBID=%.40s... is too long", job)
                  : send_frame(pmi, "cmd=fullinit;pmijobid=%s;pmirank=%d;threaded=FALSE;", escaped, pmi->rank);

    if (!err)
        err = read_pmi2_answer(pmi, "fullinit");
    if (!err)
        err = read_pmi2_number(pmi, "rank", 0, &pmi->rank);
    if (!err)
        err = read_pmi2_number(pmi, "size", 1, &pmi->size);
    if (!err)
        pmi->appnum = read_appnum(pmi);
    if (!err)
        err = send_frame(pmi, "cmd=job-getid;");
    if (!err)
        err = read_pmi2_answer(pmi, "job-getid");
    if (!err && (pmi2_value(pmi, "jobid", pmi->job, sizeof(pmi->job)) || !*pmi->job))
        err = mr_pmi_nonsense(pmi, "job-getid");
    pmi->key_max = MR_PMI_KEY_MAX;
    pmi->value_max = MR_PMI_VALUE_MAX;
    return err;
}

static int pmi2_put(struct mr_pmi *pmi, const char *key, const char *value)
{
    int err = send_frame(pmi, "cmd=kvs-put;key=%s;value=%s;", key, value);

    return err ? err : read_pmi2_answer(pmi, "kvs-put");
}

static int pmi2_fence_ask(struct mr_pmi *pmi)
{
    return send_frame(pmi, "cmd=kvs-fence;");
}

static int ask_for_mapping(struct mr_pmi *pmi)
{
    return send_frame(pmi, "cmd=info-getjobattr;key=PMI_process_mapping;");
}

static int pmi2_fence_answer(struct mr_pmi *pmi, enum mr_pmi_wait wait)
{
    int err = mr_pmi_read_frame(pmi, wait);

    if (err)
        return err;
    if (pmi->questioned && is_pmi2_answer(pmi, "info-getjobattr"))
        return MR_PMI_FENCE_LIFE;
    return check_pmi2_answer(pmi, "kvs-fence"); /* 0: MR_PMI_FENCE_OVER */
}

/* found=TRUE and the value, or found=FALSE. */
static int read_found(struct mr_pmi *pmi, const char *command, char *value, size_t cap)
{
    char text[32];
    int err = read_pmi2_answer(pmi, command);

    if (err)
        return err;
    if (pmi2_value(pmi, "found", text, sizeof(text)))
        return mr_pmi_nonsense(pmi, command);
    if (strcmp(text, "TRUE") != 0)
        return -ENOENT;
    return pmi2_value(pmi, "value", value, cap) ? mr_pmi_nonsense(pmi, command) : 0;
}

static int pmi2_get(struct mr_pmi *pmi, const char *key, char *value, size_t cap)
{
    int err = send_frame(pmi, "cmd=kvs-get;jobid=%s;srcid=-1;key=%s;", pmi->job, key);

    return err ? err : read_found(pmi, "kvs-get", value, cap);
}

static int pmi2_mapping(struct mr_pmi *pmi, char *value, size_t cap)
{
    int err = ask_for_mapping(pmi);

    return err ? err : read_found(pmi, "info-getjobattr", value, cap);
}

static int pmi2_universe(struct mr_pmi *pmi)
{
    char text[32];
    long long n;
    int err = send_frame(pmi, "cmd=info-getjobattr;key=universeSize;");

    if (!err)
        err = read_found(pmi, "info-getjobattr", text, sizeof(text));
    if (err)
        return err == -ENOENT ? 0 : err;
    return mr_pmi_number(text, 0, INT32_MAX, &n) ? (int)n : 0;
}

static int pmi2_abort(struct mr_pmi *pmi, int code, const char *why)
{
    char text[512];

    if (mr_pmi2_escape(why, text, sizeof(text)) < 0)
        snprintf(text, sizeof(text), "code %d", code);
    return send_frame(pmi, "cmd=abort;isworld=TRUE;exitcode=%d;msg=%s;", code, text);
}

static int pmi2_finish(struct mr_pmi *pmi)
{
    int err = send_frame(pmi, "cmd=finalize;");

    return err ? err : read_pmi2_answer(pmi, "finalize");
}

const struct mr_pmi_protocol mr_pmi_protocol2 = {
    .name = "PMI-2",
    .version = 2,
    .subversion = 0,
    .begin = pmi2_begin,
    .put = pmi2_put,
    .fence_ask = pmi2_fence_ask,
    .fence_question = ask_for_mapping,
    .fence_answer = pmi2_fence_answer,
    .get = pmi2_get,
    .mapping = pmi2_mapping,
    .universe = pmi2_universe,
    .abort = pmi2_abort,
    .finish = pmi2_finish,
};
