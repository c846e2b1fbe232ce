/* SPDX-License-Identifier: BSD-3-Clause */
/* `simfab flow`: traffic without a process. The engine interprets the words (simfab/engine/fault/flow.h). */
#include "simfab/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Lets virtual time pass: the engine gives the end, then we ask until the end is reached. */
static int run_for(const char *how_long)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    const char *dir = fabric_dir();
    char line[128], *answer;

    if (!dir)
        return EXIT_USAGE;
    if (snprintf(line, sizeof line, "run\n%s", how_long) >= (int)sizeof line) {
        complain("\"%.20s...\" is not a time", how_long);
        return EXIT_USAGE;
    }
    while ((answer = query_text(dir, "", SF_OP_FLOW, line)) && *answer == '+' && strcmp(answer, "+yes")) {
        if (strcmp(answer, "+no")) /* this was the end of the wait */
            snprintf(line, sizeof line, "reached\n%s", answer + 1);
        free(answer);
        nanosleep(&pause, NULL);
    }
    if (!answer) {
        complain("the engine at %s does not answer: %s", dir, strerror(errno));
        return 1;
    }
    if (*answer == '+') {
        free(answer);
        return 0;
    }
    complain("%s", *answer ? answer + 1 : "the engine says nothing");
    free(answer);
    return EXIT_USAGE;
}

int cmd_flow(int argc, char **argv)
{
    if (!argc) {
        fputs(usage_flow, stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[0], "run") && argc == 2)
        return run_for(argv[1]);
    return ask_engine(SF_OP_FLOW, argc, argv);
}
