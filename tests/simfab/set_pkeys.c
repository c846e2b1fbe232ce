/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes a port's P_Key table like a subnet manager, in one datagram, to a port of this host: set_pkeys DEVICE KEY...
 * The first 32 entries become these keys, followed by 0. opensm restores the table of its partitions.conf at its next
 * heavy sweep, not before.
 */
#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int classes[] = {IB_SMI_DIRECT_CLASS};
    ib_portid_t here = {.drpath = {.cnt = 0}}; /* no hops */
    uint8_t table[IB_SMP_DATA_SIZE] = {0};
    struct ibmad_port *port;

    if (argc < 3 || argc > 34 || umad_init() || !(port = mad_rpc_open_port(argv[1], 1, classes, 1))) {
        fprintf(stderr, "usage: set_pkeys DEVICE KEY...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        unsigned long key = strtoul(argv[i], NULL, 0);

        table[2 * (i - 2)] = (uint8_t)(key >> 8);
        table[2 * (i - 2) + 1] = (uint8_t)key;
    }
    if (!smp_set_via(table, &here, IB_ATTR_PKEY_TBL, 0, 0, port)) {
        fprintf(stderr, "set_pkeys: %s does not answer\n", argv[1]);
        return 1;
    }
    mad_rpc_close_port(port);
    return 0;
}
