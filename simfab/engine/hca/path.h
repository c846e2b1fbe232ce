/* SPDX-License-Identifier: BSD-3-Clause */
/* The paths of a connection: automatic migration, static rates. */
#ifndef SIMFAB_PATH_H
#define SIMFAB_PATH_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct packet;
struct qp;

/* The queue pair sends by this path from now on. */
void qp_take_path(struct qp *qp, const struct ibv_ah_attr *a, uint8_t port);
void qp_migrate(struct qp *qp); /* to the alternate path, and tell the program */
/* Does the packet come by a path of the connection? May migrate, or complete the arming. */
bool qp_path_accepts(struct qp *qp, const struct packet *p);
void qp_pace(struct qp *qp, const struct ibv_ah_attr *a, const struct packet *p);

#endif
