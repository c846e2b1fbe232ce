/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For LD_PRELOAD: a directory of users with controlled answers. Every user is called uN, and is in the groups named in
 * the lines of $SLOW_USERS/groups; while a file $SLOW_USERS/hang exists, no question is answered.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_GID 70000

static void wait_for_answer(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/hang", getenv("SLOW_USERS"));
    while (!access(path, F_OK))
        usleep(10000);
}

int getpwuid_r(uid_t uid, struct passwd *pw, char *buf, size_t size, struct passwd **found)
{
    wait_for_answer();
    snprintf(buf, size, "u%u", uid);
    *pw = (struct passwd){.pw_name = buf, .pw_uid = uid, .pw_gid = FIRST_GID};
    *found = pw;
    return 0;
}

int getgrouplist(const char *user, gid_t group, gid_t *groups, int *n)
{
    int room = *n;
    char path[4096], line[256];
    snprintf(path, sizeof(path), "%s/groups", getenv("SLOW_USERS"));
    FILE *f = fopen(path, "r");
    for (*n = 0; f && fgets(line, sizeof(line), f); ++*n)
        if (*n < room)
            groups[*n] = FIRST_GID + (gid_t)*n;
    if (f)
        fclose(f);
    (void)user;
    (void)group;
    return *n <= room ? *n : -1;
}

int getgrgid_r(gid_t gid, struct group *gr, char *buf, size_t size, struct group **found)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/groups", getenv("SLOW_USERS"));
    FILE *f = fopen(path, "r");
    *found = NULL;
    if (size < 65536) { /* with many members */
        if (f)
            fclose(f);
        return ERANGE;
    }
    for (gid_t i = FIRST_GID; f && fgets(buf, (int)size, f); i++)
        if (i == gid) {
            buf[strcspn(buf, "\n")] = 0;
            *gr = (struct group){.gr_name = buf, .gr_gid = gid};
            *found = gr;
            break;
        }
    if (f)
        fclose(f);
    return 0;
}
