/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of options, from which the parser and --help come. */
#include "mrrun/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum option_kind { OPT_COUNT, OPT_TEXT, OPT_LIST, OPT_ENV, OPT_FLAG, OPT_STATS };

struct option_row {
    const char *name;  /* without dashes; one dash or two, both are taken, as users of other launchers expect */
    const char *alias; /* a second name or NULL */
    enum option_kind kind;
    size_t offset; /* of the field in struct mrrun_options */
    long min, max; /* OPT_COUNT */
    const char *help;
};

#define FIELD(f) offsetof(struct mrrun_options, f)

static const struct option_row table[] = {
    {"n", "np", OPT_COUNT, FIELD(ranks), 1, MRRUN_RANKS_MAX, "-n N              start N ranks (also -np)"},
    {"ppn", NULL, OPT_COUNT, FIELD(ppn), 1, MRRUN_RANKS_MAX,
     "--ppn K           at most K ranks per host, host by host (default: spread evenly)"},
    {"hosts", NULL, OPT_LIST, FIELD(hosts), 0, 0,
     "--hosts A,B,...   the hosts to use, in this order (default: all of the fabric); A=DEVICE+DEVICE: with these\n"
     "                  HCAs only, which also makes hosts of parts of this machine"},
    {"x", "env", OPT_ENV, FIELD(env), 0, 0, "-x NAME[=VALUE]   set a variable for the ranks (also --env)"},
    {"job-id", NULL, OPT_TEXT, FIELD(job_id), 0, 0,
     "--job-id ID       the job's name for fabricd (default: SLURM_JOB_ID, or made up)"},
    {"timeout", NULL, OPT_COUNT, FIELD(timeout_s), 1, INT_MAX / 1000,
     "--timeout S       kill the job after S seconds, with status 124 (default: MPIEXEC_TIMEOUT, or never)"},
    {"grace", NULL, OPT_COUNT, FIELD(grace_s), 0, INT_MAX / 1000,
     "--grace S         seconds between asking ranks to end and killing them (default: 5)"},
    {"stats", NULL, OPT_STATS, FIELD(stats), 0, 0,
     "--stats[=json[:FILE]]  ranks print their counters at the end, and mrrun those of their rails as a table; json: "
     "all of\n"
     "                  it in one document, to FILE or standard error"},
    {"rails-trace", NULL, OPT_TEXT, FIELD(trace), 0, 0,
     "--rails-trace FILE  what happened on the rails, and when, as a timeline that Perfetto opens"},
    {"explain", NULL, OPT_FLAG, FIELD(explain), 0, 0,
     "--explain         start nothing; say what the settings in force mean for messages, for each pair of hosts"},
    {"rails", NULL, OPT_FLAG, FIELD(rails), 0, 0,
     "--rails           start nothing; list the rails that ranks on this host would have, for programs"},
    {"l", "label", OPT_FLAG, FIELD(label), 0, 0, "-l, --label       put the rank in front of each line of output"},
    {"v", "verbose", OPT_FLAG, FIELD(verbose), 0, 0, "-v, --verbose     say where ranks are started and how they end"},
    {"h", "help", OPT_FLAG, FIELD(help), 0, 0, "-h, --help        this text"},
    {"V", "version", OPT_FLAG, FIELD(version), 0, 0, "-V, --version     print the version"},
};

enum { TABLE_ROWS = sizeof(table) / sizeof(table[0]) };

const char *mrrun_options_help(size_t i)
{
    return i < TABLE_ROWS ? table[i].help : NULL;
}

static const struct option_row *find_option(const char *name, size_t len)
{
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        const struct option_row *row = &table[i];
        if (strlen(row->name) == len && !memcmp(row->name, name, len))
            return row;
        if (row->alias && strlen(row->alias) == len && !memcmp(row->alias, name, len))
            return row;
    }
    return NULL;
}

/* Edit distance of two short words, for "did you mean". */
static unsigned distance(const char *a, size_t alen, const char *b)
{
    unsigned row[64];
    size_t blen = strlen(b);

    if (alen >= 63 || blen >= 63)
        return UINT_MAX;
    for (size_t j = 0; j <= blen; j++)
        row[j] = j;
    for (size_t i = 1; i <= alen; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= blen; j++) {
            unsigned replace = diagonal + (a[i - 1] != b[j - 1]);
            unsigned best = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < best ? replace : best;
        }
    }
    return row[blen];
}

