/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of ranks to an inquiry, compared: see waits.h. */
#include "mrrun/waits.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COMMS_MAX = 256, LINES_MAX = 64, GROUPS_SHOWN = 16 };

/* A communicator, as seen by a rank. */
struct comm {
    unsigned context, collectives;
    char *name;
    bool *member; /* [ranks] */
};

enum kind { RECV, SEND, MESSAGE, KINDS };

/* An operation without its counterpart. */
struct pending {
    enum kind kind;
    unsigned context;
    int world, tag; /* ANY */
    unsigned long long bytes;
    char *state;
};

enum { ANY = -1 };

struct rank {
    enum { UNKNOWN, ANSWERED, SILENT, ENDED } is;
    char *why; /* SILENT */
    char function[64];
    unsigned long long waited_ms;
    struct comm comm[COMMS_MAX];
    int num_comms;
    struct pending pending[LINES_MAX];
    int num_pending;
    char *window[LINES_MAX];
    int num_windows;
    unsigned more[KINDS];
    char *text;      /* the description */
    bool *waits_for; /* [ranks] */
};

struct waits {
    int ranks;
    struct rank *of;
};

static void *need(void *p)
{
    if (!p)
        abort();
    return p;
}

struct waits *waits_new(int ranks)
{
    struct waits *w = calloc(1, sizeof(*w));

    if (w && !(w->of = calloc((size_t)ranks, sizeof(*w->of)))) {
        free(w);
        return NULL;
    }
    if (w)
        w->ranks = ranks;
    return w;
}

static void forget(struct rank *r)
{
    for (int i = 0; i < r->num_comms; i++) {
        free(r->comm[i].name);
        free(r->comm[i].member);
    }
    for (int i = 0; i < r->num_pending; i++)
        free(r->pending[i].state);
    for (int i = 0; i < r->num_windows; i++)
        free(r->window[i]);
    free(r->why);
    free(r->text);
    free(r->waits_for);
    *r = (struct rank){.is = UNKNOWN};
}

void waits_free(struct waits *w)
{
    for (int r = 0; w && r < w->ranks; r++)
        forget(&w->of[r]);
    if (w)
        free(w->of);
    free(w);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

enum { WORDS = 8 };

/* The words of a line, terminated by zero; the last word has the rest. Returns the number. */
static int split(char *line, char *word[WORDS])
{
    int n = 0;

    for (char *at = line; at && n < WORDS;) {
        char *tab = strchr(at, '\t');

        word[n++] = at;
        if (tab && n < WORDS)
            *tab++ = 0;
        at = tab;
    }
    return n;
}

static bool number(const char *text, unsigned long long *out)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    *out = strtoull(text, &end, 10);
    return !*end;
}

static bool number_or_any(const char *text, int *out)
{
    unsigned long long n;

    if (!strcmp(text, "*")) {
        *out = ANY;
        return true;
    }
    if (!number(text, &n) || n > INT32_MAX)
        return false;
    *out = (int)n;
    return true;
}

/* "0-3,7" */
static bool read_members(const char *text, bool *member, int ranks)
{
    while (*text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;

        if (end == text || first < 0)
            return false;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (last < first || last >= ranks || (*end && *end != ','))
            return false;
        for (long r = first; r <= last; r++)
            member[r] = true;
        text = *end ? end + 1 : end;
    }
    return true;
}

static void read_comm(struct rank *r, char *word[WORDS], int n, int ranks)
{
    unsigned long long context, size, collectives;
    bool *member;

    if (n != 6 || r->num_comms == COMMS_MAX || !number(word[1], &context) || !number(word[2], &size) ||
        !number(word[3], &collectives))
        return;
    member = need(calloc((size_t)ranks, sizeof(*member)));
    if (!read_members(word[5], member, ranks)) {
        free(member);
        return;
    }
    r->comm[r->num_comms++] = (struct comm){.context = (unsigned)context,
                                            .collectives = (unsigned)collectives,
                                            .name = need(strdup(word[4])),
                                            .member = member};
}

static void read_pending(struct rank *r, enum kind kind, char *word[WORDS], int n)
{
    unsigned long long context;
    struct pending p = {.kind = kind};
    int peer;

    if (n < 6 || r->num_pending == LINES_MAX || !number(word[1], &context) || !number_or_any(word[2], &p.world) ||
        !number_or_any(word[3], &peer) || !number_or_any(word[4], &p.tag) || !number(word[5], &p.bytes))
        return;
    p.context = (unsigned)context;
    p.state = n > 6 ? need(strdup(word[6])) : NULL;
    r->pending[r->num_pending++] = p;
}

static const char *const kind_name[KINDS] = {"recv", "send", "message"};
static const char *const kind_words[KINDS] = {"receive", "send", "message that no receive takes"};

