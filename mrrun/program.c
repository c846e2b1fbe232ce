/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrrun/others.h"
#include "mrrun/spawn.h"

static bool map_image(const char *path, struct mr_image *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *file = MAP_FAILED;
    bool ok;

    if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
        file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (file == MAP_FAILED)
        return false;
    ok = mr_image_of_file(file, (size_t)st.st_size, out);
    if (!ok)
        munmap(file, (size_t)st.st_size);
    return ok;
}

static void unmap_image(const struct mr_image *m)
{
    munmap((void *)m->base, m->file_bytes);
}

static void add_file(const char *path, const char *called, struct mr_allocators *out)
{
    struct mr_image m;

    if (!map_image(path, &m))
        return;
    mr_allocators_add(out, &m, called);
    unmap_image(&m);
}

static bool find_loader(const char *path, char loader[PATH_MAX])
{
    struct mr_image m;
    bool found = false;

    if (!map_image(path, &m))
        return false;
    for (int i = 0; i < m.num_headers && !found; i++) {
        const ElfW(Phdr) *p = &m.headers[i];

        found = p->p_type == PT_INTERP && p->p_filesz > 1 && p->p_filesz <= PATH_MAX && p->p_offset < m.file_bytes &&
                p->p_filesz <= m.file_bytes - p->p_offset;
        if (found)
            snprintf(loader, PATH_MAX, "%.*s", (int)p->p_filesz, (const char *)(m.base + p->p_offset));
    }
    unmap_image(&m);
    return found;
}

/* A library as it is asked for, and its file; NULL: there is none. */
typedef void library_fn(const char *name, const char *path, void *arg);

/*
 * The loader's own list: "name => path (address)", "name => not found" or "path (address)" in a line, in the order of
 * the search.
 */
static bool read_list(FILE *list, library_fn *fn, void *arg)
{
    char *line = NULL;
    size_t size = 0, lines = 0;

    while (getline(&line, &size, list) > 0) {
        char *name = line + strspn(line, " \t"), *arrow = strstr(name, " => ");
        char *path = strchr(arrow ? arrow : name, '/'), *end = path ? strstr(path, " (0x") : NULL;

        if (end)
            *end = '\0';
        if (arrow)
            *arrow = '\0';
        if (!end && !arrow)
            continue; /* not a file: the kernel's own code */
        fn(arrow ? name : path, end ? path : NULL, arg);
        lines += end != NULL;
    }
    free(line);
    return lines > 0;
}

/* NULL, or why not. */
static const char *list_libraries(char *loader, char *path, char *const *env, library_fn *fn, void *arg)
{
    char *words[] = {loader, (char *)"--list", path, NULL};
    posix_spawn_file_actions_t actions;
    int fds[2], status;
    FILE *list;
    pid_t pid;
    bool some;

    if (pipe2(fds, O_CLOEXEC))
        return "no pipe can be made";
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    status = posix_spawn(&pid, loader, &actions, NULL, words, env);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    list = fdopen(fds[0], "r");
    if (status || !list) {
        close(fds[0]);
        return "its loader cannot be run";
    }
    some = read_list(list, fn, arg);
    fclose(list);
    waitpid(pid, &status, 0);
    return some ? NULL : "its loader does not list its libraries";
}

static void add_allocator(const char *name, const char *path, void *arg)
{
    if (path)
        add_file(path, path, arg);
}

const char *program_allocators(const char *name, char *const *env, struct mr_allocators *out)
{
    char *path = spawn_find_program(name, NULL), loader[PATH_MAX];
    const char *why;

    memset(out, 0, sizeof *out);
    if (!path)
        return "it is not there";
    if (find_loader(path, loader)) {
        add_file(path, "", out);
        why = list_libraries(loader, path, env, add_allocator, out);
    } else {
        why = "it is no dynamically linked program of this machine";
    }
    free(path);
    return !why && !*out->front ? "no library of it has one" : why;
}

/* ---- MPI library ------------------------------------------------------------------------------------------------- */

struct mpi_search {
    const char *lib_dir; /* of our library */
    enum program_mpi found;
    char *text; /* of another MPI */
    size_t cap;
};

/*
 * Our library has the names of MPICH's interface: paths decide the library behind such a name. A preloaded library,
 * whose name is a path, is the user's choice.
 */
static void check_library(const char *name, const char *path, void *arg)
{
    struct mpi_search *s = arg;
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *whose = others_library(base);
    char real[PATH_MAX], *end;

    if (s->found == PROGRAM_WITH_OTHER)
        return;
    if (whose) {
        s->found = PROGRAM_WITH_OTHER;
        snprintf(s->text, s->cap, "is linked with %s, which is %s", base, whose);
        return;
    }
    if (!others_has_our_name(base))
        return;
    s->found = PROGRAM_WITH_OURS;
    if (!path || slash || !*s->lib_dir || !realpath(path, real) || !(end = strrchr(real, '/')))
        return;
    *end = '\0';
    if (!strcmp(real, s->lib_dir))
        return;
    s->found = PROGRAM_WITH_OTHER;
    snprintf(s->text, s->cap,
             "has its %s from %.100s, which is not this mrmpi's (an RPATH in it goes before "
             "LD_LIBRARY_PATH)",
             base, real);
}

enum program_mpi program_find_mpi(const char *path, char *const *env, const char *lib_dir, char *text, size_t cap)
{
    struct mpi_search search = {.lib_dir = lib_dir, .text = text, .cap = cap};
    char loader[PATH_MAX];

    if (find_loader(path, loader))
        list_libraries(loader, (char *)path, env, check_library, &search);
    return search.found;
}
