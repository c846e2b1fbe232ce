/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int input_add(struct input *in, int rank)
{
    size_t room = (size_t)in->count + 1;
    struct sink *reader = realloc(in->reader, room * sizeof(*reader));
    int *ranks, fds[2];

    in->reader = reader ? reader : in->reader;
    ranks = reader ? realloc(in->rank, room * sizeof(*ranks)) : NULL;
    in->rank = ranks ? ranks : in->rank;
    if (!ranks || pipe2(fds, O_CLOEXEC))
        return -1;
    in->terminal = isatty(0);
    sink_init(&reader[in->count], fds[1]);
    ranks[in->count++] = rank;
    in->open++;
    return fds[0];
}

/* A terminal may be read only from the foreground; from the background the kernel would stop mrrun. */
bool input_wanted(const struct input *in)
{
    for (int i = 0; i < in->count; i++)
        if (in->reader[i].fd >= 0 && sink_full(&in->reader[i]))
            return false;
    return in->open && !in->ended && (!in->terminal || tcgetpgrp(0) == getpgrp());
}

static void close_reader(struct input *in, int i)
{
    if (in->reader[i].fd < 0)
        return;
    close(in->reader[i].fd);
    sink_clear(&in->reader[i]);
    in->open--;
}

void input_forward(struct input *in, bool readable)
{
    char bytes[4096];
    ssize_t n = readable ? read(0, bytes, sizeof(bytes)) : -1;

    in->ended |= readable && (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN));
    for (int i = 0; i < in->count; i++) {
        struct sink *s = &in->reader[i];

        if (s->fd < 0)
            continue;
        if (n > 0)
            sink_put(s, bytes, (size_t)n);
        sink_flush(s);
        if (s->broken || (in->ended && !s->len))
            close_reader(in, i);
    }
}

void input_clear(struct input *in)
{
    for (int i = 0; i < in->count; i++)
        close_reader(in, i);
    free(in->reader);
    free(in->rank);
    *in = (struct input){0};
}