static void read_answer_line(struct rank *r, char *line, int ranks)
{
    char *word[WORDS];
    unsigned long long count;
    int n = split(line, word);

    if (!strcmp(word[0], "function") && n == 3 && number(word[2], &r->waited_ms))
        snprintf(r->function, sizeof(r->function), "%s", word[1]);
    else if (!strcmp(word[0], "comm"))
        read_comm(r, word, n, ranks);
    else if (!strcmp(word[0], "window") && n == 3 && r->num_windows < LINES_MAX) {
        if (asprintf(&r->window[r->num_windows], "%s: %s", word[1], word[2]) < 0)
            abort();
        r->num_windows++;
    }
    for (int k = 0; k < KINDS; k++) {
        if (!strcmp(word[0], kind_name[k]))
            read_pending(r, (enum kind)k, word, n);
        else if (!strcmp(word[0], "more") && n == 3 && !strcmp(word[1], kind_name[k]) && number(word[2], &count))
            r->more[k] = (unsigned)count;
    }
}

bool waits_answer(struct waits *w, int rank, unsigned asked, const char *text, size_t len)
{
    struct rank *r = &w->of[rank];
    unsigned long long answers;
    char *copy = need(strndup(text, len)), *rest = copy, *line = strsep(&rest, "\n"), *word[WORDS];
    bool good = split(line, word) == 2 && !strcmp(word[0], "asked") && number(word[1], &answers) && answers == asked;

    forget(r);
    while (good && (line = strsep(&rest, "\n")))
        read_answer_line(r, line, w->ranks);
    good = good && *r->function;
    if (good)
        r->is = ANSWERED;
    free(copy);
    return good;
}

void waits_silent(struct waits *w, int rank, const char *why)
{
    forget(&w->of[rank]);
    w->of[rank].is = SILENT;
    w->of[rank].why = need(strdup(why));
}

