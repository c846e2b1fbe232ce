/* SPDX-License-Identifier: BSD-3-Clause */
/* The answers to `simfab status`, `hosts` and `counters`. */
#ifndef SIMFAB_STATUS_H
#define SIMFAB_STATUS_H

struct sim;
struct text;

void hosts_text(struct sim *s, struct text *t);
void status_text(struct sim *s, struct text *t);
void counters_text(struct sim *s, const char *filter, struct text *t);

#endif
