/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program without MPI that loads a library with MPI, like an interpreter, and has an allocator of its own: host
 * local|global|deep LIBRARY [argument]. Another thread allocates meanwhile.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int done;

static void *allocate(void *arg)
{
    while (!done) {
        char *p = malloc(3000000), *q = strdup("a");

        if (!p || !q)
            abort();
        p[0] = p[2999999] = 1;
        free(p);
        free(q);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int mode = argc < 3                     ? 0
               : !strcmp(argv[1], "deep")   ? RTLD_LOCAL | RTLD_DEEPBIND
               : !strcmp(argv[1], "global") ? RTLD_GLOBAL
                                            : RTLD_LOCAL;
    void *library = argc < 3 ? NULL : dlopen(argv[2], RTLD_LAZY | mode);
    int (*run)(int, char **) = library ? (int (*)(int, char **))dlsym(library, "run") : NULL, status;
    pthread_t t;

    if (!run) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    pthread_create(&t, NULL, allocate, NULL);
    status = run(argc - 2, argv + 2);
    done = 1;
    pthread_join(t, NULL);
    return status;
}