static const char *nearest_option(const char *name, size_t len)
{
    const char *best = NULL;
    unsigned best_distance = 3; /* farther is no help */

    for (size_t i = 0; i < TABLE_ROWS; i++) {
        const char *names[] = {table[i].name, table[i].alias};
        for (int k = 0; k < 2; k++) {
            if (!names[k] || strlen(names[k]) < 2)
                continue;
            unsigned d = distance(name, len, names[k]);
            if (d < best_distance) {
                best_distance = d;
                best = names[k];
            }
        }
    }
    return best;
}

static int unknown_option(const char *word, const char *name, size_t len, char *why, size_t cap)
{
    const char *near = nearest_option(name, len);

    if (near)
        snprintf(why, cap, "unknown option '%s'; did you mean '--%s'? ('mrrun --help' lists all)", word, near);
    else
        snprintf(why, cap, "unknown option '%s' ('mrrun --help' lists all)", word);
    return -1;
}

static int parse_count(const struct option_row *row, const char *text, int *out, char *why, size_t cap)
{
    char *end;

    errno = 0;
    long n = strtol(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || n < row->min || n > row->max) {
        snprintf(why, cap, "option -%s: '%s' is not a number from %ld to %ld", row->name, text, row->min, row->max);
        return -1;
    }
    *out = n;
    return 0;
}

static int append(char ***list, int *count, char *item)
{
    char **grown = realloc(*list, (*count + 1) * sizeof(*grown));

    if (!grown)
        return -1;
    grown[(*count)++] = item;
    *list = grown;
    return 0;
}

static void clear_hosts(struct mrrun_options *opts)
{
    for (int i = 0; i < opts->num_hosts; i++) {
        free(opts->hosts[i].name);
        free(opts->hosts[i].devices);
    }
    free(opts->hosts);
    opts->hosts = NULL;
    opts->num_hosts = 0;
}

/* DEVICE+DEVICE as the ranks' MRMPI_DEVICES wants it. NULL: out of memory. */
static char *copy_devices(const char *text, size_t len)
{
    char *devices = strndup(text, len);

    for (char *p = devices; p && (p = strchr(p, '+'));)
        *p = ',';
    return devices;
}

/* NAME or NAME=DEVICE+DEVICE, len characters of it. */
static int add_host(struct mrrun_options *opts, const char *text, size_t len, char *why, size_t cap)
{
    const char *equals = memchr(text, '=', len);
    size_t name_len = equals ? (size_t)(equals - text) : len;
    struct mrrun_host host = {0}, *grown;

    if (!name_len || (equals && equals + 1 == text + len)) {
        snprintf(why, cap, "option --hosts: an empty name in '%.*s'", (int)len, text);
        return -1;
    }
    for (int i = 0; i < opts->num_hosts; i++) {
        if (strlen(opts->hosts[i].name) == name_len && !memcmp(opts->hosts[i].name, text, name_len)) {
            snprintf(why, cap, "option --hosts: '%.*s' is named twice", (int)name_len, text);
            return -1;
        }
    }
    host.name = strndup(text, name_len);
    if (equals)
        host.devices = copy_devices(equals + 1, len - name_len - 1);
    grown = realloc(opts->hosts, (opts->num_hosts + 1) * sizeof(*grown));
    if (grown)
        opts->hosts = grown;
    if (!host.name || (equals && !host.devices) || !grown) {
        free(host.name);
        free(host.devices);
        snprintf(why, cap, "out of memory");
        return -1;
    }
    opts->hosts[opts->num_hosts++] = host;
    return 0;
}

/* Hosts are separated by commas. A later --hosts replaces an earlier one. */
static int parse_hosts(struct mrrun_options *opts, const char *text, char *why, size_t cap)
{
    clear_hosts(opts);
    for (const char *p = text;; p++) {
        size_t len = strcspn(p, ",");
        if (!len) {
            snprintf(why, cap, "option --hosts: an empty name in '%s'", text);
            return -1;
        }
        if (add_host(opts, p, len, why, cap))
            return -1;
        p += len;
        if (!*p)
            return 0;
    }
}

static int parse_env(struct mrrun_options *opts, char *text, char *why, size_t cap)
{
    if (!*text || *text == '=') {
        snprintf(why, cap, "option -x: '%s' names no variable (wanted: NAME or NAME=VALUE)", text);
        return -1;
    }
    if (append(&opts->env, &opts->num_env, text)) {
        snprintf(why, cap, "out of memory");
        return -1;
    }
    return 0;
}

