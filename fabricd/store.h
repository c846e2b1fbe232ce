/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy in force on disk: STATE/policy.yaml, policy.lock and generation. Each is replaced at once or not at all,
 * the lock first. Whatever pair of policy and lock a crash leaves behind, classes keep their service levels.
 */
#ifndef FABRICD_STORE_H
#define FABRICD_STORE_H

#include "fabricd/conf.h"
#include "fabricd/manager.h"

/*
 * Makes the state directory if need be, takes it for this process (*lock_fd: as long as that is open), and removes what
 * a daemon that was killed has not written to its end. A directory that can only be read will do: then saving fails,
 * and *lock_fd may be left alone. 0 or a negative errno, which has been logged.
 */
int store_open(const struct conf *c, int *lock_fd);

/*
 * Before a policy of len bytes is put in force: takes the room that keeping it needs, until store_save or
 * store_release. 0, or a negative errno if it could not be kept.
 */
int store_reserve(const struct conf *c, size_t len);
void store_release(const struct conf *c);

/* The lock says of which policy it is. generation: of f. */
void store_stamp(struct in_force *f, uint64_t generation);

/* 0, or a negative errno: what cannot be written is logged, and nothing after it is written. f is stamped. */
int store_save(const struct conf *c, const struct in_force *f);
int store_save_lock(const struct conf *c, const struct in_force *f);

/*
 * Writes the lock of f beside the configured policy file, where hosts that follow that file wait for it; not if it is
 * there already. 0; -ENOENT: no file is configured, or it cannot be read; -EXDEV: it has another policy than f; another
 * negative errno: the lock could not be written.
 */
int store_publish(const struct conf *c, const struct in_force *f);

/*
 * What was in force when the daemon ended. -ENOENT: nothing; f then has the lock only. -EINVAL: the lock cannot be
 * read. It is not made anew, since running jobs could be given the levels of others. Errors are logged.
 */
int store_load(const struct conf *c, struct in_force *f);
uint64_t store_load_generation(const struct conf *c);

/* A policy file and the lock beside it, if there is one. 0 or a negative errno. */
int store_read_file(const char *path, struct text *text, struct text *lock);

/*
 * Put the configured policy in force for this host's jobs without touching the fabric, with the lock beside it, else
 * with that of f. False: the lock is of another policy, or the policy is wrong, which has been logged; or this host may
 * manage the subnet and the lock does not say that the policy is in force there.
 */
bool store_adopt_file(const struct conf *c, struct in_force *f, const struct text *file);

#endif
