/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy in force on disk, and what a change of it needs to survive a crash.
 *
 * STATE/current leads to the generation in force (generations.h): policy.yaml, policy.lock, tables.yaml, about, and on
 * the manager's host opensm-K.conf as written. The link is the only place that says which policy is in force, and it is
 * replaced at once. STATE/policy.yaml and policy.lock are links through it, for people.
 *
 * STATE/intent is there while opensm's configuration or ports may have something else than the current generation says.
 * It is synced before the first change, and removed when all agree again. Whoever finds it at a start brings opensm and
 * ports to the current generation, which is the old one or the new one.
 *
 * Generation 0 is what was there before the first policy: opensm's configuration, and the tables of all ports.
 */
#ifndef FABRICD_STORE_H
#define FABRICD_STORE_H

#include "fabricd/base/conf.h"
#include "fabricd/apply/generations.h"
#include "fabricd/apply/manager.h"

#define STORE_PORTS_MAX (64u << 20) /* bytes of the ports' tables of generation 0 */

/*
 * Makes the state directory if need be, takes it for this process (*lock_fd: as long as that is open), and removes what
 * a daemon that was killed has not written to its end. A directory that can only be read will do: then saving fails,
 * and *lock_fd may be left alone. 0 or a negative errno, which has been logged.
 */
int store_open(const struct conf *c, int *lock_fd);

/* The lock says of which policy it is. generation: of f. */
void store_stamp(struct in_force *f, uint64_t generation);
/* The number that the next policy of this host gets: above all that were ever used. */
uint64_t store_next_number(const struct conf *c, uint64_t current);

/*
 * A generation of f, which is stamped, with these files besides (n, at most STORE_FILES_MAX): complete, synced, and not
 * current. An f that is not valid keeps its lock only. Errors are logged, here and below.
 */
#define STORE_FILES_MAX 24
int store_write(const struct conf *c, const struct in_force *f, const struct generation_file *file, unsigned n,
                char name[GENERATION_NAME_MAX]);
/*
 * Makes a generation current. If that fails, the one before is current again; -EUCLEAN: it may be either, and what is
 * current now decides.
 */
int store_commit(const struct conf *c, const char *name);
/* Both. */
int store_save(const struct conf *c, const struct in_force *f);
/* The name of the current generation; "" if there is none. */
void store_current(const struct conf *c, char name[GENERATION_NAME_MAX]);
/* How an attempt or a change ended, for people, beside its generation. */
int store_tell(const struct conf *c, const char *name, const char *file, const struct text *text);

/* What is being changed: opensm's files, on the way to this generation. */
struct store_intent {
    char generation[GENERATION_NAME_MAX];
    unsigned n;
    char config[CONF_OPENSM_MAX][PATH_MAX];
    char partitions[CONF_OPENSM_MAX][PATH_MAX]; /* of the same opensm; "": of a version that wrote none */
};
int store_intend(const struct conf *c, const struct store_intent *i);
/*
 * -ENOENT: nothing is being changed. A file that is damaged has been put aside, and i, which takes its place, says that
 * all that run are to be brought to the current generation.
 */
int store_intent(const struct conf *c, struct store_intent *i);
int store_intent_done(const struct conf *c);

/*
 * Writes the lock of f beside the configured policy file, where hosts that follow that file wait for it; not if it is
 * there already. 0; -ENOENT: no file is configured, or it cannot be read; -EXDEV: it has another policy than f; another
 * negative errno: the lock could not be written.
 */
int store_publish(const struct conf *c, const struct in_force *f);
/* The same where by order no policy is in force, whatever the configured file has: the lock beside it says that. */
int store_publish_none(const struct conf *c, const struct in_force *f);
/*
 * After a rollback: the configured policy file gets the policy of f, so that hosts which follow it hear of that. What
 * it had is kept beside it (.before-rollback).
 */
int store_publish_policy(const struct conf *c, const struct in_force *f);
/* Did a rollback make this generation? */
bool store_is_rollback(const struct conf *c, const char *name);
/* What a daemon that was killed has left of writing it. */
void store_clean_published(const struct conf *c);

/*
 * What was in force when the daemon ended. -ENOENT: nothing; f then has the lock only, and so it has with -ENODATA:
 * nothing, by order. -EINVAL: the state is damaged,
 * and stays as it is. Nothing is made anew of a part of it, since running jobs could be given the levels of others, and
 * a policy that nobody has applied could come into force. Errors are logged.
 */
int store_load(const struct conf *c, struct in_force *f);
/* A generation that was kept, as store_load. */
int store_load_generation(const struct conf *c, const char *name, struct in_force *f, struct text *why);

/* A policy file and the lock beside it, if there is one. 0 or a negative errno. */
int store_read_file(const char *path, struct text *text, struct text *lock);

/*
 * Put the configured policy in force for this host's jobs without touching the fabric, with the lock beside it, else
 * with that of f. False: the lock is of another policy, or the policy is wrong, which has been logged; or this host may
 * manage the subnet and the lock does not say that the policy is in force there.
 */
bool store_adopt_file(const struct conf *c, struct in_force *f, const struct text *file);

#endif
