/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rails of hosts, as ranks there would find them, without any. mrrun runs itself on each host (--rails), inside the
 * fabric if the hosts are simulated; there it looks at the ports with the library's own code, and asks the host's
 * fabricd as a rank does.
 */
#ifndef MRRUN_RAILS_H
#define MRRUN_RAILS_H

#include "libmrmpi/conn/fabric/client.h"
#include "libmrmpi/verbs/verbs.h"
#include "mrrun/hosts.h"

struct host_rails {
    unsigned num;
    struct mr_rail_addr rail[MR_RAILS_MAX];   /* without queue pairs */
    unsigned distance[MR_RAILS_MAX];          /* from a rank there; smaller is nearer */
    uint16_t key[MR_RAILS_MAX][MR_PKEYS_MAX]; /* P_Keys of each, in the order of choice; 0 behind the last */
    struct mr_fabric_qos qos;
    int fabricd_error; /* errno; 0: fabricd has answered */
    bool known;        /* the host has answered */
};

/* Of this host, to standard output, for rails_ask(). 0, or 1 after saying why. */
int rails_print(void);
/* Of the first num hosts; env is that of the ranks. */
void rails_ask(const struct hosts *hosts, int num, char *const *env, struct host_rails *out);
/*
 * The same for the LID paths that large messages use from a rail of the host to a rail of another host, according to
 * its fabricd: question is DEVICE:PORT:LID:LMC. rails_ask_paths: 0 and the set, by number, or an errno.
 */
int rails_print_paths(const char *question);
int rails_ask_paths(const struct hosts *hosts, int i, char *const *env, const struct mr_rail_addr *from,
                    const struct mr_rail_addr *to, uint32_t *set);
/* The number of a rail's P_Keys. */
unsigned rails_num_keys(const struct host_rails *h, unsigned rail);
/* Does each of its rails do RDMA reads? */
bool rails_answer_reads(const struct host_rails *h);
/* The set of the host's rails nearest to ranks there, as counted by the library. */
uint32_t rails_nearest(const struct host_rails *h);
/*
 * The adapters used by ranks on this host, separated by commas; free(). Without any present adapter, the named adapters
 * count.
 */
char *rails_adapters(const struct host_rails *h, const char *named);
/* Prints near and far adapters to standard output. who: the host; NULL: no host named. */
void rails_print_distances(const struct host_rails *h, const char *who);

#endif
