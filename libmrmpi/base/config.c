/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings: the table of config_table.c, read once from the environment. Nothing else in the library reads the
 * environment.
 *
 * Bad values keep their default. Complaints are collected here and printed by rank 0 alone (mr_config_complain), so a
 * job of many ranks complains once.
 */
#include "libmrmpi/base/config_table.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Names of our other programs, not settings of the library. */
static const char *const foreign[] = {"MRMPI_VERSION", "MRMPI_CC", "MRMPI_CXX"};

struct mr_config mr_config;

static char complaints[8][192];
static size_t num_complaints;

static void __attribute__((format(printf, 1, 2))) add_complaint(const char *fmt, ...)
{
    va_list ap;

    if (num_complaints == sizeof(complaints) / sizeof(complaints[0]))
        return;
    va_start(ap, fmt);
    vsnprintf(complaints[num_complaints++], sizeof(complaints[0]), fmt, ap);
    va_end(ap);
}

void mr_config_complain(void)
{
    for (size_t i = 0; i < num_complaints; i++)
        mr_log(MR_LOG_WARN, "%s", complaints[i]);
    num_complaints = 0;
}

size_t mr_config_complaints(const char **first)
{
    *first = num_complaints ? complaints[0] : "";
    return num_complaints;
}

/* A number with an optional K, M or G, as "64K"; false if it is none or does not fit. */
static bool parse_number(const char *text, bool with_suffix, long long *out)
{
    char *end;
    long long value, factor = 1;

    errno = 0;
    value = strtoll(text, &end, 0);
    if (end == text || errno)
        return false;
    if (with_suffix && *end) {
        static const char suffixes[] = "KMG";
        const char *s = strchr(suffixes, *end & ~0x20);

        if (!s || !*s)
            return false;
        factor = 1LL << (10 * (s - suffixes + 1));
        end++;
        if (*end == 'i')
            end++;
        if (*end == 'B' || *end == 'b')
            end++;
    }
    return *end == '\0' && !__builtin_mul_overflow(value, factor, out);
}

/* A word, or a number as C takes it: all but 0 are yes. */
static bool parse_bool(const char *text, int *out)
{
    static const char *const words[2][4] = {{"0", "no", "off", "false"}, {"1", "yes", "on", "true"}};

    for (int v = 0; v < 2; v++)
        for (int i = 0; i < 4; i++)
            if (!strcasecmp(text, words[v][i])) {
                *out = v;
                return true;
            }
    long long number;
    if (!parse_number(text, false, &number) || number < INT_MIN || number > INT_MAX)
        return false;
    *out = (int)number;
    return true;
}

/* Returns NULL, or the necessary form of a value in this row. */
static const char *store_value(const struct mr_config_row *row, struct mr_config *config, const char *text)
{
    void *field = (char *)config + row->offset;
    long long number;
    int truth;
    char *copy;

    switch (row->kind) {
    case MR_SETTING_STRING:
        copy = strdup(text);
        if (!copy)
            return "shorter (out of memory)";
        free(*(char **)field);
        *(char **)field = copy;
        return NULL;
    case MR_SETTING_BOOL:
        if (!parse_bool(text, &truth))
            return "yes or no";
        __atomic_store_n((int *)field, truth, __ATOMIC_RELAXED);
        return NULL;
    case MR_SETTING_SIZE:
    case MR_SETTING_INT:
        if (!parse_number(text, row->kind == MR_SETTING_SIZE, &number))
            return row->kind == MR_SETTING_SIZE ? "a number of bytes, as 64K" : "a whole number";
        if (number < row->min || number > row->max)
            return "within its bounds";
        if (row->kind == MR_SETTING_SIZE)
            __atomic_store_n((size_t *)field, (size_t)number, __ATOMIC_RELAXED);
        else
            __atomic_store_n((int *)field, (int)number, __ATOMIC_RELAXED);
        return NULL;
    }
    return "of a known type";
}

static void read_config_row(const struct mr_config_row *row)
{
    const char *name = row->name, *text = getenv(name), *wanted;

    if (!text && row->also) {
        name = row->also;
        text = getenv(name);
    }
    if (!text)
        return;
    wanted = store_value(row, &mr_config, text);
    if (!wanted)
        return;
    if (row->kind == MR_SETTING_SIZE || row->kind == MR_SETTING_INT)
        add_complaint("%s=%.40s ignored: it must be %s (%lld to %lld%s%s); using %s", name, text, wanted, row->min,
                      row->max, *row->unit ? " " : "", row->unit, row->standard);
    else
        add_complaint("%s=%.40s ignored: it must be %s; using %s", name, text, wanted, row->standard);
}

