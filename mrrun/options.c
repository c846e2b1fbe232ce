/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of options, the source of the parser and of --help. */
#include "mrrun/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/launch/triplets.h"
#include "mrrun/others.h"
#include "mrrun/outfiles.h"
#include "mrrun/ranges.h"

struct parser {
    struct mrrun_options *opts;
    struct mrrun_part *part; /* the part being parsed */
    char **word;             /* NULL at the end */
    int at;                  /* the next word */
    const char *spelling;    /* the option as written */
    char *why;
    size_t cap;
};

struct option_row;
/* value: the argument; NULL: the option has none, or its optional argument is missing. 0 or -1. */
typedef int take_fn(struct parser *p, const struct option_row *row, char *value);

static take_fn take_count, take_text, take_flag, take_one, take_soft, take_hosts, take_more_hosts, take_host_file,
    take_env, take_env_pair, take_env_list, take_stats, take_nothing, take_map, take_bind, take_stdin, take_pattern;

enum scope { JOB, PART };

struct option_row {
    const char *names; /* spellings, separated by blanks; one dash or two, both are taken */
    const char *arg;   /* NULL: none */
    take_fn *take;
    enum scope scope;
    size_t offset;     /* of the field in struct mrrun_options or struct mrrun_part */
    long min, max;     /* take_count */
    const char *means; /* in a line */
    const char *more;  /* further lines; NULL: none */
};

#define OF_JOB(f)  JOB, offsetof(struct mrrun_options, f)
#define OF_PART(f) PART, offsetof(struct mrrun_part, f)

