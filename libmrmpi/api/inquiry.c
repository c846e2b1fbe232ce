/* SPDX-License-Identifier: BSD-3-Clause */
/* What this rank does about inquiries, and about ends of other ranks: see inquiry.h. */
#include "libmrmpi/api/inquiry.h"

#include <ctype.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libmrmpi/api/api.h"
#include "libmrmpi/api/life.h"
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/launch/launch.h"

static const struct mr_inquiry_board *board; /* NULL: nobody can ask */
static size_t board_bytes;
static uint32_t answered, ends_seen;

/* ---- the function ------------------------------------------------------------------------------------------------ */

/*
 * The outermost function of this library on the stack: a profiling library, or Fortran's, is outside. The flags of this
 * folder (module.mk) keep each MPI function on the stack for as long as its work takes, under its own name.
 */
static void find_function(char *name, size_t cap)
{
    void *frame[128];
    int n = backtrace(frame, 128);
    Dl_info own, at;

    snprintf(name, cap, "MPI_?");
    if (!dladdr((void *)find_function, &own))
        return;
    for (int i = 0; i < n; i++) {
        const char *symbol;

        if (!dladdr((char *)frame[i] - 1, &at) || at.dli_fbase != own.dli_fbase || !at.dli_sname)
            continue;
        symbol = at.dli_sname + (at.dli_sname[0] == 'P');
        if (!strncmp(symbol, "MPI_", 4) || !strncmp(symbol, "MPIX_", 5))
            snprintf(name, cap, "%s", symbol);
    }
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static void put_word(FILE *f, const char *text)
{
    for (; *text; text++)
        fputc(iscntrl((unsigned char)*text) ? '?' : *text, f);
}

/* Of world ranks: 0-3,7 */
static void put_ranks(FILE *f, const struct mr_group *g)
{
    for (int i = 0, last; i < g->size; i = last + 1) {
        for (last = i; last + 1 < g->size && g->world[last + 1] == g->world[last] + 1; last++)
            ;
        fprintf(f, last == i ? "%s%d" : "%s%d-%d", i ? "," : "", g->world[i], g->world[last]);
    }
}

static void put_comm(FILE *f, const struct mr_comm *c)
{
    fprintf(f, "comm\t%u\t%d\t%u\t", c->context, c->size, mr_coll_begun(c));
    put_word(f, *c->name ? c->name : "(unnamed)");
    fputc('\t', f);
    put_ranks(f, c->group);
    if (mr_comm_is_inter(c)) {
        fputc(',', f);
        put_ranks(f, mr_comm_peers(c));
    }
    fputc('\n', f);
}

static void each(enum abi_kind kind, void (*put)(FILE *f, const void *object), FILE *f)
{
    const struct api_table *t = &api_tables[kind];

    for (uint32_t i = 1; i < t->used && t->live; i++) {
        const struct api_slot *s = &t->chunks[i >> API_CHUNK_BITS][i & (API_CHUNK - 1)];

        if (s->object)
            put(f, s->object);
    }
}

static void put_made_comm(FILE *f, const void *object)
{
    put_comm(f, object);
}

static void put_window(FILE *f, const void *object)
{
    const struct mr_win *w = object;
    char text[512];

    mr_win_describe(w, text, sizeof(text));
    if (!*text)
        return;
    fprintf(f, "window\t");
    put_word(f, *w->name ? w->name : "(unnamed)");
    fprintf(f, "\t%s\n", text);
}

struct pending_lines {
    FILE *f;
    unsigned num[MR_PENDING_MESSAGE + 1];
};

static const char *const pending_kind[] = {"recv", "send", "message"};

static const struct mr_comm *comm_by_context(uint32_t ctx)
{
    const struct api_table *t = &api_tables[ABI_COMM];
    uint32_t context = ctx & ~(MR_CTX_GREETING | 1u);

    for (uint32_t i = 1; i < t->used && t->live; i++) {
        const struct mr_comm *c = t->chunks[i >> API_CHUNK_BITS][i & (API_CHUNK - 1)].object;

        if (c && c->context == context)
            return c;
    }
    return mr_comm_world->context == context ? mr_comm_world : mr_comm_self->context == context ? mr_comm_self : NULL;
}

static void print_rank_or_any(FILE *f, int n, int any)
{
    if (n == any)
        fprintf(f, "\t*");
    else
        fprintf(f, "\t%d", n);
}

static void put_pending(const struct mr_pending *p, void *arg)
{
    struct pending_lines *l = arg;
    const struct mr_comm *c = p->comm ? p->comm : comm_by_context(p->ctx);
    int world = c && p->peer >= 0 && p->peer < c->num_peers ? mr_comm_world_rank(c, p->peer) : MR_ANY_SOURCE;

    if (++l->num[p->kind] > MR_INQUIRY_LISTED)
        return;
    fprintf(l->f, "%s\t%u", pending_kind[p->kind], p->ctx);
    print_rank_or_any(l->f, world, MR_ANY_SOURCE);
    print_rank_or_any(l->f, p->peer, MR_ANY_SOURCE);
    print_rank_or_any(l->f, p->tag, MR_ANY_TAG);
    fprintf(l->f, "\t%llu%s%s\n", (unsigned long long)p->bytes, p->state ? "\t" : "", p->state ? p->state : "");
}

static void put_answer(FILE *f, uint64_t waited_ns)
{
    struct pending_lines l = {.f = f};
    char name[64];

    find_function(name, sizeof(name));
    fprintf(f, "asked\t%u\nfunction\t%s\t%llu\n", answered, name, (unsigned long long)(waited_ns / 1000000));
    put_comm(f, mr_comm_world);
    each(ABI_COMM, put_made_comm, f);
    mr_pt2pt_each_pending(put_pending, &l);
    each(ABI_WIN, put_window, f);
    for (int k = 0; k <= MR_PENDING_MESSAGE; k++)
        if (l.num[k] > MR_INQUIRY_LISTED)
            fprintf(f, "more\t%s\t%u\n", pending_kind[k], l.num[k] - MR_INQUIRY_LISTED);
}

/* A file that cannot be written is no answer; the program goes on as before. */
static void write_answer(uint64_t waited_ns)
{
    char name[4096], part[sizeof(name) + 8];
    FILE *f;
    bool written;

    snprintf(name, sizeof(name), MR_INQUIRY_ANSWER, mr_config.inquiry, mr_comm_world->rank);
    snprintf(part, sizeof(part), "%s.part", name);
    f = fopen(part, "we");
    if (!f)
        return;
    put_answer(f, waited_ns);
    written = !ferror(f);
    if (fclose(f) || !written || rename(part, name))
        unlink(part);
}

/* ---- news -------------------------------------------------------------------------------------------------------- */

/* The file comes from another process. */
static void take_ended(void)
{
    uint32_t room = (uint32_t)((board_bytes - sizeof(*board)) / sizeof(board->ended[0])),
             num = __atomic_load_n(&board->num_ended, __ATOMIC_ACQUIRE);

    for (num = num < room ? num : room; ends_seen < num; ends_seen++) {
        int rank = board->ended[ends_seen];

        if (mr_config.recover && rank >= 0 && rank < mr_comm_world->size && rank != mr_comm_world->rank)
            mr_end_read(rank);
    }
}

static void take_news(uint64_t waited_ns)
{
    uint32_t asked = __atomic_load_n(&board->asked, __ATOMIC_RELAXED);

    take_ended();
    if (asked == answered)
        return;
    answered = asked;
    write_answer(waited_ns);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

void api_inquiry_open(void)
{
    char name[4096];
    void *at = MAP_FAILED;
    struct stat st;
    int fd;

    if (!mr_config.inquiry || !*mr_config.inquiry ||
        (size_t)snprintf(name, sizeof(name), MR_INQUIRY_ASKED, mr_config.inquiry) >= sizeof(name))
        return;
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (!fstat(fd, &st) && st.st_size >= (off_t)sizeof(*board))
            at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
    }
    if (at == MAP_FAILED)
        return;
    board = at;
    board_bytes = (size_t)st.st_size;
    answered = board->asked;
    ends_seen = 0;
    mr_progress_inquiry(&board->news, take_news);
    take_ended();
}

void api_inquiry_close(void)
{
    mr_progress_inquiry(NULL, NULL);
    if (board)
        munmap((void *)board, board_bytes);
    board = NULL;
}
