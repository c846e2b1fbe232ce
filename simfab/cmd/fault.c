/* SPDX-License-Identifier: BSD-3-Clause */
/* `simfab fault`: faults of a running fabric. The engine knows the words: simfab/engine/fault/fault.h. */
#include "simfab/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The arguments, one per line; NULL without memory, or if an argument holds a line end. */
static char *join_lines(int argc, char **argv)
{
    size_t len = 1;
    char *line;

    for (int i = 0; i < argc; i++)
        len += strlen(argv[i]) + 1;
    line = calloc(1, len);
    for (int i = 0; line && i < argc; i++) {
        if (i)
            strcat(line, "\n");
        strcat(line, argv[i]);
    }
    return line;
}

int ask_engine(enum sf_op op, int argc, char **argv)
{
    const char *dir = fabric_dir();
    char *line, *answer = NULL;
    int status = 1;

    if (!dir)
        return EXIT_USAGE;
    for (int i = 0; i < argc; i++)
        if (strchr(argv[i], '\n')) {
            complain("an argument holds a line end");
            return EXIT_USAGE;
        }
    line = join_lines(argc, argv);
    if (line)
        answer = query_text(dir, "", op, line);
    if (!answer) {
        complain("the engine at %s does not answer: %s", dir, strerror(errno));
    } else if (*answer == '+') {
        fputs(answer + 1, stdout);
        status = fflush(stdout) ? 1 : 0;
    } else {
        complain("%s", *answer ? answer + 1 : "the engine says nothing");
        status = EXIT_USAGE;
    }
    free(answer);
    free(line);
    return status;
}

int cmd_fault(int argc, char **argv)
{
    if (!argc) {
        fputs(usage_fault, stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[0], "sm")) {
        if (argc < 2 || strcmp(argv[1], "kill")) {
            complain("simfab fault sm kill [standby] [N]: nothing else can be done to a subnet manager");
            return EXIT_USAGE;
        }
        return control_command("kill", argc - 2, argv + 2, usage_fault);
    }
    return ask_engine(SF_OP_FAULT, argc, argv);
}
