/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of `ibnetdiscover -p`. */
#ifndef SIMFAB_NETLIST_PORTS_H
#define SIMFAB_NETLIST_PORTS_H

struct netlist;
struct parse_error;

/* Take a line. 0, -1 with err filled, or 1: another kind of line. */
int netlist_port_line(struct netlist *nl, const char *text, unsigned line, struct parse_error *err);

#endif
