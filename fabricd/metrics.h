/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's state as OpenMetrics text for monitoring. The families are a table (metrics.c); a test compares the
 * table with fabricctl(1). Only gauges and counters, no exemplars and no times: node-exporter's textfile collector,
 * which reads Prometheus's older format, understands the same text.
 */
#ifndef FABRICD_METRICS_H
#define FABRICD_METRICS_H

#include "fabricd/daemon.h"

#define METRICS_MAX 131072u /* bytes at most; fabricd_metrics_complete is 0 if samples were left out */

/* all_jobs: the asker may see all jobs; else jobs are not told. */
void metrics_text(const struct daemon *d, bool all_jobs, struct text *out);

#endif
