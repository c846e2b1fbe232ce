/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes libmrmpi(7) from its text and from the library's tables of settings and counters: page libmrmpi.7.in
 * >libmrmpi.7
 *
 * A line @NAME of the text becomes what the tables say of that setting or counter, @ANYTIME the names of the settings
 * that can be changed at any time. Each has to stand there once: it fails with the line, or the name, if one does not.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "libmrmpi/base/base.h"

/* A hyphen before a number is a minus, and one of a name is not where a line may break. */
static void put(const char *text)
{
    for (const char *c = text; *c; c++) {
        bool inside = c > text && c[-1] != ' ' && c[1] && c[1] != ' ';

        if (*c == '-' && (inside || isdigit((unsigned char)c[1])))
            putchar('\\');
        putchar(*c);
    }
}

static void put_sentence(const char *text)
{
    printf("%c", toupper((unsigned char)*text));
    put(text + 1);
    puts(".");
}

static const char *number(const struct mr_setting *s, long long n)
{
    static char text[32];
    unsigned shift = 0;

    while (s->kind == MR_SETTING_SIZE && shift < 30 && n && n % 1024 == 0) {
        n /= 1024;
        shift += 10;
    }
    snprintf(text, sizeof text, "%lld%.1s", n, &"\0KMG"[shift / 10]);
    return text;
}

static void put_range(const struct mr_setting *s)
{
    if (s->max == INT_MAX) {
        printf(", from %s", number(s, s->min));
    } else {
        fputs(", ", stdout);
        put(number(s, s->min));
        printf(" to %s", number(s, s->max));
    }
    printf("%s%s", *s->unit ? " " : "", s->unit);
}

static void put_setting(const struct mr_setting *s)
{
    static const char *const kinds[] = {"size", "int", "bool", "string"};

    printf(".TP\n.BR %s \" (%s", s->name, kinds[s->kind]);
    if (s->kind == MR_SETTING_SIZE || s->kind == MR_SETTING_INT)
        put_range(s);
    fputs(", default ", stdout);
    put(*s->standard ? s->standard : "\\(dq\\(dq");
    puts(")\"");
    put_sentence(s->help);
}

static bool setting_told[64], counter_told[MR_STAT_COUNT], rail_told[MR_RAIL_STAT_COUNT + 1];
static int errors;

static bool tell_setting(const char *name)
{
    struct mr_setting s;

    for (size_t i = 0; mr_config_setting(i, &s); i++)
        if (!setting_told[i] && !strcmp(s.name, name)) {
            put_setting(&s);
            return setting_told[i] = true;
        }
    return false;
}

static bool tell_counter(const char *name)
{
    for (int c = 0; c < MR_STAT_COUNT; c++)
        if (!counter_told[c] && !strcmp(mr_stat_name((enum mr_stat)c), name)) {
            printf(".TP\n.B %s\n", name);
            put_sentence(mr_stat_help((enum mr_stat)c));
            return counter_told[c] = true;
        }
    return false;
}

/* The share of rails comes after their counters. */
static const char *rail_name(int c)
{
    return c < MR_RAIL_STAT_COUNT ? mr_rail_stat_name((enum mr_rail_stat)c) : MR_RAIL_SHARE_NAME;
}

static bool tell_rail_counter(const char *name)
{
    for (int c = 0; c <= MR_RAIL_STAT_COUNT; c++)
        if (!rail_told[c] && !strcmp(rail_name(c), name)) {
            printf(".TP\n.B %s\n", name);
            put_sentence(c < MR_RAIL_STAT_COUNT ? mr_rail_stat_help((enum mr_rail_stat)c) : mr_rail_share_help);
            return rail_told[c] = true;
        }
    return false;
}

static void tell_anytime(void)
{
    struct mr_setting s;
    const char *between = "";

    fputs(".BR ", stdout);
    for (size_t i = 0; mr_config_setting(i, &s); i++)
        if (s.live) {
            printf("%s%s", between, s.name);
            between = " \", \" ";
        }
    putchar('\n');
}

static void fill_in(FILE *text, const char *file)
{
    char line[1024];

    for (int n = 1; fgets(line, sizeof line, text); n++) {
        if (*line != '@') {
            fputs(line, stdout);
            continue;
        }
        line[strcspn(line, "\n")] = '\0';
        if (!strcmp(line, "@ANYTIME"))
            tell_anytime();
        else if (!tell_setting(line + 1) && !tell_counter(line + 1) && !tell_rail_counter(line + 1))
            errors = fprintf(stderr, "%s:%d: no setting or counter, or a second time: %s\n", file, n, line + 1);
    }
}

static void complain_of_missing(const char *file)
{
    static const char text[] = "%s: says nothing of %s: add a line @%s\n";
    struct mr_setting s;

    for (size_t i = 0; mr_config_setting(i, &s); i++)
        if (!setting_told[i])
            errors = fprintf(stderr, text, file, s.name, s.name);
    for (int c = 0; c < MR_STAT_COUNT; c++)
        if (!counter_told[c])
            errors = fprintf(stderr, text, file, mr_stat_name((enum mr_stat)c), mr_stat_name((enum mr_stat)c));
    for (int c = 0; c <= MR_RAIL_STAT_COUNT; c++)
        if (!rail_told[c])
            errors = fprintf(stderr, text, file, rail_name(c), rail_name(c));
}

int main(int argc, char **argv)
{
    FILE *text = argc == 2 ? fopen(argv[1], "r") : NULL;

    if (!text || mr_config_count() > sizeof setting_told / sizeof *setting_told) {
        fprintf(stderr, text ? "too many settings\n" : "cannot read the text; use: page TEXT >PAGE\n");
        return 2;
    }
    fill_in(text, argv[1]);
    complain_of_missing(argv[1]);
    fclose(text);
    return errors || ferror(stdout) ? 1 : 0;
}
