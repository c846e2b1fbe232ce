/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for rules, written by users. Besides not crashing: a refused text has the place of the error, and
 * accepted rules give the same answers when printed and read again.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/conn/route/rules.h"

static __attribute__((noinline)) void need(bool ok)
{
    if (!ok)
        abort();
}

static void same_answers(const struct mr_rules *a, const struct mr_rules *b)
{
    struct mr_rules_peer peer = {.count = 17, .rate = 1000, .class_name = "urgent"};

    for (unsigned c = 0; c <= a->num_sizes; c++)
        for (unsigned use = 0; use < MR_RULE_USES; use++)
            for (unsigned open = 0; open < 1u << MR_LINK_KINDS; open++) {
                unsigned kind = mr_rules_pick(a, use, c, &peer, open);

                need(kind == MR_LINK_KINDS || open >> kind & 1);
                need(mr_rules_pick(b, use, c, &peer, open) == kind);
            }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[MR_RULES_MAX * 256];
    struct mr_rules rules, again;
    struct mr_rules_error err;
    char *copy = malloc(size ? size : 1); /* an exact copy, so that reading past the end is detected */
    bool ok;

    need(copy);
    memcpy(copy, data, size);
    ok = mr_rules_parse(copy, size, &rules, &err);
    free(copy);
    if (!ok) {
        need(err.line >= 1 && err.line <= size + 1 && err.column >= 1 && err.column <= size + 1 && *err.what);
        return 0;
    }
    *text = '\0';
    for (unsigned i = 0; i < rules.num; i++) {
        mr_rules_print(&rules, i, text + strlen(text), 250);
        strcat(text, "\n");
    }
    need(mr_rules_parse(text, strlen(text), &again, &err));
    need(again.num == rules.num && again.num_sizes == rules.num_sizes);
    need(!memcmp(again.size, rules.size, sizeof rules.size));
    same_answers(&rules, &again);
    return 0;
}