static const struct option_row table[] = {
    {"-n -np", "N", take_count, OF_PART(ranks), 1, MRRUN_RANKS_MAX, "start N ranks of the program", NULL},
    {"-soft", "SET", take_soft, OF_PART(soft), 0, 0, "fewer than N ranks where hosts have no room for N",
     "SET: the numbers that will do, as A, A:B and A:B:STEP, with commas between"},
    {"--ppn -N --npernode -perhost", "K", take_count, OF_JOB(ppn), 1, MRRUN_RANKS_MAX,
     "at most K ranks per host, host by host", "(default: spread evenly); without -n: K on each host"},
    {"--pernode", NULL, take_one, OF_JOB(ppn), 0, 0, "one rank on each host", NULL},
    {"--hosts", "A,B:SLOTS,...", take_hosts, OF_JOB(hosts), 0, 0, "the hosts to use, in this order",
     "(default: all of the fabric); A=DEVICE+DEVICE: with these HCAs only,\n"
     "which also makes hosts of parts of this machine"},
    {"--host -H", "A,B:SLOTS,...", take_hosts, OF_PART(hosts), 0, 0, "the hosts that this part of the job uses", NULL},
    {"--add-host", "A,B:SLOTS,...", take_more_hosts, OF_PART(hosts), 0, 0, "further hosts of this part", NULL},
    {"--add-hostfile", "FILE", take_host_file, PART, 0, 0, 0, "the same, from a file with a host in each line", NULL},
    {"-f --hostfile --machinefile", "FILE", take_text, OF_JOB(host_file), 0, 0, "a file with a host in each line",
     "HOST[:SLOTS] [slots=N] [max_slots=N]"},
    {"--launcher", "CMD", take_text, OF_JOB(launcher), 0, 0,
     "how agents on other hosts are started: CMD HOST PROGRAM ARG", "(default: srun in a job of Slurm, else ssh)"},
    {"--configfile", "FILE", take_text, OF_JOB(config_file), 0, 0, "a file with a part of the job in each line", NULL},
    {"--map-by", "HOW", take_map, JOB, 0, 0, 0, "where ranks go: slot (in blocks, host by host) or node (in turn)",
     "in a host in turn: hwthread, core, l2cache, l3cache, numa, socket, to\n"
     "which they are bound, too; HOW:PE=N: to N cores each; ppr:K:node: --ppn K"},
    {"--bind-to", "WHAT[:N]", take_bind, JOB, 0, 0, 0, "bind each rank to a core (or N), those near its adapters first",
     "or to a hwthread, l2cache, l3cache, numa, socket; none (default)"},
    {"--report-bindings", NULL, take_flag, OF_JOB(binding.report), 0, 0, "say which processors each rank may run on",
     NULL},
    {"--oversubscribe", NULL, take_flag, OF_JOB(oversubscribe), 0, 0, "start more ranks than hosts have slots", NULL},
    {"-wdir -wd", "DIR", take_text, OF_PART(wdir), 0, 0, "the directory in which ranks start",
     "a program with a / in its name is looked for from there"},
    {"-x", "NAME[=VALUE]", take_env, OF_PART(env), 0, 0, "set a variable for the ranks", NULL},
    {"-env", "NAME VALUE", take_env_pair, OF_PART(env), 0, 0, "set a variable for the ranks (also NAME=VALUE)", NULL},
    {"-genv", "NAME VALUE", take_env_pair, OF_JOB(env), 0, 0, "set a variable for all parts of the job", NULL},
    {"-genvlist -envlist", "A,B,...", take_env_list, OF_JOB(env), 0, 0, "variables that ranks need",
     "all are passed on anyway: one that is not set is complained of"},
    {"-genvall -envall", NULL, take_nothing, JOB, 0, 0, 0, "pass the environment on, which is so anyway", NULL},
    {"--job-id", "ID", take_text, OF_JOB(job_id), 0, 0, "the job's name for fabricd",
     "(default: SLURM_JOB_ID, or made up)"},
    {"--timeout", "S", take_count, OF_JOB(timeout_s), 1, INT_MAX / 1000, "end the job after S seconds",
     "with status 124 (default: MPIEXEC_TIMEOUT, or never)"},
    {"--grace", "S", take_count, OF_JOB(grace_s), 0, INT_MAX / 1000,
     "seconds between asking ranks to end and killing them", "(default: 5)"},
    {"--recover", NULL, take_flag, OF_JOB(recover), 0, 0, "go on when ranks die: the others are told",
     "for programs that call MPIX_Comm_shrink and the like"},
    {"--stats", "[=json[:FILE]]", take_stats, JOB, 0, 0, 0, "figures at the end: ranks print their counters",
     "and mrrun those of their rails as a table; json: all of it in one\n"
     "document, to FILE or standard error"},
    {"--check", NULL, take_flag, OF_JOB(check), 0, 0, "check arguments of MPI functions, and tell at MPI_Finalize",
     "which objects were not freed and which messages nobody received"},
    {"--rails-trace", "FILE", take_text, OF_JOB(trace), 0, 0, "what happened on the rails, and when",
     "as a timeline that Perfetto opens"},
    {"--explain", NULL, take_flag, OF_JOB(explain), 0, 0, "start nothing; say what the settings in force mean",
     "for messages, for each pair of hosts"},
    {"--attach", "PID", take_count, OF_JOB(attach), 1, INT_MAX, "start nothing; say what the ranks of a running job do",
     "PID: its mrrun, or a rank on this host"},
    {"--rails", NULL, take_flag, OF_JOB(rails), 0, 0, "start nothing; list this host's rails for programs", NULL},
    {"--agent", NULL, take_flag, OF_JOB(agent), 0, 0, "be mrrun's agent on a host of a job; mrrun itself starts this",
     NULL},
    {"--rail-paths", "DEVICE:PORT:LID:LMC", take_text, OF_JOB(rail_paths), 0, 0,
     "start nothing; ask fabricd for paths, for programs", NULL},
    {"-s --stdin", "RANKS", take_stdin, OF_JOB(stdin_ranks), 0, 0, "the ranks that read standard input",
     "all, none, or a list as 0,4-6 (default: 0)"},
    {"-outfile-pattern", "FILE", take_pattern, OF_JOB(out_pattern), 0, 0, "write ranks' standard output to files",
     "%r: rank, %h: host, %p: number of the host, %%: a percent sign"},
    {"-errfile-pattern", "FILE", take_pattern, OF_JOB(err_pattern), 0, 0, "the same with standard error", NULL},
    {"-l --label -prepend-rank --tag-output", NULL, take_flag, OF_JOB(label), 0, 0,
     "put the rank in front of each line of output", NULL},
    {"--allow-run-as-root", NULL, take_nothing, JOB, 0, 0, 0, "run as root, which mrrun always does", NULL},
    {"-v --verbose", NULL, take_flag, OF_JOB(verbose), 0, 0, "say where ranks are started and how they end", NULL},
    {"-h --help", NULL, take_flag, OF_JOB(help), 0, 0, "this text", NULL},
    {"-V --version", NULL, take_flag, OF_JOB(version), 0, 0, "print the version", NULL},
};

