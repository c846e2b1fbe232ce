/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects loaded in this process, and those already patched. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "simfab/tsc/code.h"
#include "simfab/tsc/image.h"
#include "simfab/tsc/tsc.h"

/* A searched object, still loaded: another object may come to its place. */
static struct done {
    uintptr_t base;
    const ElfW(Phdr) * phdr;
    bool seen;
} * done;
static size_t num_done, cap_done;

struct look {
    uintptr_t leave, kernel;
    struct sft_report *report;
};

/*
 * True for a new object. Without memory to remember the object, the search repeats: patched instructions are not found
 * again.
 */
static bool is_new(const struct dl_phdr_info *info)
{
    for (size_t i = 0; i < num_done; i++)
        if (done[i].base == info->dlpi_addr && done[i].phdr == info->dlpi_phdr) {
            done[i].seen = true;
            return false;
        }
    if (num_done == cap_done) {
        size_t cap = cap_done ? 2 * cap_done : 64;
        struct done *more = reallocarray(done, cap, sizeof *done);

        if (!more)
            return true;
        done = more;
        cap_done = cap;
    }
    done[num_done++] = (struct done){info->dlpi_addr, info->dlpi_phdr, true};
    return true;
}

/* Objects not seen are no longer loaded. */
static void forget_unloaded(void)
{
    size_t kept = 0;

    for (size_t i = 0; i < num_done; i++)
        if (done[i].seen) {
            done[kept] = done[i];
            done[kept++].seen = false;
        }
    num_done = kept;
}

/*
 * Places found in an object. Patching begins after the whole object was read, because patched code no longer decodes to
 * the original instructions.
 */
struct sites {
    const uint8_t **at;
    size_t num, cap;
};

static void remember(struct sites *s, const uint8_t *at, struct sft_report *report)
{
    if (s->num == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        const uint8_t **more = reallocarray(s->at, cap, sizeof *more);

        if (!more) {
            report->refused++;
            return;
        }
        s->at = more;
        s->cap = cap;
    }
    s->at[s->num++] = at;
}

static bool find_function(const struct image *image, uintptr_t at, struct span *function)
{
    uintptr_t prev_end;

    return frames_find(image, at, function, &prev_end) || symbols_find(image, at, prev_end, function);
}

/* The code from FROM to TO. Each function is read once: place is the beginning of an instruction in it. */
static void find_in(const struct image *image, const uint8_t *from, const uint8_t *to, struct sites *sites,
                    struct sft_report *report)
{
    const uint8_t *at = from, *place = NULL, *instruction;
    struct span function = {0}, before = {0};

    for (; (at = code_candidate(at, to)) < to; at++, before = function) {
        if (!find_function(image, (uintptr_t)at, &function))
            continue;
        if (function.from != before.from || place > at)
            place = (const uint8_t *)function.from;
        instruction = code_instruction(&place, (const uint8_t *)function.to, at);
        if (instruction)
            remember(sites, instruction, report);
    }
}

static void patch_image(const struct image *image, struct sft_report *report)
{
    struct sites sites = {0};

    for (size_t i = 0; i < image->num_phdrs; i++) {
        const ElfW(Phdr) *p = &image->phdr[i];
        const uint8_t *from = (const uint8_t *)(image->base + p->p_vaddr);

        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && (p->p_flags & PF_R))
            find_in(image, from, from + p->p_filesz, &sites, report);
    }
    for (size_t i = 0; i < sites.num; i++)
        if (sft_write((void *)sites.at[i], SFT_TRAP))
            report->patched++;
        else
            report->refused++;
    free(sites.at);
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct image image = {.base = info->dlpi_addr,
                                .phdr = info->dlpi_phdr,
                                .num_phdrs = info->dlpi_phnum,
                                .path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe"};
    const struct look *l = arg;

    if (!is_new(info) || image_holds(&image, l->leave, 1) || image_holds(&image, l->kernel, 1))
        return 0;
    patch_image(&image, l->report);
    return 0;
}

__attribute__((visibility("default"))) void sft_patch_loaded(const void *leave, struct sft_report *report)
{
    struct look l = {.leave = (uintptr_t)leave, .kernel = getauxval(AT_SYSINFO_EHDR), .report = report};
    int e = errno;

    dl_iterate_phdr(look_at, &l);
    forget_unloaded();
    errno = e;
}
