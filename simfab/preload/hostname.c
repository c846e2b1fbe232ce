/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of the simulated host. */
#include "simfab/preload/preload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

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
