/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock, the users and the strings of the tool information interface: below its functions, and calls none of them.
 */
#include "libmrmpi/api/mpi_t.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

int api_t_users;
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

void api_t_lock(void)
{
    pthread_mutex_lock(&own);
}

void api_t_unlock(void)
{
    pthread_mutex_unlock(&own);
}

void api_t_string(char *to, int *len, const char *text)
{
    if (!len)
        return;
    if (!to || *len <= 0) {
        *len = (int)strlen(text) + 1;
        return;
    }
    *len = snprintf(to, (size_t)*len, "%s", text) < *len ? (int)strlen(text) + 1 : *len;
}