static int take_value(struct mrrun_options *opts, const struct option_row *row, char *value, char *why, size_t cap)
{
    void *field = (char *)opts + row->offset;

    switch (row->kind) {
    case OPT_COUNT:
        return parse_count(row, value, field, why, cap);
    case OPT_TEXT:
        if (!*value) {
            snprintf(why, cap, "option --%s: the value is empty", row->name);
            return -1;
        }
        *(const char **)field = value;
        return 0;
    case OPT_LIST:
        return parse_hosts(opts, value, why, cap);
    case OPT_ENV:
        return parse_env(opts, value, why, cap);
    case OPT_FLAG:
    case OPT_STATS:
        break;
    }
    return -1;
}

/* NULL: as a table. The last one counts. */
static int parse_stats(struct mrrun_options *opts, const char *as, char *why, size_t cap)
{
    if (as && strcmp(as, "json") && (strncmp(as, "json:", 5) || !as[5])) {
        snprintf(why, cap, "option --stats: '%s' is neither json nor json:FILE", as);
        return -1;
    }
    opts->stats = true;
    opts->stats_as = as;
    return 0;
}

/* One option and perhaps its value: *i is moved to the last word used. "-n4" is taken for "-n 4". */
static int parse_option(struct mrrun_options *opts, int argc, char **argv, int *i, char *why, size_t cap)
{
    char *word = argv[*i];
    char *name = word + (word[1] == '-' ? 2 : 1);
    char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct option_row *row = find_option(name, len);
    char *value = equals ? equals + 1 : NULL;

    if (!row && name == word + 1 && name[0] == 'n' && isdigit((unsigned char)name[1])) {
        row = &table[0];
        value = name + 1;
    }
    if (!row)
        return unknown_option(word, name, len, why, cap);
    if (row->kind == OPT_STATS)
        return parse_stats(opts, value, why, cap);
    if (row->kind == OPT_FLAG) {
        if (value) {
            snprintf(why, cap, "option '%.*s' takes no value", (int)(equals - word), word);
            return -1;
        }
        *(bool *)((char *)opts + row->offset) = true;
        return 0;
    }
    if (!value) {
        if (*i + 1 >= argc) {
            snprintf(why, cap, "option '%s' needs a value (%s)", word, row->help);
            return -1;
        }
        value = argv[++*i];
    }
    return take_value(opts, row, value, why, cap);
}

int mrrun_options_parse(struct mrrun_options *opts, int argc, char **argv, char *why, size_t cap)
{
    int i;

    memset(opts, 0, sizeof(*opts));
    opts->grace_s = 5;
    for (i = 1; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        if (!strcmp(argv[i], "--")) {
            i++;
            break;
        }
        if (parse_option(opts, argc, argv, &i, why, cap))
            return -1;
    }
    if (opts->help || opts->version)
        return 0;
    opts->program = argv + i;
    if (opts->explain || opts->rails)
        return 0;
    if (i >= argc) {
        snprintf(why, cap, "no program to run (usage: mrrun -n N [OPTIONS] PROGRAM [ARGS])");
        return -1;
    }
    if (!opts->ranks) {
        snprintf(why, cap, "how many ranks? (usage: mrrun -n N [OPTIONS] PROGRAM [ARGS])");
        return -1;
    }
    return 0;
}

/* MPICH's launchers take a value below 1 for none. */
int mrrun_options_timeout(struct mrrun_options *opts, const char *text, char *why, size_t cap)
{
    char *end;

    opts->timeout_by = "--timeout";
    if (!text || !*text || opts->timeout_s)
        return 0;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (isspace((unsigned char)*text) || end == text || *end || errno || n > INT_MAX / 1000) {
        snprintf(why, cap, "MPIEXEC_TIMEOUT='%s' is not a number of seconds up to %d", text, INT_MAX / 1000);
        return -1;
    }
    opts->timeout_s = n > 0 ? (int)n : 0;
    opts->timeout_by = "MPIEXEC_TIMEOUT";
    return 0;
}

void mrrun_options_clear(struct mrrun_options *opts)
{
    clear_hosts(opts);
    free(opts->env);
    memset(opts, 0, sizeof(*opts));
}
