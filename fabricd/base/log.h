/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's log. Under systemd, messages for administrators go to the journal with a message id (MESSAGE_ID), by
 * which journalctl finds the message and systemd/mrmpi.catalog explains it. All other messages, and all messages
 * without systemd, are lines on stderr, with syslog levels when the journal reads them. Control characters are shown as
 * escapes. Any thread.
 */
#ifndef FABRICD_LOG_H
#define FABRICD_LOG_H

#include <stdint.h>
#include <systemd/sd-daemon.h>

#define LOG_POLICY_IN_FORCE "15526f782ed5464c89a56998224725d4"
#define LOG_POLICY_REFUSED  "8ce48460580948a885d9fca61a074c19"
#define LOG_FABRIC_VERIFIED "69efabdb32ce49f2804e7db8f4d18a7d"
#define LOG_FABRIC_DIFFERS  "b25b1cfc6adf4414b6a16f017b099dab"
#define LOG_FABRIC_MENDED   "6b0f7c52d3f94e0c9a1d8e24b7c35f16"
#define LOG_FABRIC_UNSEEN   "4215b24e20a74714a5320ca69fd79ef6"
#define LOG_RAILS_CHANGED   "feff84248e244e699207f5a2acb56bc2"
#define LOG_FOLLOW_WAITS    "d93868900e0b427bb987926d701d99d5"
#define LOG_STATE_NOT_KEPT  "c98b247d5172410ebb8a9bc28f9db67a"
#define LOG_RAIL_HEALTH     "5a07d1a7c84c4a2e9a2f0b6f5b1d9e34"
#define LOG_JOBS_DAMAGED    "67c2b0ed739044cd93bd2ad84ae0d9e1"

void log_line(const char *level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_event(const char *id, const char *level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * A line caused by a request of this user. Users except root and the daemon's own have a quota (quota.h), so that no
 * user fills the journal. log_left_out reports lines beyond the quota; call it about once per second. Both: main thread
 * only.
 */
void log_by_uid(uint32_t uid, const char *level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void log_left_out(void);

#define log_info(...)  log_line(SD_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(SD_WARNING, __VA_ARGS__)
#define log_error(...) log_line(SD_ERR, __VA_ARGS__)

#endif
