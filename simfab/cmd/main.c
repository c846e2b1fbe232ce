/* SPDX-License-Identifier: BSD-3-Clause */
/* The simfab command: picks the subcommand. */
#include "simfab/cmd/cmd.h"
#include "simfab/cmd/say.h"

#include <stdio.h>
#include <string.h>

static const struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *usage;
    const char *about;
} subcommands[] = {
    {"run", cmd_run, usage_run, "bring up a simulated InfiniBand subnet, run a command, take it down"},
    {"exec", cmd_exec, usage_exec, "inside it: run a command on a simulated host"},
    {"status", cmd_status, usage_status, "inside it: what the subnet looks like"},
    {"opensm", cmd_opensm, usage_opensm, "inside it: the subnet manager"},
    {"fault", cmd_fault, usage_fault, "inside it: break and mend links, switches, adapters and hosts"},
    {"flow", cmd_flow, usage_flow, "inside it: traffic without a process; let virtual time pass"},
    {"trace", cmd_trace, usage_trace, "inside it: write down what happens on the links"},
    {"topology", cmd_topology, usage_topology, "write the netlist of a star, a fat tree, ..."},
};

enum { NUM_SUBCOMMANDS = sizeof subcommands / sizeof subcommands[0] };

static void print_usage(FILE *f)
{
    fputs("usage: simfab SUBCOMMAND ...\n\n", f);
    for (size_t i = 0; i < NUM_SUBCOMMANDS; i++)
        fprintf(f, "  simfab %-9s %s\n", subcommands[i].name, subcommands[i].about);
    fputs("\n`simfab SUBCOMMAND --help` tells more; `simfab --version` prints the version.\n", f);
}

static void complain_unknown(const char *name)
{
    char list[256] = "";

    for (size_t i = 0, n = 0; i < NUM_SUBCOMMANDS && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s",
                              !i                        ? ""
                              : i + 1 < NUM_SUBCOMMANDS ? ", "
                                                        : " or ",
                              subcommands[i].name);
    complain("there is no subcommand \"%s\": use %s", name, list);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_usage(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version")) {
        puts("simfab " MRMPI_VERSION);
        return 0;
    }
    for (size_t i = 0; i < NUM_SUBCOMMANDS; i++) {
        const struct subcommand *s = &subcommands[i];

        if (strcmp(argv[1], s->name))
            continue;
        if (argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h"))) {
            fputs(s->usage, stdout);
            return 0;
        }
        return s->run(argc - 2, argv + 2);
    }
    complain_unknown(argv[1]);
    return EXIT_USAGE;
}