/* Edit distance of two short names, for the hint at a mistyped one. */
static size_t name_distance(const char *a, const char *b)
{
    size_t row[64], m = strlen(a), n = strlen(b);

    if (n >= 64)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t up = row[j], best = diagonal + (a[i - 1] != b[j - 1]);

            if (up + 1 < best)
                best = up + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = up;
            row[j] = best;
        }
    }
    return row[n];
}

static void check_name(const char *variable)
{
    const char *eq = strchr(variable, '=');
    const struct mr_config_row *nearest = NULL;
    size_t least = SIZE_MAX;
    char name[64];

    if (!eq || (size_t)(eq - variable) >= sizeof(name))
        return;
    memcpy(name, variable, eq - variable);
    name[eq - variable] = '\0';
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        if (!strcmp(name, foreign[i]))
            return;
    for (size_t i = 0; i < mr_config_num_rows; i++) {
        size_t d = name_distance(name, mr_config_rows[i].name);

        if (d == 0)
            return;
        if (d < least) {
            least = d;
            nearest = &mr_config_rows[i];
        }
    }
    add_complaint("%s is not a setting of mrmpi; the nearest is %s: see libmrmpi(7)", name, nearest->name);
}

/* Tools come in any thread: guards the strings, and the variables below. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;
static bool early; /* by a tool, which may have changed settings since: they stay */
static bool used;  /* settings that are not live are fixed */

static int load_rows(void)
{
    num_complaints = 0;
    for (size_t i = 0; i < mr_config_num_rows; i++) {
        if (store_value(&mr_config_rows[i], &mr_config, mr_config_rows[i].standard))
            return -ENOMEM;
        read_config_row(&mr_config_rows[i]);
    }
    for (char **e = environ; e && *e; e++)
        if (!strncmp(*e, "MRMPI_", 6))
            check_name(*e);
    loaded = true;
    return 0;
}

int mr_config_init(void)
{
    pthread_mutex_lock(&guard);
    int err = early ? 0 : load_rows();
    used = true;
    pthread_mutex_unlock(&guard);
    return err;
}

int mr_config_early(void)
{
    int err = 0;
    pthread_mutex_lock(&guard);
    if (!loaded) {
        err = load_rows();
        early = !err;
    }
    pthread_mutex_unlock(&guard);
    return err;
}

void mr_config_finalize(void)
{
    pthread_mutex_lock(&guard);
    loaded = early = used = false;
    for (size_t i = 0; i < mr_config_num_rows; i++)
        if (mr_config_rows[i].kind == MR_SETTING_STRING) {
            char **field = (char **)((char *)&mr_config + mr_config_rows[i].offset);

            free(*field);
            *field = NULL;
        }
    pthread_mutex_unlock(&guard);
}

const char *mr_config_foreign(const char *name)
{
    return getenv(name);
}

size_t mr_config_count(void)
{
    return mr_config_num_rows;
}

bool mr_config_setting(size_t i, struct mr_setting *out)
{
    if (i >= mr_config_num_rows)
        return false;
    const struct mr_config_row *r = &mr_config_rows[i];
    pthread_mutex_lock(&guard);
    bool fixed = used && !r->live;
    pthread_mutex_unlock(&guard);
    *out = (struct mr_setting){
        .name = r->name,
        .help = r->help,
        .unit = r->unit,
        .standard = r->standard,
        .min = r->min,
        .max = r->max,
        .kind = r->kind,
        .topic = r->topic,
        .live = r->live,
        .fixed = fixed,
    };
    return true;
}

bool mr_config_get(size_t i, void *buf, size_t len)
{
    if (i >= mr_config_num_rows)
        return false;
    const void *field = (const char *)&mr_config + mr_config_rows[i].offset;
    switch (mr_config_rows[i].kind) {
    case MR_SETTING_SIZE:
        *(size_t *)buf = __atomic_load_n((const size_t *)field, __ATOMIC_RELAXED);
        break;
    case MR_SETTING_INT:
    case MR_SETTING_BOOL:
        *(int *)buf = __atomic_load_n((const int *)field, __ATOMIC_RELAXED);
        break;
    case MR_SETTING_STRING:
        pthread_mutex_lock(&guard);
        snprintf(buf, len, "%s", *(char *const *)field);
        pthread_mutex_unlock(&guard);
        break;
    }
    return true;
}

int mr_config_set(size_t i, const char *value)
{
    const struct mr_config_row *row = &mr_config_rows[i];
    int err;

    if (i >= mr_config_num_rows)
        return -EINVAL;
    pthread_mutex_lock(&guard);
    err = used && !row->live ? -EPERM : store_value(row, &mr_config, value) ? -EINVAL : 0;
    pthread_mutex_unlock(&guard);
    return err;
}
