/* SPDX-License-Identifier: BSD-3-Clause */
/* Partitioned point-to-point communication (MPI-4.0 chapter 4). Starting and completing is in request.c. */
#include "libmrmpi/api/request.h"
#include "libmrmpi/p2p/p2p.h"

/* dest: or the source; wildcards are not for partitioned operations. */
static enum mr_err init_partitioned(bool sender, const void *buf, int partitions, MPI_Count count,
                                    MPI_Datatype datatype, int dest, int tag, struct mr_comm *c, MPI_Info info,
                                    MPI_Request *request)
{
    struct mr_type *t;
    struct mr_info *i;
    struct mr_request *r;
    enum mr_err err = api_type(datatype, &t);
    if (!err && info != MPI_INFO_NULL)
        err = api_info(info, &i);
    if (!err)
        err = api_dest(c, dest, tag);
    if (err)
        return err;
    if (partitions < 0)
        return mr_fail(MR_ERR_ARG, "partitions is %d", partitions);
    if (count < 0)
        return api_bad_count((long)count, "count");
    if (!t->committed)
        return api_bad_type(t, "datatype");
    if (!buf && count && t->size && t->builtin)
        return api_bad_buffer(buf, count, "buf", "count");
    struct mr_part_args args = {buf, partitions, (size_t)count, t, dest, tag};
    err = mr_part_new(sender, &args, c, &r);
    return err ? err : api_new_request(r, request);
}

MPI_FN(int, Psend_init,
       (const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
        MPI_Info info, MPI_Request *request))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    NOT_NULL(request);
    CHECK(api_comm(comm, &c));
    err = init_partitioned(true, buf, partitions, count, datatype, dest, tag, c, info, request);
    API_LEAVE(c);
}

MPI_FN(int, Precv_init,
       (void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
        MPI_Info info, MPI_Request *request))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    NOT_NULL(request);
    CHECK(api_comm(comm, &c));
    err = init_partitioned(false, buf, partitions, count, datatype, dest, tag, c, info, request);
    API_LEAVE(c);
}

static enum mr_err partitioned(MPI_Request h, bool sender, struct mr_comm **c, struct mr_request **r)
{
    enum mr_err err = api_request(h, r);
    if (err)
        return err;
    *c = (*r)->comm ? (*r)->comm : mr_comm_world;
    if ((*r)->kind != MR_REQ_PERSISTENT_PART || mr_part_is_send((*r)->part) != sender)
        return mr_fail(MR_ERR_REQUEST, "the request is not a partitioned %s", sender ? "send" : "receive");
    return MR_SUCCESS;
}

/* Of a send; some of its partitions will be ready. */
static enum mr_err partitioned_send(MPI_Request h, struct mr_comm **c, struct mr_part **p)
{
    struct mr_request *r;
    enum mr_err err = partitioned(h, true, c, &r);
    if (err)
        return err;
    api_copy(r, API_COPY_IN);
    *p = r->part;
    return MR_SUCCESS;
}

static enum mr_err in_range(const struct mr_part *p, int partition)
{
    if (unlikely((unsigned)partition >= (unsigned)mr_part_count(p)))
        return mr_fail(MR_ERR_ARG, "partition is %d, the operation has partitions 0 to %d", partition,
                       mr_part_count(p) - 1);
    return MR_SUCCESS;
}

static enum mr_err ready(struct mr_part *p, int partition)
{
    enum mr_err err = in_range(p, partition);
    return err ? err : mr_part_ready(p, partition);
}

MPI_FN(int, Pready, (int partition, MPI_Request request))
{
    struct mr_comm *c = NULL;
    struct mr_part *p;
    API_ENTER();
    CHECK(partitioned_send(request, &c, &p));
    err = ready(p, partition);
    API_LEAVE(c);
}

MPI_FN(int, Pready_range, (int partition_low, int partition_high, MPI_Request request))
{
    struct mr_comm *c = NULL;
    struct mr_part *p;
    API_ENTER();
    CHECK(partitioned_send(request, &c, &p));
    CHECK(in_range(p, partition_low));
    CHECK(in_range(p, partition_high));
    if (partition_low > partition_high)
        CHECK(mr_fail(MR_ERR_ARG, "partition_low is %d, partition_high %d", partition_low, partition_high));
    for (int i = partition_low; i <= partition_high; i++)
        CHECK(mr_part_ready(p, i));
    API_LEAVE(c);
}

MPI_FN(int, Pready_list, (int length, int array_of_partitions[], MPI_Request request))
{
    struct mr_comm *c = NULL;
    struct mr_part *p;
    API_ENTER();
    CHECK(partitioned_send(request, &c, &p));
    if (length < 0)
        CHECK(api_bad_count(length, "length"));
    if (length)
        NOT_NULL(array_of_partitions);
    for (int i = 0; i < length; i++)
        CHECK(ready(p, array_of_partitions[i]));
    API_LEAVE(c);
}

struct partition {
    struct mr_part *of;
    int number;
};

static bool arrived(void *arg)
{
    const struct partition *p = arg;
    return mr_part_arrived(p->of, p->number);
}

MPI_FN(int, Parrived, (MPI_Request request, int partition, int *flag))
{
    struct mr_comm *c = NULL;
    struct mr_request *r;
    API_ENTER();
    NOT_NULL(flag);
    *flag = 1;
    if (request == MPI_REQUEST_NULL)
        goto out;
    CHECK(partitioned(request, false, &c, &r));
    CHECK(in_range(r->part, partition));
    *flag = mr_progress_try(arrived, &(struct partition){r->part, partition});
    if (*flag)
        api_copy(r, API_COPY_OUT);
    API_LEAVE(c);
}
