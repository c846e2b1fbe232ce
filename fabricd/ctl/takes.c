/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabricd/ctl/takes.h"
#include "fabricd/base/text.h"

#include <stdio.h>
#include <string.h>

const struct option takes_options[] = {
    {"socket", required_argument, NULL, 's'},
    {"user", required_argument, NULL, 'u'},
    {"account", required_argument, NULL, 'a'},
    {"name", required_argument, NULL, 'n'},
    {"qos", required_argument, NULL, 'q'},
    {"partition", required_argument, NULL, 'p'},
    {"wish", required_argument, NULL, 'w'},
    {"cluster", no_argument, NULL, 'c'},
    {"small-ratio", required_argument, NULL, 'R'},
    {"renew", no_argument, NULL, 'r'},
    {"run", required_argument, NULL, 'U'},
    {"cgroup", required_argument, NULL, 'g'},
    {"lease", required_argument, NULL, 't'},
    {"interval", required_argument, NULL, 'i'},
    {"count", required_argument, NULL, 'N'},
    {"dry-run", no_argument, NULL, 'd'},
    {"partial", no_argument, NULL, 'P'},
    {"force", no_argument, NULL, 'F'},
    {"load", required_argument, NULL, 'l'},
    {"fabric", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"launcher", required_argument, NULL, 'L'},
    {"timeout", required_argument, NULL, 'T'},
    {"parallel", required_argument, NULL, 'M'},
    {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

_Static_assert(sizeof(takes_options) / sizeof(takes_options[0]) <= TAKES_OPTIONS_MAX, "one of each, and an end");

#define ALL_TAKE "sjhV"

/* The commands of each option; commands missing in the table take the options in ALL_TAKE. */
static const struct {
    const char *command, *takes; /* the latter: the letters of getopt_long() */
    bool cluster;                /* with --cluster */
} takers[] = {
    {"policy plan", "lf", false},    {"policy apply", "dPF", false},    {"policy rollback", "P", false},
    {"job set", "cR", true},         {"job set", "uanqpwRrUgt", false}, {"job give", "cR", true},
    {"job give", "R", false},        {"job choose", "R", false},        {"job del", "U", false},
    {"job join", "uanqpwUt", false}, {"job leave", "U", false},         {"top", "iN", false},
    {"metrics", "o", false},         {"cluster status", "LTM", false},
};
enum { TAKERS = sizeof(takers) / sizeof(takers[0]) };

static bool takes(unsigned taker, int option)
{
    return strchr(takers[taker].takes, option);
}

static const char *long_name(int option)
{
    const struct option *o = takes_options;
    while (o->val != option)
        o++;
    return o->name;
}

static void list_takers(int option)
{
    const char *before = "";
    for (unsigned i = 0; i < TAKERS; i++)
        if (takes(i, option)) {
            fprintf(stderr, "%s%s%s", before, takers[i].command,
                    takers[i].cluster && option != 'c' ? " --cluster" : "");
            before = ", ";
        }
}

bool takes_all(const char *command, bool cluster, const char *given)
{
    unsigned row = 0;
    while (row < TAKERS && (strcmp(takers[row].command, command) || takers[row].cluster != cluster))
        row++;
    for (; *given; given++) {
        if (strchr(ALL_TAKE, *given) || (row < TAKERS && takes(row, *given)))
            continue;
        fprintf(stderr, "fabricctl: %s%s does not take --%s, which is for: ", command,
                cluster && *given != 'c' ? " --cluster" : "", long_name(*given));
        list_takers(*given);
        fputs("\n", stderr);
        return false;
    }
    return true;
}

/* Lists the commands of a noun, or all nouns, separated by commas. */
static void list_commands(const char *const *names, const char *noun, struct text *out)
{
    const char *last = "";
    for (; *names; last = *names++) {
        const char *name = *names;
        size_t n = strcspn(name, " ");
        if (noun && strlen(noun) == n && !strncmp(name, noun, n) && name[n])
            text_printf(out, "%s%s", text_str(out)[0] ? ", " : "", name + n + 1);
        else if (!noun && (strncmp(last, name, n) || last[n] != name[n]))
            text_printf(out, "%s%.*s", text_str(out)[0] ? ", " : "", (int)n, name);
    }
}

int takes_refuse(const char *const *names, unsigned num, char *const *word, const char *known)
{
    struct text typed = {0}, others = {0};
    for (unsigned i = 0; i < num && i < 2; i++)
        text_printf(&typed, "%s%.40s", i ? " " : "", word[i]);
    const char *near = nearest_name(text_str(&typed), names);
    if (num)
        list_commands(names, word[0], &others);
    if (known) {
        fprintf(stderr, "fabricctl: '%s' has too few words or too many. Try 'fabricctl --help'.\n", known);
    } else if (near) {
        fprintf(stderr, "fabricctl: no such command: '%s'; did you mean '%s'?\n", text_str(&typed), near);
    } else if (text_str(&others)[0]) {
        fprintf(stderr, "fabricctl: no such command: '%s'; '%s' has: %s\n", text_str(&typed), word[0],
                text_str(&others));
    } else {
        list_commands(names, NULL, &others);
        fprintf(stderr, "fabricctl: %s%s%s; there are: %s. Try 'fabricctl --help'.\n",
                num ? "no such command: '" : "no command", text_str(&typed), num ? "'" : "", text_str(&others));
    }
    text_free(&typed);
    text_free(&others);
    return 2;
}
