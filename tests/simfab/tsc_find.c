/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tsc_find LIBRARY OBJECT...: loads each object, lets libsimfab-tsc.so patch the object, and prints the changed bytes
 * of its code: the object's path, and the address within. Run by tsc.sh, which compares with a disassembler's view of
 * the same file.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/tsc/tsc.h"

struct copy {
    char *path;
    uintptr_t base;
    const uint8_t *code;
    uint8_t *was;
    size_t bytes;
};

static struct copy copies[1024];
static size_t num_copies;

static int copy_code(struct dl_phdr_info *info, size_t size, void *arg)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        struct copy *c = &copies[num_copies];

        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || num_copies == sizeof copies / sizeof *copies)
            continue;
        *c = (struct copy){strdup(info->dlpi_name), info->dlpi_addr, (const uint8_t *)(info->dlpi_addr + p->p_vaddr),
                           malloc(p->p_filesz), p->p_filesz};
        memcpy(c->was, c->code, c->bytes);
        num_copies++;
    }
    return 0;
}

/* The expected change of an instruction, and no other. */
static bool show(const struct copy *c)
{
    bool good = true;

    for (size_t i = 0; i < c->bytes; i++)
        if (c->code[i] != c->was[i]) {
            good = good && c->was[i] == 0x0f && c->code[i] == SFT_TRAP;
            printf("%s %lx\n", c->path, (unsigned long)(c->code + i - (const uint8_t *)c->base));
        }
    return good;
}

int main(int argc, char **argv)
{
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    sft_patch_loaded_fn *patch = library ? (sft_patch_loaded_fn *)dlsym(library, "sft_patch_loaded") : NULL;
    struct sft_report first = {0}, again = {0};
    size_t changed = 0;
    bool good = true;

    for (int i = 2; i < argc; i++)
        if (!dlopen(argv[i], RTLD_LAZY))
            fprintf(stderr, "%s\n", dlerror());
    if (!patch)
        return 2;
    dl_iterate_phdr(copy_code, NULL);
    patch(NULL, &first);
    patch(NULL, &again);
    for (size_t i = 0; i < num_copies; i++) {
        good = show(&copies[i]) && good;
        for (size_t k = 0; k < copies[i].bytes; k++)
            changed += copies[i].code[k] != copies[i].was[k];
        free(copies[i].path);
        free(copies[i].was);
    }
    return good && first.patched == changed && !first.refused && !again.patched && !again.refused ? 0 : 1;
}