enum { TABLE_ROWS = sizeof(table) / sizeof(table[0]) };

/* The next of a row's spellings; its length, 0 after the last. */
static size_t next_name(const char **names, const char **name)
{
    *names += strspn(*names, " ");
    *name = *names;
    *names += strcspn(*names, " ");
    return (size_t)(*names - *name);
}

static const char *skip_dashes(const char *name, size_t *len)
{
    size_t dashes = name[0] != '-' ? 0 : name[1] == '-' ? 2 : 1;

    *len -= dashes;
    return name + dashes;
}

bool mrrun_options_help(size_t i, char *text, size_t cap)
{
    enum { COLUMN = 22 };
    char names[128] = "", *comma = names;
    const char *list, *name, *line;
    size_t len;
    int n;

    if (i >= TABLE_ROWS)
        return false;
    for (list = table[i].names; (len = next_name(&list, &name));)
        comma += snprintf(comma, sizeof names - (size_t)(comma - names), "%s%.*s", comma == names ? "" : ", ", (int)len,
                          name);
    n = snprintf(text, cap, "  %s%s%s", names, table[i].arg && *table[i].arg != '[' ? " " : "",
                 table[i].arg ? table[i].arg : "");
    n += snprintf(text + n, cap - (size_t)n, n < COLUMN ? "%*s%s" : "\n%*s%s", n < COLUMN ? COLUMN - n : COLUMN, "",
                  table[i].means);
    for (line = table[i].more; line && *line; line += *line == '\n') {
        n += snprintf(text + n, cap - (size_t)n, "\n%*s%.*s", COLUMN, "", (int)strcspn(line, "\n"), line);
        line += strcspn(line, "\n");
    }
    return true;
}

static const struct option_row *find_option(const char *word, size_t word_len)
{
    const char *list, *name;
    size_t len;

    for (size_t i = 0; i < TABLE_ROWS; i++) {
        for (list = table[i].names; (len = next_name(&list, &name));) {
            name = skip_dashes(name, &len);
            if (len == word_len && !memcmp(name, word, len))
                return &table[i];
        }
    }
    return NULL;
}

/* ---- options outside the table ---- */

enum { NAME_MAX_HINT = 32 };

