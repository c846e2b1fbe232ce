/* SPDX-License-Identifier: BSD-3-Clause */
/* Netlists from files. */
#ifndef SIMFAB_NETLIST_PARSE_H
#define SIMFAB_NETLIST_PARSE_H

struct netlist;
struct parse_error;

/* 0, or -1 with err filled. Free in both cases (netlist_free). path must outlive the netlist. */
int netlist_parse(const char *path, struct netlist *nl, struct parse_error *err);

#endif
