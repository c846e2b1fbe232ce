/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of hosts: patterns of the shell, and ranges of numbers as schedulers write them, node[001-128,200]. A range
 * keeps the digits of its first number: node[001-010] has node003 and not node3. Pure.
 */
#ifndef FABRICD_POLICY_HOSTS_H
#define FABRICD_POLICY_HOSTS_H

#include "fabricd/base/text.h"

#define HOST_MAX 65 /* with the terminating zero: a node's description has 64 characters */

/*
 * Brackets are ranges if they have nothing but numbers, and a comma, or a dash between numbers of several digits. Else
 * they are characters of the shell's patterns: [0-9], [24].
 */
bool hosts_match(const char *pattern, const char *host);
/* False: a range that ends before it begins, or numbers of more than 9 digits. */
bool hosts_good(const char *pattern);

/*
 * The names of a list as schedulers write it, "login1,node[001-128]", in which all brackets are ranges: appended to
 * out, each with a space before. False: no such list, a name longer than HOST_MAX, or more than most names.
 */
bool hosts_expand(const char *list, unsigned most, struct text *out);

/* Hosts of running jobs, with the partition of their job: sorted, none twice. Owns its keys. */
struct host_key {
    uint16_t pkey;
    char host[HOST_MAX];
};
struct host_keys {
    size_t n, cap;
    struct host_key *key;
};
void host_keys_add(struct host_keys *k, unsigned pkey, const char *host, size_t len);
void host_keys_sort(struct host_keys *k); /* after the last addition */
bool host_keys_have(const struct host_keys *k, unsigned pkey, const char *host);
void host_keys_copy(struct host_keys *to, const struct host_keys *from);
void host_keys_free(struct host_keys *k);

#endif
