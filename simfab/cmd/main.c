/* SPDX-License-Identifier: BSD-3-Clause */
/* The simfab command: picks the subcommand, and holds the help texts. */
#include "simfab/cmd/cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char usage_run[] =
    "usage: simfab run --topology FILE [--model FILE] [--sm HOST]... [--opensm-option \"NAME VALUE\"]... [--no-opensm] "
    "[--trace FILE] -- CMD...\n"
    "\n"
    "Starts the engine of a simulated InfiniBand subnet and opensm in it, waits until the subnet is up, runs CMD, and "
    "takes\n"
    "everything down when CMD ends. Any number may run at once; no privilege is needed; nothing is left behind.\n"
    "\n"
    "  --topology FILE       a netlist as ibnetdiscover prints it, or the name of an installed one "
    "(two-hosts-two-rails)\n"
    "  --model FILE          a timing model, or the name of an installed one (sdr-pcix, ddr-connectx,\n"
    "                        hdr); default: built-in "
    "values\n"
    "  --sm HOST             the host that opensm runs on; default: the first of the netlist. A netlist of several\n"
    "                        subnets has an opensm for each: repeated, it names their hosts in turn\n"
    "  --standby-sm HOST     a second opensm, with less priority, that takes over when the first one is gone\n"
    "  --opensm-option TEXT  one more line for opensm.conf, such as \"lmc 1\"; may be repeated\n"
    "  --no-opensm           start no opensm: ports stay in state Initialize until CMD starts a subnet manager\n"
    "  --trace FILE          write down what happens on the links: see simfab trace\n"
    "\n"
    "CMD finds SIMFAB_DIR (the fabric's directory: engine.log, opensm/opensm.conf, opensm/opensm.log, "
    "opensm/opensm.pid; opensm-2/ of a second subnet) in\n"
    "its environment and this program in its PATH. Exit status: CMD's (128+N if signal N killed it); 2 if the command "
    "line, the\n"
    "topology or the model is wrong (nothing was started); 1 if the subnet did not come up or the engine died.\n";

const char usage_exec[] = "usage: simfab exec [--real-clock] HOST -- CMD...\n"
                          "\n"
                          "Becomes CMD on the simulated host HOST: it sees HOST's name, its InfiniBand devices and "
                          "virtual time. Works inside\n"
                          "`simfab run`.\n"
                          "\n"
                          "  --real-clock  CMD keeps the real clock, as daemons want it; the same as SIMFAB_CLOCK=real "
                          "in the environment\n";

const char usage_status[] = "usage: simfab status [--hosts|--counters [\"NODE PORT\"]]\n"
                            "\n"
                            "Prints the state of the fabric: virtual time, events, processes, ports with their LIDs. "
                            "--hosts prints the names of the\n"
                            "hosts, one per line; --counters prints data and packets by port and virtual lane.\n";

const char usage_opensm[] =
    "usage: simfab opensm pid|wait|restart [standby] [SUBNET]\n"
    "\n"
    "  pid      print the process id of the opensm that `simfab run` started (kill -HUP makes it read its "
    "configuration)\n"
    "  wait     wait until it has brought the subnet up\n"
    "  restart  stop it, start it again with $SIMFAB_DIR/opensm/opensm.conf, wait until the subnet is up (needed for "
    "lmc)\n"
    "\n"
    "A fabric of several subnets has several: the number picks one, 1 or 2 and so on; without it all are meant. "
    "standby: the one\n"
    "that `simfab run --standby-sm` started.\n";

const char usage_fault[] =
    "usage: simfab fault link NODE [PORT] SETTING...\n"
    "       simfab fault node NODE die|revive [WHEN]...\n"
    "       simfab fault host HOST die|revive|slow=FACTOR [WHEN]...\n"
    "       simfab fault sm kill [standby] [SUBNET]\n"
    "       simfab fault list|clear\n"
    "\n"
    "NODE is a node's description (\"h1 mlx5_0\") or its name in the netlist; NODE and HOST may be patterns "
    "(\"leaf*\") or "
    "all. Without\n"
    "PORT, or with PORT all, every cable of the node is meant. A fault concerns both directions of a cable, but "
    "loss_out= and drop=.\n"
    "\n"
    "  down, up      the cable is pulled, or back\n"
    "  loss=P        a packet vanishes with probability P\n"
    "  loss_out=P    the same, of those that leave the named port only\n"
    "  drop=N[,N...] of the packets that leave the named port from now on the Nth vanish; 0: none\n"
    "  corrupt=P     a packet arrives with a wrong checksum with probability P\n"
    "  overrun=P     the receiver has no room for a packet with probability P\n"
    "  fc=off        no flow control packets come through; fc=on: again\n"
    "  width=N       the link trains at N lanes at most: 1, 2, 4, 8, 12 (12: as ever)\n"
    "  speed=S       it trains at S at most: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR (NDR: as ever)\n"
    "  die, revive   no power, power again: a switch or adapter forgets all that it was told; on a host that dies all "
    "processes\n"
    "                are killed, and nobody gets on it until it is revived\n"
    "  slow=FACTOR   the host's adapters and buses take FACTOR times as long; 1: as ever\n"
    "\n"
    "WHEN, for links too:\n"
    "  at=TIME       at this time of the fabric (virtual; 1.5ms, 20us, 2s)\n"
    "  after=TIME    so much later than now\n"
    "  for=TIME      and undone so much later than that\n"
    "  nowait        virtual time does not stand still while the subnet manager deals with it\n"
    "\n"
    "sm kill: opensm, or the one that stands by, gets SIGKILL; simfab opensm restart starts it again.\n"
    "list prints the faults there are and those to come; clear ends them all.\n";

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

void complain(const char *fmt, ...)
{
    va_list ap;

    fputs("simfab: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

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
