/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators, groups, attributes, names, grids. */
#include "mt.h"

static void groups(void)
{
    MPI_Group w, g, h, u;
    int r, n, cmp;
    MPI_Comm_group(MPI_COMM_WORLD, &w);
    MPI_Group_size(w, &n);
    EQ(n, size);
    MPI_Group_rank(w, &r);
    EQ(r, rank);
    int rev[size], trans[size], want[size];
    for (int i = 0; i < size; i++) {
        rev[i] = size - 1 - i;
        want[i] = i;
    }
    MPI_Group_incl(w, size, rev, &g);
    MPI_Group_compare(w, g, &cmp);
    EQ(cmp, size == 1 ? MPI_IDENT : MPI_SIMILAR);
    MPI_Group_translate_ranks(g, size, want, w, trans);
    for (int i = 0; i < size; i++)
        EQ(trans[i], size - 1 - i);
    int ranges[1][3] = {{0, size - 1, 2}};
    MPI_Group_range_incl(w, 1, ranges, &h);
    MPI_Group_size(h, &n);
    EQ(n, (size + 1) / 2);
    MPI_Group_rank(h, &r);
    EQ(r, rank % 2 ? MPI_UNDEFINED : rank / 2);
    MPI_Group_difference(w, h, &u);
    MPI_Group_size(u, &n);
    EQ(n, size / 2);
    EQ(u == MPI_GROUP_EMPTY, size == 1);
    MPI_Group_free(&w);
    EQ(w, MPI_GROUP_NULL);
    MPI_Group_free(&g);
    MPI_Group_free(&h);
    MPI_Group_free(&u);
}

/* The members of g are exactly these ranks of the world, in this order. */
static void consists_of(MPI_Group g, int n, const int *members)
{
    int count, world[size + 1], all[size + 1];
    MPI_Group w;
    MPI_Comm_group(MPI_COMM_WORLD, &w);
    MPI_Group_size(g, &count);
    EQ(count, n);
    for (int i = 0; i < n; i++)
        all[i] = i;
    MPI_Group_translate_ranks(g, n, all, w, world);
    for (int i = 0; i < n; i++)
        EQ(world[i], members[i]);
    EQ(g == MPI_GROUP_EMPTY, n == 0);
    MPI_Group_free(&w);
}

/* Sets: evens and odds, their union, intersection and difference; the order of the first comes first. */
static void sets(void)
{
    int ranges[1][3] = {{0, size - 1, 2}}, evens[size + 1], odds[size + 1], back[size + 1], both[2 * size], ne = 0,
        no = 0;
    MPI_Group w, even, odd, reverse, g;
    MPI_Comm_group(MPI_COMM_WORLD, &w);
    for (int i = 0; i < size; i++) {
        back[i] = size - 1 - i;
        if (i % 2)
            odds[no++] = i;
        else
            evens[ne++] = i;
    }
    MPI_Group_range_incl(w, 1, ranges, &even);
    MPI_Group_range_excl(w, 1, ranges, &odd);
    consists_of(even, ne, evens);
    consists_of(odd, no, odds);
    MPI_Group_excl(w, no, odds, &g);
    consists_of(g, ne, evens);
    MPI_Group_free(&g);
    MPI_Group_incl(w, size, back, &reverse);
    MPI_Group_intersection(reverse, even, &g);
    for (int i = 0; i < ne; i++)
        both[i] = evens[ne - 1 - i];
    consists_of(g, ne, both);
    MPI_Group_free(&g);
    MPI_Group_intersection(odd, even, &g);
    consists_of(g, 0, NULL);
    MPI_Group_free(&g);
    for (int i = 0; i < size; i++)
        both[i] = i < no ? odds[i] : evens[i - no];
    MPI_Group_union(odd, even, &g);
    consists_of(g, size, both);
    MPI_Group_free(&g);
    MPI_Group_union(reverse, even, &g);
    consists_of(g, size, back);
    MPI_Group_free(&g);
    MPI_Group_free(&reverse);
    MPI_Group_free(&odd);
    MPI_Group_free(&even);
    MPI_Group_free(&w);
}

