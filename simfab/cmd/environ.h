/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of programs on simulated hosts. */
#ifndef SIMFAB_CMD_ENVIRON_H
#define SIMFAB_CMD_ENVIRON_H

#include <stdbool.h>

/* False, with a complaint: the environment has unknown settings for libsimfab.so. */
bool check_settings(void);
/* Turns this process's environment into that of a simulated host; false: complained. */
bool enter_host(const char *dir, const char *host, bool real_clock);
/* True if host exists; else complains, naming the hosts there are. */
bool check_host(const char *dir, const char *host);

#endif
