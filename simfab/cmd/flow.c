/* SPDX-License-Identifier: BSD-3-Clause */
/* `simfab flow`: traffic without a process. The engine interprets the words (simfab/engine/fault/flow.h). */
#include "simfab/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simfab/cmd/paths.h"
#include "simfab/cmd/query.h"
#include "simfab/cmd/say.h"

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

const char usage_flow[] =
    "usage: simfab flow add FROM TO [SETTING]...\n"
    "       simfab flow del NUMBER|all\n"
    "       simfab flow list\n"
    "       simfab flow run TIME\n"
    "\n"
    "A flow is traffic without a process, from the adapter FROM to the adapter TO (\"h1 mlx5_0\"): messages in packets "
    "of the path's\n"
    "MTU that compete with those of programs for lanes, buses and credits, and of which nothing is sent again.\n"
    "\n"
    "  from_port=N, to_port=N   ports; the first with a cable otherwise\n"
    "  sl=N                     service level, 0\n"
    "  size=BYTES               of a message, 65536\n"
    "  rate=N                   10^6 bytes per second, or max, which it is otherwise: as much as goes\n"
    "  mtu=N                    smaller packets than the path could carry\n"
    "  path=N                   which of the destination's LIDs, counted from its base LID (0)\n"
    "  at=TIME, after=TIME      when it begins: of the fabric's time, or from now; now otherwise\n"
    "  for=TIME                 and how long it lasts; without end otherwise\n"
    "\n"
    "add prints the flow's number; list what became of each, in simulated figures. Flows alone do not make virtual "
    "time pass: they\n"
    "send while programs wait for something else, or while run lets so much time pass (1.5ms, 20us, 2s) and waits for "
    "that.\n";

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
