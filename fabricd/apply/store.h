/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy in force on disk, and the facts by which a change survives a crash.
 *
 * STATE/current leads to the generation in force (generations.h): policy.yaml, policy.lock, tables.yaml, about, and on
 * the manager's host opensm-K.conf as written. Only the link decides which policy is in force, and the link is replaced
 * at once. STATE/policy.yaml and policy.lock are links through it, for people.
 *
 * STATE/intent exists while opensm's configuration or ports may differ from the current generation. The intent is
 * synced before the first change, and removed when all agree again. A start that finds an intent brings opensm and
 * ports to the current generation, which is the old one or the new one.
 *
 * Generation 0 is the state before the first policy: opensm's configuration, and the tables of all ports.
 */
#ifndef FABRICD_STORE_H
#define FABRICD_STORE_H

#include "fabricd/base/conf.h"
#include "fabricd/apply/generations.h"
#include "fabricd/apply/manager.h"

#define STORE_PORTS_MAX (64u << 20) /* bytes of the ports' tables of generation 0 */

/*
 * Makes the state directory if necessary, takes it for this process (*lock_fd: as long as it is open), and removes
 * incomplete files of a killed daemon. A read-only directory will do: then saving fails, and *lock_fd may be left
 * alone. 0 or a negative errno, which has been logged.
 */
int store_open(const struct conf *c, int *lock_fd);

/* Writes the policy's name into the lock. generation: of f. */
void store_stamp(struct in_force *f, uint64_t generation);
/* The number for the next policy of this host: above all numbers ever used. */
uint64_t store_next_number(const struct conf *c, uint64_t current);

/*
 * Writes a generation of f, which is stamped, with these additional files (n, at most STORE_FILES_MAX): complete,
 * synced, and not current. An f that is not valid keeps its lock only. Errors are logged, here and below.
 */
#define STORE_FILES_MAX 24
int store_write(const struct conf *c, const struct in_force *f, const struct generation_file *file, unsigned n,
                char name[GENERATION_NAME_MAX]);
/*
 * Makes a generation current. If that fails, the former generation is current again; -EUCLEAN: either may be, and
 * current decides.
 */
int store_commit(const struct conf *c, const char *name);
/* Both. */
int store_save(const struct conf *c, const struct in_force *f);
/* The name of the current generation; "" if there is none. */
void store_current(const struct conf *c, char name[GENERATION_NAME_MAX]);
/* How an attempt or a change ended, for people, beside its generation. */
int store_tell(const struct conf *c, const char *name, const char *file, const struct text *text);

/* The change under way: opensm's files, on the way to this generation. */
struct store_intent {
    char generation[GENERATION_NAME_MAX];
    unsigned n;
    char config[CONF_OPENSM_MAX][PATH_MAX];
    char partitions[CONF_OPENSM_MAX][PATH_MAX]; /* of the same opensm; "": of a version that wrote none */
};
int store_intend(const struct conf *c, const struct store_intent *i);
/*
 * -ENOENT: no change is under way. A damaged file has been put aside; i, in its place, says that all running opensm are
 * to be brought to the current generation.
 */
int store_intent(const struct conf *c, struct store_intent *i);
int store_intent_done(const struct conf *c);

/*
 * Writes the lock of f beside the configured policy file, for hosts that follow the file, unless the lock is there
 * already. 0; -ENOENT: no file is configured, or it cannot be read; -EXDEV: the file has another policy than f; another
 * negative errno: the lock could not be written.
 */
int store_publish(const struct conf *c, const struct in_force *f);
/* The same if by order no policy is in force, whatever the configured file has: the lock beside it says so. */
int store_publish_none(const struct conf *c, const struct in_force *f);
/*
 * After a rollback: the configured policy file gets the policy of f, for hosts that follow the file. Its former
 * contents are kept beside it (.before-rollback).
 */
int store_publish_policy(const struct conf *c, const struct in_force *f);
/*
 * STATE/unpublished: what a rollback gives to hosts that follow could not be written, and is to be tried again until
 * somebody edits the configured file. store_is_unpublished: still of the current generation, and the file is as then.
 */
int store_note_unpublished(const struct conf *c);
bool store_is_unpublished(const struct conf *c);
void store_published(const struct conf *c);
/* Did a rollback make this generation? */
bool store_is_rollback(const struct conf *c, const char *name);
/* Removes incomplete files of a killed daemon. */
void store_clean_published(const struct conf *c);

/*
 * Loads the policy in force at the daemon's end. -ENOENT: none; f then has the lock only, as with -ENODATA: none, by
 * order. -EINVAL: the state is damaged, and stays as it is. No part of a damaged state is used, because running jobs
 * could get the levels of others, and a policy that nobody has applied could come into force. Errors are logged.
 */
int store_load(const struct conf *c, struct in_force *f);
/* Loads a kept generation, as store_load. */
int store_load_generation(const struct conf *c, const char *name, struct in_force *f, struct text *why);

/* Reads a policy file and the lock beside it, if there is one. 0 or a negative errno. */
int store_read_file(const char *path, struct text *text, struct text *lock);

/*
 * Puts the configured policy in force for this host's jobs without touching the fabric, with the lock beside it, else
 * with the lock of f. False: the lock is of another policy, or the policy is wrong, which has been logged; or this host
 * may manage the subnet and the lock does not say that the policy is in force there.
 */
bool store_adopt_file(const struct conf *c, struct in_force *f, const struct text *file);

#endif
