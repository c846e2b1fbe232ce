/* SPDX-License-Identifier: BSD-3-Clause */
/* `simfab fault`: faults of a running fabric. The engine knows the words: simfab/engine/fault/fault.h. */
#include "simfab/cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#include "simfab/cmd/control.h"
#include "simfab/cmd/query.h"
#include "simfab/cmd/say.h"

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
