/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of simulated hosts: the name of this process's host, and those of other hosts where a program resolves
 * them. All hosts of a fabric live on one machine, so a peer's socket is on the loopback interface.
 */
#include "simfab/preload/preload.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "simfab/preload/connect.h"

int __gethostname_chk(char *name, size_t len, size_t size);

SFP_EXPORT int gethostname(char *name, size_t len)
{
    size_t n = strlen(sfp_host());

    if (!sfp_enabled())
        return SFP_REAL(gethostname)(name, len);
    memcpy(name, sfp_host(), n < len ? n + 1 : len);
    if (n < len)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

SFP_EXPORT int __gethostname_chk(char *name, size_t len, size_t size)
{
    return len > size ? SFP_REAL(__gethostname_chk)(name, len, size) : gethostname(name, len);
}

SFP_EXPORT int uname(struct utsname *u)
{
    int st = SFP_REAL(uname)(u);

    if (st == 0 && sfp_enabled())
        snprintf(u->nodename, sizeof u->nodename, "%s", sfp_host());
    return st;
}

/* The engine's list of hosts has a name a line. */
static bool is_host(const char *name)
{
    size_t len = strlen(name), rep_len;
    void *rep = NULL;
    bool found = false;

    if (!len || !sfp_enabled() || strpbrk(name, ".:") || sfp_query(SF_OP_STATUS, "hosts", 5, &rep, &rep_len))
        return false;
    for (const char *line = rep, *end = line + rep_len; line < end && !found;) {
        const char *eol = memchr(line, '\n', end - line);
        size_t n = (eol ? eol : end) - line;

        found = n == len && !memcmp(line, name, n);
        line += n + 1;
    }
    free(rep);
    return found;
}

SFP_EXPORT int getaddrinfo(const char *restrict node, const char *restrict service,
                           const struct addrinfo *restrict hints, struct addrinfo **restrict res)
{
    return SFP_REAL(getaddrinfo)(node && is_host(node) ? "localhost" : node, service, hints, res);
}

SFP_EXPORT struct hostent *gethostbyname(const char *name)
{
    return SFP_REAL(gethostbyname)(is_host(name) ? "localhost" : name);
}
