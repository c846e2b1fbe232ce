/* SPDX-License-Identifier: BSD-3-Clause */
/* Probing for messages, matched or not (MPI-4.0 sections 3.8.1 and 3.8.2). */
#include "libmrmpi/api/api.h"

/* A probe of MPI_PROC_NULL finds an empty message at once. */
static const struct mr_status no_proc = {.source = MR_PROC_NULL, .tag = MR_ANY_TAG};

MPI_FN(int, Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_status st = no_proc;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_MISSING(status);
    CHECK(api_source(c, source, tag));
    CHECK(source != MR_PROC_NULL ? mr_probe(source, tag, c, c->context, &st) : mr_probe_fate(source, c, c->context));
    api_status(status, &st);
    API_LEAVE(c);
}

MPI_FN(int, Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_status st = no_proc;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_MISSING(status);
    NOT_NULL(flag);
    CHECK(api_source(c, source, tag));
    *flag = source == MR_PROC_NULL || mr_iprobe(source, tag, c, c->context, &st);
    if (!*flag || source == MR_PROC_NULL)
        CHECK(mr_probe_fate(source, c, c->context));
    if (*flag)
        api_status(status, &st);
    API_LEAVE(c);
}

static enum mr_err new_message_handle(struct mr_message *m, MPI_Message *h)
{
    const int n = api_handle_new(ABI_MESSAGE, m);
    *h = n ? abi_handle(MPI_Message, n) : MPI_MESSAGE_NULL;
    if (n)
        return MR_SUCCESS;
    return mr_fail(MR_ERR_NO_MEM, "no memory for a message handle");
}

MPI_FN(int, Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_status st = no_proc;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_MISSING(status);
    NOT_NULL(message);
    CHECK(api_source(c, source, tag));
    *message = MPI_MESSAGE_NO_PROC;
    if (source != MR_PROC_NULL) {
        struct mr_message *m;
        CHECK(mr_mprobe(source, tag, c, c->context, &m, &st));
        CHECK(new_message_handle(m, message));
    } else {
        CHECK(mr_probe_fate(source, c, c->context));
    }
    api_status(status, &st);
    API_LEAVE(c);
}

MPI_FN(int, Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_status st = no_proc;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_MISSING(status);
    NOT_NULL(flag);
    NOT_NULL(message);
    CHECK(api_source(c, source, tag));
    *flag = 1;
    *message = MPI_MESSAGE_NO_PROC;
    if (source != MR_PROC_NULL) {
        struct mr_message *m = mr_improbe(source, tag, c, c->context, &st);
        *flag = m != NULL;
        *message = MPI_MESSAGE_NULL;
        CHECK(m ? new_message_handle(m, message) : mr_probe_fate(source, c, c->context));
    } else {
        CHECK(mr_probe_fate(source, c, c->context));
    }
    if (*flag)
        api_status(status, &st);
    API_LEAVE(c);
}
