/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of an open umad, for the program: its agents, and the number of pending requests of each. */
#include "simfab/engine/mgmt/umad_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simfab/engine/mgmt/umad.h"
#include "simfab/umad_proto.h"

void umad_page_header(struct umad_file *u)
{
    if (u->page)
        u->page->hdr_bytes = u->pkey_abi ? UMAD_HDR : UMAD_HDR_OLD;
}

void umad_page_agent(struct umad_file *u, uint32_t id, enum umad_agent kind)
{
    if (u->page)
        u->page->agent[id] = (uint8_t)kind;
}

void umad_page_count(struct umad_file *u, uint32_t id, const uint8_t *mad, int more)
{
    if (u->page)
        __atomic_fetch_add(&u->page->under_way[umad_under_way(id, mad)], (uint32_t)more, __ATOMIC_RELAXED);
}

int umad_page_make(struct umad_file *u)
{
    int fd = memfd_create("umad-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -1;
    if (ftruncate(fd, sizeof *u->page) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        goto close_fd;
    u->page = mmap(NULL, sizeof *u->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (u->page == MAP_FAILED) {
        u->page = NULL;
        goto close_fd;
    }
    u->page->port = u->mp->port->num;
    umad_page_header(u);
    return fd;

close_fd:
    close(fd);
    return -1;
}

void umad_page_close(struct umad_file *u)
{
    if (!u->page)
        return;
    __atomic_store_n(&u->page->closed, 1, __ATOMIC_RELEASE);
    munmap(u->page, sizeof *u->page);
}