void waits_ended(struct waits *w, int rank)
{
    forget(&w->of[rank]);
    w->of[rank].is = ENDED;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

/* In these a rank waits for its own messages only. */
static bool is_point_to_point(const char *function)
{
    static const char *const names[] = {"Send",    "Ssend",    "Bsend",        "Rsend",    "Recv",
                                        "Mrecv",   "Sendrecv", "Isend",        "Irecv",    "Wait",
                                        "Waitall", "Probe",    "Mprobe",       "Waitany",  "Waitsome",
                                        "Test",    "Testall",  "Testany",      "Testsome", "Sendrecv_replace",
                                        "Iprobe",  "Improbe",  "Buffer_detach"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(function + strlen("MPI_"), names[i]))
            return true;
    return false;
}

/* True if all awaited operations must complete, not just one of several. */
static bool waits_for_all(const char *function)
{
    return is_point_to_point(function) && strcmp(function, "MPI_Waitany") && strcmp(function, "MPI_Waitsome") &&
           strncmp(function, "MPI_Test", 8) && strcmp(function, "MPI_Iprobe") && strcmp(function, "MPI_Improbe");
}

static const struct comm *same_comm(const struct waits *w, const struct rank *r, const struct comm *c)
{
    for (int i = 0; i < r->num_comms; i++)
        if (r->comm[i].context == c->context &&
            !memcmp(r->comm[i].member, c->member, (size_t)w->ranks * sizeof(*c->member)))
            return &r->comm[i];
    return NULL;
}

static const struct comm *comm_of(const struct rank *r, unsigned context)
{
    for (int i = 0; i < r->num_comms; i++)
        if (r->comm[i].context == (context & ~1u))
            return &r->comm[i];
    return NULL;
}

/* Members that have not begun the latest collective operation of this rank on c. How many. */
static int lagging(const struct waits *w, const struct comm *c, bool *lags)
{
    int n = 0;

    for (int r = 0; r < w->ranks; r++) {
        const struct rank *other = &w->of[r];
        const struct comm *its = c->member[r] && other->is == ANSWERED ? same_comm(w, other, c) : NULL;

        lags[r] = its && its->collectives < c->collectives;
        n += lags[r];
    }
    return n;
}

static int silent(const struct waits *w, bool *is)
{
    int n = 0;

    for (int r = 0; r < w->ranks; r++)
        n += is[r] = w->of[r].is == SILENT;
    return n;
}

/* Members that are in the same operation by number, and in another function. How many. */
static int differing(const struct waits *w, const struct rank *mine, const struct comm *c, bool *differs)
{
    int n = 0;

    for (int r = 0; r < w->ranks; r++) {
        const struct rank *other = &w->of[r];
        const struct comm *its = c->member[r] && other->is == ANSWERED ? same_comm(w, other, c) : NULL;

        differs[r] = its && its->collectives == c->collectives && !is_point_to_point(other->function) &&
                     strcmp(other->function, mine->function);
        n += differs[r];
    }
    return n;
}

void waits_ranks(const bool *is, int ranks, FILE *out)
{
    int n = 0;
    const char *before = "";

    for (int r = 0; r < ranks; r++)
        n += is[r];
    fprintf(out, n == 1 ? "rank " : "ranks ");
    for (int r = 0, last; r < ranks; r = last + 1) {
        last = r;
        if (!is[r])
            continue;
        while (last + 1 < ranks && is[last + 1])
            last++;
        fprintf(out, last == r ? "%s%d" : "%s%d-%d", before, r, last);
        before = ",";
    }
}

static bool same_pending(const struct pending *a, const struct pending *b)
{
    return a->kind == b->kind && a->context == b->context && a->world == b->world && a->tag == b->tag &&
           a->bytes == b->bytes && !a->state == !b->state && (!a->state || !strcmp(a->state, b->state));
}

/* The first of `times` equal operations. */
static void describe_pending(const struct rank *r, const struct pending *p, int times, FILE *out)
{
    static const char *const verb[KINDS] = {"a receive from", "a send to", "a message that no receive takes, from"};
    const struct comm *c = comm_of(r, p->context);

    fprintf(out, "%s ", verb[p->kind]);
    if (p->world == ANY)
        fprintf(out, "any rank");
    else
        fprintf(out, "rank %d", p->world);
    if (p->tag == ANY)
        fprintf(out, ", any tag");
    else
        fprintf(out, ", tag %d", p->tag);
    fprintf(out, ", %s%llu byte%s", p->kind == RECV ? "up to " : "", p->bytes, p->bytes == 1 ? "" : "s");
    if (c && strcmp(c->name, "MPI_COMM_WORLD"))
        fprintf(out, ", on %s", c->name);
    if (p->state)
        fprintf(out, ": %s", p->state);
    if (times > 1)
        fprintf(out, " (%d times)", times);
    fputc('\n', out);
}

/* Of the program: not part of a collective operation, nor of a communicator of the library's own. */
static bool is_of_program(const struct rank *r, const struct pending *p)
{
    return !(p->context & 1) && comm_of(r, p->context);
}

static void describe_collectives(const struct waits *w, struct rank *r, FILE *out)
{
    bool *set = need(calloc((size_t)w->ranks, sizeof(*set)));
    bool told = false;

    for (int i = 0; i < r->num_comms; i++) {
        const struct comm *c = &r->comm[i];

        if (!lagging(w, c, set))
            continue;
        told = true;
        fprintf(out, "waits for ");
        waits_ranks(set, w->ranks, out);
        fprintf(out, ", still before this collective operation on %s\n", c->name);
        for (int k = 0; k < w->ranks; k++)
            r->waits_for[k] |= set[k];
    }
    for (int i = 0; !told && i < r->num_comms; i++) {
        const struct comm *c = &r->comm[i];

        if (!differing(w, r, c, set))
            continue;
        told = true;
        fprintf(out, "but ");
        waits_ranks(set, w->ranks, out);
        for (int k = 0; k < w->ranks; k++)
            if (set[k]) {
                fprintf(out, " called %s as the same operation on %s\n", w->of[k].function, c->name);
                break;
            }
    }
    if (!told && silent(w, set)) {
        fprintf(out, "may wait for ");
        waits_ranks(set, w->ranks, out);
        fprintf(out, "\n");
    }
    free(set);
}

/* The operations that a rank waits for, in lines; and the ranks concerned. */
static void describe(const struct waits *w, struct rank *r)
{
    size_t len;
    FILE *out = need(open_memstream(&r->text, &len));
    bool all = waits_for_all(r->function);

    r->waits_for = need(calloc((size_t)w->ranks, sizeof(*r->waits_for)));
    fprintf(out, "%s\n", r->function);
    if (!is_point_to_point(r->function))
        describe_collectives(w, r, out);
    for (int i = 0, times; i < r->num_pending; i += times) {
        const struct pending *p = &r->pending[i];

        for (times = 1; i + times < r->num_pending && same_pending(p, p + times); times++)
            ;
        if (!is_of_program(r, p))
            continue;
        describe_pending(r, p, times, out);
        if (all && p->kind != MESSAGE && p->world >= 0 && p->world < w->ranks)
            r->waits_for[p->world] = true;
    }
    for (int k = 0; k < KINDS; k++)
        if (r->more[k])
            fprintf(out, "and %u more of: %s\n", r->more[k], kind_words[k]);
    for (int i = 0; i < r->num_windows; i++)
        fprintf(out, "window %s\n", r->window[i]);
    fclose(out);
}

/* ---- a circle ---------------------------------------------------------------------------------------------------- */

/*
 * Depth first from rank `at`; path[0..n) leads there. Returns the length of a cycle, whose ranks are the end of path,
 * or 0.
 */
static int find_circle(const struct waits *w, int at, int *path, int n, char *seen)
{
    seen[at] = 1;
    path[n++] = at;
    for (int r = 0; w->of[at].waits_for && r < w->ranks; r++) {
        int found = 0;

        if (!w->of[at].waits_for[r])
            continue;
        if (seen[r] == 1) {
            while (path[n - 1 - found] != r)
                found++;
            return found + 1;
        }
        if (!seen[r] && (found = find_circle(w, r, path, n, seen)))
            return found;
    }
    seen[at] = 2;
    return 0;
}

/* The ranks of a cycle are at the end of the path. */
static void write_circle(const struct waits *w, const char *prefix, FILE *out)
{
    char *seen = need(calloc((size_t)w->ranks, 1));
    int *path = need(calloc((size_t)w->ranks, sizeof(*path))), found = 0;

    for (int r = 0; r < w->ranks && !found; r++)
        if (!seen[r])
            found = find_circle(w, r, path, 0, seen);
    if (found) {
        int n = 0, first;

        for (int r = 0; r < w->ranks; r++)
            n += seen[r] == 1;
        first = n - found;
        fprintf(out, "%sa circle: rank %d", prefix, path[first]);
        for (int i = 1; i <= found && i <= GROUPS_SHOWN; i++)
            fprintf(out, " waits for rank %d%s", path[first + i % found], i < found ? ", which" : "");
        fprintf(out, found > GROUPS_SHOWN ? " ... (%d ranks)\n" : "\n", found);
    }
    free(path);
    free(seen);
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

static void write_lines(const char *text, const char *prefix, FILE *out)
{
    const char *end = strchr(text, '\n');

    for (text = end + 1; *text; text = end + 1) {
        end = strchr(text, '\n');
        fprintf(out, "%s    %.*s\n", prefix, (int)(end - text), text);
    }
}

/* Ranks from `first` on with the same text, marked in set; and the shortest and longest wait. */
static void write_group(const struct waits *w, int first, bool *set, bool *done, const char *prefix, bool simulated,
                        FILE *out)
{
    const struct rank *mine = &w->of[first];
    unsigned long long least = mine->waited_ms, most = least;

    for (int r = 0; r < w->ranks; r++) {
        const struct rank *other = &w->of[r];

        set[r] = other->is == ANSWERED && !strcmp(other->text, mine->text);
        done[r] |= set[r];
        if (set[r] && other->waited_ms < least)
            least = other->waited_ms;
        if (set[r] && other->waited_ms > most)
            most = other->waited_ms;
    }
    fprintf(out, "%s", prefix);
    waits_ranks(set, w->ranks, out);
    fprintf(out, least / 100 == most / 100 ? ": %s, for %.1f s" : ": %s, for %.1f to %.1f s", mine->function,
            (double)least / 1000, (double)most / 1000);
    fprintf(out, simulated ? " of simulated time\n" : "\n");
    write_lines(mine->text, prefix, out);
}

static void write_silent(const struct waits *w, bool *set, const char *prefix, FILE *out)
{
    for (int first = 0; first < w->ranks; first++) {
        bool told = w->of[first].is != SILENT;

        for (int r = 0; !told && r < first; r++)
            told = w->of[r].is == SILENT && !strcmp(w->of[r].why, w->of[first].why);
        if (told)
            continue;
        for (int r = 0; r < w->ranks; r++)
            set[r] = w->of[r].is == SILENT && !strcmp(w->of[r].why, w->of[first].why);
        fprintf(out, "%s", prefix);
        waits_ranks(set, w->ranks, out);
        fprintf(out, ": %s\n", w->of[first].why);
    }
}

void waits_write(const struct waits *w, const char *prefix, bool simulated, FILE *out)
{
    bool *set = need(calloc((size_t)w->ranks, sizeof(*set))), *done = need(calloc((size_t)w->ranks, sizeof(*done)));
    int shown = 0, left = 0;

    for (int r = 0; r < w->ranks; r++)
        if (w->of[r].is == ANSWERED && !w->of[r].text)
            describe(w, &w->of[r]);
    write_silent(w, set, prefix, out);
    for (int r = 0; r < w->ranks; r++) {
        if (w->of[r].is != ANSWERED || done[r])
            continue;
        if (shown++ < GROUPS_SHOWN)
            write_group(w, r, set, done, prefix, simulated, out);
        else
            left++;
    }
    if (left)
        fprintf(out, "%sand %d more ranks\n", prefix, left);
    write_circle(w, prefix, out);
    free(done);
    free(set);
}
