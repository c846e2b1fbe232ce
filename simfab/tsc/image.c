/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a loaded object, by its program headers. */
#include "simfab/tsc/image.h"

static bool in_segment(const struct image *image, const ElfW(Phdr) * p, uintptr_t at, size_t bytes)
{
    uintptr_t offset = at - image->base - p->p_vaddr;

    return p->p_type == PT_LOAD && (p->p_flags & PF_R) && offset < p->p_filesz && bytes <= p->p_filesz - offset;
}

bool image_holds(const struct image *image, uintptr_t at, size_t bytes)
{
    for (size_t i = 0; i < image->num_phdrs; i++)
        if (in_segment(image, &image->phdr[i], at, bytes))
            return true;
    return false;
}

bool image_code(const struct image *image, uintptr_t at, struct span *segment)
{
    for (size_t i = 0; i < image->num_phdrs; i++) {
        const ElfW(Phdr) *p = &image->phdr[i];

        if ((p->p_flags & PF_X) && in_segment(image, p, at, 1)) {
            segment->from = image->base + p->p_vaddr;
            segment->to = segment->from + p->p_filesz;
            return true;
        }
    }
    return false;
}
