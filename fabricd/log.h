/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's log: lines on stderr, with syslog levels when the journal reads them. Main thread only. */
#ifndef FABRICD_LOG_H
#define FABRICD_LOG_H

#include <systemd/sd-daemon.h>

void log_line(const char *level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_info(...)  log_line(SD_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(SD_WARNING, __VA_ARGS__)
#define log_error(...) log_line(SD_ERR, __VA_ARGS__)

#endif