static int total(MPI_Comm c, int x)
{
    int s = -1;
    MPI_Allreduce(&x, &s, 1, MPI_INT, MPI_SUM, c);
    return s;
}

static void making(void)
{
    MPI_Comm c, d, e;
    int n, r, cmp;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_compare(c, MPI_COMM_WORLD, &cmp);
    EQ(cmp, MPI_CONGRUENT);
    MPI_Comm_compare(c, c, &cmp);
    EQ(cmp, MPI_IDENT);
    /* messages of one communicator are not seen in the other */
    int x = 1, y = 2, a = 0, b = 0;
    MPI_Request q[2];
    MPI_Isend(&x, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &q[0]);
    MPI_Isend(&y, 1, MPI_INT, rank, 0, c, &q[1]);
    MPI_Recv(&b, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c, MPI_STATUS_IGNORE);
    MPI_Recv(&a, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    CHECK(a == 1 && b == 2);

    /* by color, the order turned round by key; one color stays out */
    MPI_Comm_split(c, rank % 3 == 2 ? MPI_UNDEFINED : rank % 3, -rank, &d);
    if (rank % 3 == 2) {
        EQ(d, MPI_COMM_NULL);
    } else {
        int members = 0, after = 0;
        for (int i = 0; i < size; i++) {
            members += i % 3 == rank % 3;
            after += i % 3 == rank % 3 && i > rank;
        }
        MPI_Comm_size(d, &n);
        MPI_Comm_rank(d, &r);
        EQ(n, members);
        EQ(r, after);
        EQ(total(d, 1), members);
        MPI_Comm_free(&d);
        EQ(d, MPI_COMM_NULL);
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &d);
    MPI_Comm_size(d, &n);
    CHECK(n >= 1 && n <= size);
    MPI_Comm_free(&d);

    /* from a group: all call Comm_create, only members call Comm_create_group */
    MPI_Group w, g;
    MPI_Comm_group(c, &w);
    int ranges[1][3] = {{size - 1, 0, -2}};
    MPI_Group_range_incl(w, 1, ranges, &g);
    MPI_Group_rank(g, &r);
    MPI_Comm_create(c, g, &d);
    EQ(d == MPI_COMM_NULL, r == MPI_UNDEFINED);
    if (r != MPI_UNDEFINED) {
        MPI_Comm_create_group(c, g, 17, &e);
        int r2;
        MPI_Comm_rank(e, &r2);
        EQ(r2, r);
        MPI_Comm_compare(d, e, &cmp);
        EQ(cmp, MPI_CONGRUENT);
        EQ(total(e, 1), (size + 1) / 2);
        EQ(total(d, 2), 2 * ((size + 1) / 2));
        MPI_Comm_free(&d);
        MPI_Comm_disconnect(&e);
        EQ(e, MPI_COMM_NULL);
    }
    MPI_Group_free(&w);
    MPI_Group_free(&g);
    MPI_Comm_free(&c);
}

/* Ids come back: many more communicators than there are ids, one after the other. */
static void many(void)
{
    MPI_Comm keep[40], c;
    for (int i = 0; i < 40; i++)
        MPI_Comm_dup(i ? keep[i - 1] : MPI_COMM_WORLD, &keep[i]);
    for (int i = 0; i < (size > 8 ? 200 : 5000); i++) {
        MPI_Comm_dup(MPI_COMM_SELF, &c);
        MPI_Comm_free(&c);
    }
    for (int i = 0; i < 40; i++)
        EQ(total(keep[i], i), i * size);
    for (int i = 0; i < 40; i++)
        MPI_Comm_free(&keep[i]);
}

/* Two parts at once, independent of each other, while members have few free ids in common. */
static void two_parts(void)
{
    MPI_Comm parts[2];
    int odd = rank % 2;

    for (int i = 0; i < 2; i++)
        MPI_Comm_split(MPI_COMM_WORLD, odd, i ? -rank : rank, &parts[i]);
    for (int i = 0; i < 2; i++) {
        int members = odd ? size / 2 : (size + 1) / 2, r;

        EQ(total(parts[i], 1 + odd), members * (1 + odd));
        MPI_Comm_rank(parts[i], &r);
        EQ(r, i ? members - 1 - rank / 2 : rank / 2);
    }
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&parts[i]);
}

