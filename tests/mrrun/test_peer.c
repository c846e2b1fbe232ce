/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of the other end of a connection: this user's is taken, another user's is not. */
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrrun/peer.h"
#include "tests/check.h"

static int listener;
static struct sockaddr_in at;

static void listen_here(void)
{
    socklen_t len = sizeof(at);

    at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert(!bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 4));
    ck_assert(!getsockname(listener, (struct sockaddr *)&at, &len));
}

/* Connects as this user, and stays until killed. */
static pid_t connect_as(uid_t uid)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    if (uid != getuid() && setuid(uid))
        _exit(2);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)))
        _exit(1);
    pause();
    _exit(0);
}

static bool is_ours(uid_t uid)
{
    pid_t pid = connect_as(uid);
    int fd = accept(listener, NULL, NULL);
    bool ours = peer_is_ours(fd);

    close(fd);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return ours;
}

START_TEST(processes_of_this_user_are_ours)
{
    listen_here();
    ck_assert(is_ours(getuid()));
}
END_TEST

/* Only root can be another user. */
START_TEST(processes_of_another_user_are_not)
{
    enum { NOBODY = 65534 };

    if (getuid())
        return;
    listen_here();
    ck_assert(!is_ours(NOBODY));
}
END_TEST

START_TEST(a_peer_that_has_gone_is_not)
{
    listen_here();
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct linger at_once = {.l_onoff = 1};

    ck_assert(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
    int own = accept(listener, NULL, NULL);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
    ck_assert(!peer_is_ours(own));
    ck_assert(!peer_is_ours(listener));
}
END_TEST

int main(void)
{
    TCase *peers = tcase_create("peers");

    tcase_add_test(peers, processes_of_this_user_are_ours);
    tcase_add_test(peers, processes_of_another_user_are_not);
    tcase_add_test(peers, a_peer_that_has_gone_is_not);
    return check_run(peers, NULL);
}
