/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of an open umad. All but umad_page_make do nothing if the machine refused a page. */
#ifndef SIMFAB_UMAD_PAGE_H
#define SIMFAB_UMAD_PAGE_H

#include <stdint.h>

#include "simfab/umad_proto.h"

struct umad_file;

/*
 * A descriptor for the program, or -1: no page. The page is sealed: the program cannot shrink the memory under the
 * engine.
 */
int umad_page_make(struct umad_file *u);
void umad_page_close(struct umad_file *u);
void umad_page_header(struct umad_file *u); /* the file's header may have changed */
/* Registers the kind of the file's agent `id`; counts pending requests up (1) or down (-1). */
void umad_page_agent(struct umad_file *u, uint32_t id, enum umad_agent kind);
void umad_page_count(struct umad_file *u, uint32_t id, const uint8_t *mad, int more);

#endif