static void few_in_common(void)
{
    enum { ALL = 200, SOME = 90 };
    MPI_Comm own[ALL];
    int have = rank % 3 * SOME;

    for (int i = 0; i < have; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &own[i]);
    two_parts(); /* the lowest are elsewhere in each */
    for (int i = 0; rank % 3 == 1 && i < SOME / 2; i++)
        MPI_Comm_free(&own[i]);
    for (int i = 0; rank % 3 == 0 && i < SOME / 2; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &own[i]);
    two_parts(); /* each part's lowest free ids are missing in the other */
    for (int i = rank % 3 == 1 ? SOME / 2 : 0; i < (rank % 3 ? have : SOME / 2); i++)
        MPI_Comm_free(&own[i]);
}

static int copies, deletes;

static int copy_fn(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
    int n;
    MPI_Comm_size(c, &n); /* MPI may be called from here */
    (void)key;
    EQ(*(int *)extra, 42);
    copies++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_fn(MPI_Comm c, int key, void *value, void *extra)
{
    int n;
    EQ(MPI_Comm_size(c, &n), MPI_SUCCESS); /* the handle is still good */
    (void)key;
    (void)value;
    EQ(*(int *)extra, 42);
    deletes++;
    return MPI_SUCCESS;
}

static int refuse_fn(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
    (void)c, (void)key, (void)extra, (void)in, (void)out, (void)flag;
    return MPI_ERR_OTHER;
}

/* A copy function that refuses makes MPI_Comm_dup fail, everywhere alike, and nothing is left over. */
static void refusal(void)
{
    MPI_Comm c, d;
    int key, extra = 42, refuse, before = deletes;
    char base;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(copy_fn, delete_fn, &key, &extra);
    MPI_Comm_create_keyval(refuse_fn, MPI_COMM_NULL_DELETE_FN, &refuse, NULL);
    MPI_Comm_set_attr(c, key, &base);
    MPI_Comm_set_attr(c, refuse, &base);
    CHECK(MPI_Comm_dup(c, &d) != MPI_SUCCESS);
    EQ(d, MPI_COMM_NULL);
    EQ(deletes, before + 1);
    MPI_Comm_delete_attr(c, refuse);
    MPI_Comm_dup(c, &d);
    EQ(total(d, 1), size);
    MPI_Comm_free(&d);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free_keyval(&refuse);
    MPI_Comm_free(&c);
    EQ(deletes, before + 3);
}

static void attributes(void)
{
    MPI_Comm c, d;
    int key, key2, extra = 42, flag, *ip;
    char *p, base[4];
    MPI_Comm_create_keyval(copy_fn, delete_fn, &key, &extra);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key2, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_get_attr(c, key, &p, &flag);
    CHECK(!flag);
    MPI_Comm_set_attr(c, key, base);
    MPI_Comm_set_attr(c, key2, base);
    MPI_Comm_dup(c, &d);
    EQ(copies, 1);
    MPI_Comm_get_attr(d, key, &p, &flag);
    CHECK(flag && p == base + 1);
    MPI_Comm_get_attr(d, key2, &p, &flag);
    CHECK(!flag);
    MPI_Comm_free_keyval(&key); /* attributes keep the key alive */
    EQ(key, MPI_KEYVAL_INVALID);
    MPI_Comm_free(&d);
    EQ(deletes, 1);
    MPI_Comm_free(&c);
    EQ(deletes, 2);
    MPI_Comm_free_keyval(&key2);
    MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL);
    MPI_Attr_put(MPI_COMM_WORLD, key, base);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Attr_get(c, key, &p, &flag);
    CHECK(flag && p == base);
    MPI_Attr_delete(MPI_COMM_WORLD, key);
    MPI_Attr_get(MPI_COMM_WORLD, key, &p, &flag);
    CHECK(!flag);
    MPI_Comm_free(&c);
    MPI_Keyval_free(&key);
    EQ(key, MPI_KEYVAL_INVALID);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &ip, &flag);
    CHECK(flag && *ip >= 32767);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &ip, &flag);
    CHECK(flag && (*ip == 0 || *ip == 1));
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &ip, &flag);
    CHECK(flag && *ip >= size);
}