/* Edit distance of two short words, for "did you mean". */
static unsigned distance(const char *a, size_t alen, const char *b, size_t blen)
{
    unsigned row[NAME_MAX_HINT + 1];

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

/* One letter in three may be wrong: a letter alone resembles nothing. */
static const struct option_row *nearest_option(const char *word, size_t word_len, const char **spelling, size_t *length)
{
    const struct option_row *best = NULL;
    const char *list, *name;
    unsigned best_distance = UINT_MAX;

    for (size_t i = 0; i < TABLE_ROWS && word_len <= NAME_MAX_HINT; i++) {
        for (list = table[i].names; next_name(&list, &name);) {
            size_t len = (size_t)(list - name), bare_len = len;
            const char *bare = skip_dashes(name, &bare_len);
            size_t shorter = bare_len < word_len ? bare_len : word_len;
            unsigned d = bare_len <= NAME_MAX_HINT ? distance(word, word_len, bare, bare_len) : UINT_MAX;

            if (d > shorter / 3 || d >= best_distance)
                continue;
            best_distance = d;
            best = &table[i];
            *spelling = name;
            *length = len;
        }
    }
    return best;
}

static int unknown_option(struct parser *p, const char *name, size_t len)
{
    const char *means = others_options(name, len), *near;
    size_t near_len;
    const struct option_row *row;

    if (means) {
        snprintf(p->why, p->cap, "option '%s' is not mrrun's: %s", p->spelling, means);
        return -1;
    }
    row = nearest_option(name, len, &near, &near_len);
    if (row)
        snprintf(p->why, p->cap, "unknown option '%s'; did you mean '%.*s' (%s)? ('mrrun --help' lists all)",
                 p->spelling, (int)near_len, near, row->means);
    else
        snprintf(p->why, p->cap, "unknown option '%s' ('mrrun --help' lists all)", p->spelling);
    return -1;
}

/* ---- actions of options ---- */

static void *field_of(struct parser *p, const struct option_row *row)
{
    return (char *)(row->scope == PART ? (void *)p->part : (void *)p->opts) + row->offset;
}

static int out_of_memory(struct parser *p)
{
    snprintf(p->why, p->cap, "out of memory");
    return -1;
}

static int take_count(struct parser *p, const struct option_row *row, char *value)
{
    char *end;

    errno = 0;
    long n = strtol(value, &end, 10);
    if (!isdigit((unsigned char)value[0]) || *end || errno || n < row->min || n > row->max) {
        snprintf(p->why, p->cap, "option %s: '%s' is not a number from %ld to %ld", p->spelling, value, row->min,
                 row->max);
        return -1;
    }
    *(int *)field_of(p, row) = (int)n;
    return 0;
}

static int take_text(struct parser *p, const struct option_row *row, char *value)
{
    if (!*value) {
        snprintf(p->why, p->cap, "option %s: the value is empty", p->spelling);
        return -1;
    }
    *(const char **)field_of(p, row) = value;
    return 0;
}

static int take_flag(struct parser *p, const struct option_row *row, char *value)
{
    *(bool *)field_of(p, row) = true;
    return 0;
}

static int take_one(struct parser *p, const struct option_row *row, char *value)
{
    *(int *)field_of(p, row) = 1;
    return 0;
}

static int take_nothing(struct parser *p, const struct option_row *row, char *value)
{
    return 0;
}

/* A later list replaces an earlier list. */
static int take_hosts(struct parser *p, const struct option_row *row, char *value)
{
    struct hostlist *list = field_of(p, row);

    hostlist_clear(list);
    return hostlist_add(list, value, p->spelling, p->why, p->cap);
}

/* Behind those that the part has. */
static int take_more_hosts(struct parser *p, const struct option_row *row, char *value)
{
    return hostlist_add(field_of(p, row), value, p->spelling, p->why, p->cap);
}

static int take_host_file(struct parser *p, const struct option_row *row, char *value)
{
    struct mrrun_part *part = p->part;
    const char **grown = realloc(part->host_file, ((size_t)part->num_host_files + 1) * sizeof(*grown));

    if (!grown)
        return out_of_memory(p);
    grown[part->num_host_files++] = value;
    part->host_file = grown;
    return 0;
}

static int take_soft(struct parser *p, const struct option_row *row, char *value)
{
    int least, largest;

    if (mr_triplets_read(value, MRRUN_RANKS_MAX, &least, &largest))
        return take_text(p, row, value);
    snprintf(p->why, p->cap, "option %s: '%s' is no list of A, A:B and A:B:STEP", p->spelling, value);
    return -1;
}

/* A number from 1 on, at the end of the word. */
static bool parse_units(const char *text, int *out)
{
    char *end;
    long n = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : 0;

    if (n < 1 || n > 4096 || *end)
        return false;
    *out = (int)n;
    return true;
}

static int take_bind(struct parser *p, const struct option_row *row, char *value)
{
    size_t len = strcspn(value, ":");
    enum binding_object to = binding_object_named(value, len);

    p->opts->binding.units = 0;
    if (to && (!value[len] || (to != BINDING_NONE && parse_units(value + len + 1, &p->opts->binding.units)))) {
        p->opts->binding.to = to;
        return 0;
    }
    snprintf(
        p->why, p->cap,
        "option %s: '%s' is none of none, hwthread, core, l2cache, l3cache, numa and socket, nor one with :N behind "
        "it",
        p->spelling, value);
    return -1;
}

/* "slot", "node" or an object of the machine; ":PE=N" behind it asks for N cores a rank. "ppr:K:node" is --ppn K. */
static int take_map(struct parser *p, const struct option_row *row, char *value)
{
    size_t len = strcspn(value, ":");
    bool node = len == 4 && !memcmp(value, "node", 4), slot = len == 4 && !memcmp(value, "slot", 4);
    enum binding_object by = binding_object_named(value, len);
    struct binding_wish *wish = &p->opts->binding;
    int per_node, used = 0;

    if (sscanf(value, "ppr:%9d:node%n", &per_node, &used) == 1 && used && !value[used] && per_node > 0) {
        p->opts->ppn = per_node;
        return 0;
    }
    if ((node || slot || by) && !strncmp(value + len, ":PE=", 4) && parse_units(value + len + 4, &wish->units)) {
        wish->to = BINDING_CORE;
        len = strlen(value);
    }
    if ((node || slot || by) && !value[len]) {
        p->opts->by_node = node;
        wish->map = by;
        return 0;
    }
    snprintf(
        p->why, p->cap,
        "option %s: '%s' is none of slot, node, none, hwthread, core, l2cache, l3cache, numa and socket, nor one with "
        ":PE=N behind it, nor ppr:K:node",
        p->spelling, value);
    return -1;
}

static int take_stdin(struct parser *p, const struct option_row *row, char *value)
{
    if (!strcmp(value, "all") || !strcmp(value, "none") || ranges_valid(value))
        return take_text(p, row, value);
    snprintf(p->why, p->cap, "option %s: '%s' is neither all, none nor a list of ranks (0,4-6)", p->spelling, value);
    return -1;
}

bool mrrun_options_reads(const struct mrrun_options *opts, int rank)
{
    const char *who = opts->stdin_ranks;

    return who ? !strcmp(who, "all") || ranges_have(who, rank) : rank == 0;
}

static int take_pattern(struct parser *p, const struct option_row *row, char *value)
{
    const char *fault = outfiles_check(value);

    if (!fault)
        return take_text(p, row, value);
    snprintf(p->why, p->cap, "option %s: '%s': %s", p->spelling, value, fault);
    return -1;
}

/* The text becomes the list's. */
static int add_env(struct parser *p, struct mrrun_env *env, char *text)
{
    char **grown = text ? realloc(env->text, (env->count + 1) * sizeof(*grown)) : NULL;

    if (!grown) {
        free(text);
        return out_of_memory(p);
    }
    grown[env->count++] = text;
    env->text = grown;
    return 0;
}

static int take_env(struct parser *p, const struct option_row *row, char *value)
{
    if (!*value || *value == '=') {
        snprintf(p->why, p->cap, "option %s: '%s' names no variable (wanted: %s)", p->spelling, value, row->arg);
        return -1;
    }
    return add_env(p, field_of(p, row), strdup(value));
}

/* In one word or in two. */
static int take_env_pair(struct parser *p, const struct option_row *row, char *value)
{
    char *text;

    if (strchr(value, '=') || !*value)
        return take_env(p, row, value);
    if (!p->word[p->at]) {
        snprintf(p->why, p->cap, "option %s: there is no value for %s (wanted: NAME VALUE or NAME=VALUE)", p->spelling,
                 value);
        return -1;
    }
    if (asprintf(&text, "%s=%s", value, p->word[p->at++]) < 0)
        text = NULL;
    return add_env(p, field_of(p, row), text);
}

static int take_env_list(struct parser *p, const struct option_row *row, char *value)
{
    for (char *at = value;; at++) {
        size_t len = strcspn(at, ",");

        if (!len || memchr(at, '=', len)) {
            snprintf(p->why, p->cap, "option %s: '%s' is no list of names of variables", p->spelling, value);
            return -1;
        }
        if (add_env(p, field_of(p, row), strndup(at, len)))
            return -1;
        at += len;
        if (!*at)
            return 0;
    }
}

/* NULL: as a table. The last one counts. */
static int take_stats(struct parser *p, const struct option_row *row, char *value)
{
    if (value && strcmp(value, "json") && (strncmp(value, "json:", 5) || !value[5])) {
        snprintf(p->why, p->cap, "option --stats: '%s' is neither json nor json:FILE", value);
        return -1;
    }
    p->opts->stats = true;
    p->opts->stats_as = value;
    return 0;
}

/* ---- the command line ---- */

static struct mrrun_part *add_part(struct parser *p)
{
    struct mrrun_part *grown = realloc(p->opts->parts, (p->opts->num_parts + 1) * sizeof(*grown));

    if (!grown) {
        out_of_memory(p);
        return NULL;
    }
    p->opts->parts = grown;
    grown += p->opts->num_parts++;
    *grown = (struct mrrun_part){0};
    return grown;
}

/* An option and its value, if any. "-n4" is taken for "-n 4". */
static int parse_option(struct parser *p)
{
    char *word = p->word[p->at++], *name = word + (word[1] == '-' ? 2 : 1);
    char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct option_row *row = find_option(name, len);
    char *value = equals ? equals + 1 : NULL, spelling[64];

    p->spelling = word;
    if (!row && name == word + 1 && name[0] == 'n' && isdigit((unsigned char)name[1])) {
        row = &table[0];
        value = name + 1;
        equals = name + 1;
    }
    if (!row)
        return unknown_option(p, name, len);
    snprintf(spelling, sizeof(spelling), "%.*s", equals ? (int)(equals - word) : (int)strlen(word), word);
    p->spelling = spelling;
    if (value && !row->arg) {
        snprintf(p->why, p->cap, "option '%s' takes no value", spelling);
        return -1;
    }
    if (!value && row->arg && *row->arg != '[') {
        value = p->word[p->at];
        if (!value) {
            snprintf(p->why, p->cap, "option '%s' needs a value: %s %s, %s", spelling, spelling, row->arg, row->means);
            return -1;
        }
        p->at++;
    }
    return row->take(p, row, value);
}

/* Options, then a program and its arguments, up to ":". */
static int parse_part(struct parser *p)
{
    bool options = true;

    p->part = add_part(p);
    if (!p->part)
        return -1;
    while (options && p->word[p->at] && p->word[p->at][0] == '-' && p->word[p->at][1]) {
        options = strcmp(p->word[p->at], "--") != 0;
        if (options ? parse_option(p) : (p->at++, 0))
            return -1;
    }
    p->part->program = p->word + p->at;
    while (p->word[p->at] && strcmp(p->word[p->at], ":"))
        p->at++;
    return 0;
}

static int parse_words(struct mrrun_options *opts, char **word, char *why, size_t cap)
{
    struct parser p = {.opts = opts, .word = word, .why = why, .cap = cap};

    for (;;) {
        if (parse_part(&p))
            return -1;
        if (!word[p.at])
            return 0;
        word[p.at++] = NULL;
        if (!word[p.at] || !strcmp(word[p.at], ":") || !p.part->program[0]) {
            snprintf(why, cap, "there is no program %s a ':'", p.part->program[0] ? "behind" : "in front of");
            return -1;
        }
    }
}

int mrrun_options_parse(struct mrrun_options *opts, int argc, char **argv, char *why, size_t cap)
{
    memset(opts, 0, sizeof(*opts));
    opts->grace_s = 5;
    opts->timeout_by = "--timeout";
    return parse_words(opts, argv + (argc > 0), why, cap);
}

static void clear_env(struct mrrun_env *env)
{
    for (int i = 0; i < env->count; i++)
        free(env->text[i]);
    free(env->text);
    *env = (struct mrrun_env){0};
}

static void clear_parts(struct mrrun_options *opts)
{
    for (int i = 0; i < opts->num_parts; i++) {
        clear_env(&opts->parts[i].env);
        hostlist_clear(&opts->parts[i].hosts);
        free(opts->parts[i].host_file);
    }
    free(opts->parts);
    opts->parts = NULL;
    opts->num_parts = 0;
}

/* Its lines are all parts there are: the command line has options of the job only. */
int mrrun_options_config(struct mrrun_options *opts, const char *text, char *why, size_t cap)
{
    const struct mrrun_part *only = &opts->parts[0];
    const char *file = opts->config_file;

    if (opts->num_parts > 1 || only->program[0] || only->ranks || only->wdir || only->env.count || only->hosts.count ||
        only->num_host_files || only->soft) {
        snprintf(why, cap,
                 "option --configfile: '%s' has the parts of the job; programs, -n and other options of a "
                 "part stand in its lines",
                 file);
        return -1;
    }
    clear_parts(opts);
    if (words_read(&opts->config, text, file, why, cap) || parse_words(opts, opts->config.word, why, cap))
        return -1;
    if (!strcmp(opts->config_file, file))
        return 0;
    snprintf(why, cap, "%s: --configfile inside of such a file", file);
    return -1;
}

int mrrun_options_hosts(struct mrrun_options *opts, const char *text, char *why, size_t cap)
{
    if (opts->hosts.count) {
        snprintf(why, cap, "--hosts and --hostfile '%s' both name hosts: give one of them", opts->host_file);
        return -1;
    }
    return hostlist_read(&opts->hosts, text, opts->host_file, why, cap);
}

int mrrun_options_part_hosts(struct mrrun_part *part, int number, const char *text, char *why, size_t cap)
{
    return hostlist_read(&part->hosts, text, part->host_file[number], why, cap);
}

#define USAGE "(usage: mrrun -n N [OPTIONS] PROGRAM [ARGS] [: -n N ...])"

static bool has_slots(const struct hostlist *list)
{
    for (int i = 0; i < list->count; i++)
        if (list->host[i].slots)
            return true;
    return false;
}

/* Whether the number of ranks follows from hosts. */
static bool hosts_decide(const struct mrrun_options *opts)
{
    return opts->ppn || has_slots(&opts->hosts) || has_slots(&opts->parts[0].hosts);
}

int mrrun_options_check(struct mrrun_options *opts, char *why, size_t cap)
{
    bool starts = !opts->explain && !opts->attach && !opts->rails && !opts->agent && !opts->rail_paths, missing = false;
    long long ranks = 0;

    for (int i = 0; i < opts->num_parts; i++) {
        const struct mrrun_part *part = &opts->parts[i];

        if (!part->program[0] && starts) {
            snprintf(why, cap, "no program to run " USAGE);
            return -1;
        }
        if (!part->ranks && starts && opts->num_parts > 1) {
            snprintf(why, cap, "how many ranks of '%s'? " USAGE, part->program[0]);
            return -1;
        }
        if (part->soft && !part->ranks && starts) {
            snprintf(why, cap, "how many ranks of '%s' at most (-n)? " USAGE, part->program[0]);
            return -1;
        }
        ranks += part->ranks;
        missing |= !part->ranks;
    }
    if (missing && starts && !hosts_decide(opts)) {
        snprintf(why, cap, "how many ranks? " USAGE);
        return -1;
    }
    if (ranks > MRRUN_RANKS_MAX) {
        snprintf(why, cap, "%lld ranks are more than %d", ranks, MRRUN_RANKS_MAX);
        return -1;
    }
    opts->ranks = missing ? 0 : (int)ranks;
    return 0;
}

/* MPICH's launchers take a value below 1 for none. */
int mrrun_options_timeout(struct mrrun_options *opts, const char *text, char *why, size_t cap)
{
    char *end;

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

static const char *look_up_env(const struct mrrun_env *env, const char *name)
{
    size_t len = strlen(name);

    for (int i = env->count - 1; i >= 0; i--)
        if (!strncmp(env->text[i], name, len) && env->text[i][len] == '=')
            return env->text[i] + len + 1;
    return NULL;
}

const char *mrrun_options_env(const struct mrrun_options *opts, const struct mrrun_part *part, const char *name)
{
    const char *own = part ? look_up_env(&part->env, name) : NULL;

    return own ? own : look_up_env(&opts->env, name);
}

void mrrun_options_clear(struct mrrun_options *opts)
{
    clear_parts(opts);
    clear_env(&opts->env);
    hostlist_clear(&opts->hosts);
    words_clear(&opts->config);
    memset(opts, 0, sizeof(*opts));
}