static void names_and_info(void)
{
    char name[MPI_MAX_OBJECT_NAME], value[8], key[MPI_MAX_INFO_KEY + 1];
    int len, flag;
    MPI_Comm c;
    MPI_Info i, j;
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &len);
    CHECK(!strcmp(name, "MPI_COMM_WORLD") && len == 14);
    MPI_Info_create(&i);
    MPI_Info_set(i, "colour", "turquoise");
    MPI_Info_set(i, "mpi_assert_no_any_source", "true");
    MPI_Info_get(i, "colour", 7, value, &flag);
    CHECK(flag && !strcmp(value, "turquoi"));
    MPI_Info_get_valuelen(i, "colour", &len, &flag);
    CHECK(flag && len == 9);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, i, &c);
    MPI_Info_delete(i, "colour");
    MPI_Info_get_nkeys(i, &len);
    EQ(len, 1);
    MPI_Info_get_nthkey(i, 0, key);
    CHECK(!strcmp(key, "mpi_assert_no_any_source"));
    MPI_Comm_get_info(c, &j);
    MPI_Info_get(j, "mpi_assert_no_any_source", 9, value, &flag);
    CHECK(flag && !strcmp(value, "true"));
    MPI_Info_free(&i);
    MPI_Info_free(&j);
    MPI_Comm_get_name(c, name, &len);
    EQ(len, 0);
    MPI_Comm_set_name(c, "mine");
    MPI_Comm_get_name(c, name, &len);
    CHECK(!strcmp(name, "mine") && len == 4);
    MPI_Comm_free(&c);
}

static void grids(void)
{
    MPI_Comm g, row;
    int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], back[2], r, src, dst, n, kind;
    MPI_Dims_create(size, 2, dims);
    EQ(dims[0] * dims[1], size);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &g);
    MPI_Topo_test(g, &kind);
    EQ(kind, MPI_CART);
    MPI_Comm_rank(g, &r);
    MPI_Cart_coords(g, r, 2, coords);
    MPI_Cart_rank(g, coords, &n);
    EQ(n, r);
    MPI_Cart_shift(g, 0, 1, &src, &dst);
    int x = r, y = -1;
    MPI_Sendrecv(&x, 1, MPI_INT, dst, 0, &y, 1, MPI_INT, src, 0, g, MPI_STATUS_IGNORE);
    EQ(y, src);
    MPI_Cart_shift(g, 1, 1, &src, &dst);
    EQ(dst == MPI_PROC_NULL, coords[1] == dims[1] - 1);
    y = -1;
    MPI_Sendrecv(&x, 1, MPI_INT, dst, 0, &y, 1, MPI_INT, src, 0, g, MPI_STATUS_IGNORE);
    EQ(y, src == MPI_PROC_NULL ? -1 : src);
    int remain[2] = {0, 1};
    MPI_Cart_sub(g, remain, &row);
    MPI_Comm_size(row, &n);
    EQ(n, dims[1]);
    MPI_Cartdim_get(row, &n);
    EQ(n, 1);
    int d1, p1;
    MPI_Cart_get(row, 1, &d1, &p1, back);
    CHECK(d1 == dims[1] && !p1 && back[0] == coords[1]);
    MPI_Comm_free(&row);
    MPI_Comm_free(&g);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    groups();
    sets();
    making();
    many();
    few_in_common();
    attributes();
    refusal();
    names_and_info();
    grids();
    return mt_end();
}
