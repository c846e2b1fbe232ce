/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of waiting ranks, compared (mrrun/waits). */
#include <stdlib.h>
#include <string.h>

#include "mrrun/waits.h"
#include "tests/check.h"

#define WORLD(collectives) "comm\t0\t3\t" collectives "\tMPI_COMM_WORLD\t0-2\n"

static struct waits *w;

static bool answer(int rank, const char *text)
{
    return waits_answer(w, rank, 7, text, strlen(text));
}

/* The report has these lines, and nothing else; w is gone. */
static void reports(const char *want)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    waits_write(w, "> ", false, out);
    fclose(out);
    ck_assert_str_eq(text, want);
    free(text);
    waits_free(w);
}

START_TEST(circle)
{
    w = waits_new(3);
    ck_assert(answer(0, "asked\t7\nfunction\tMPI_Recv\t1000\n" WORLD("4") "recv\t0\t1\t1\t5\t8\n"));
    ck_assert(answer(1, "asked\t7\nfunction\tMPI_Ssend\t1200\n" WORLD("4") "send\t0\t2\t2\t6\t1\tno receive\n"));
    ck_assert(answer(2, "asked\t7\nfunction\tMPI_Waitall\t1000\n" WORLD("4") "recv\t0\t0\t0\t*\t0\n"));
    reports("> rank 0: MPI_Recv, for 1.0 s\n"
            ">     a receive from rank 1, tag 5, up to 8 bytes\n"
            "> rank 1: MPI_Ssend, for 1.2 s\n"
            ">     a send to rank 2, tag 6, 1 byte: no receive\n"
            "> rank 2: MPI_Waitall, for 1.0 s\n"
            ">     a receive from rank 0, any tag, up to 0 bytes\n"
            "> a circle: rank 0 waits for rank 1, which waits for rank 2, which waits for rank 0\n");
}
END_TEST

START_TEST(one_of_several_is_no_circle)
{
    w = waits_new(3);
    ck_assert(answer(0, "asked\t7\nfunction\tMPI_Waitany\t1000\n" WORLD("4") "recv\t0\t1\t1\t5\t8\n"));
    ck_assert(answer(1, "asked\t7\nfunction\tMPI_Recv\t1000\n" WORLD("4") "recv\t0\t0\t0\t5\t8\n"));
    waits_ended(w, 2);
    reports("> rank 0: MPI_Waitany, for 1.0 s\n"
            ">     a receive from rank 1, tag 5, up to 8 bytes\n"
            "> rank 1: MPI_Recv, for 1.0 s\n"
            ">     a receive from rank 0, tag 5, up to 8 bytes\n");
}
END_TEST

START_TEST(collectives)
{
    w = waits_new(3);
    ck_assert(answer(0, "asked\t7\nfunction\tMPI_Bcast\t100\n" WORLD("5") "recv\t1\t1\t1\t5\t8\n"));
    ck_assert(answer(1, "asked\t7\nfunction\tMPI_Bcast\t2100\n" WORLD("5")));
    ck_assert(answer(2, "asked\t7\nfunction\tMPI_Probe\t100\n" WORLD("4")));
    reports("> ranks 0-1: MPI_Bcast, for 0.1 to 2.1 s\n"
            ">     waits for rank 2, still before this collective operation on MPI_COMM_WORLD\n"
            "> rank 2: MPI_Probe, for 0.1 s\n");

    /* the same number, another function; and the context of others, which is another communicator */
    w = waits_new(3);
    ck_assert(answer(0, "asked\t7\nfunction\tMPI_Bcast\t100\ncomm\t4\t2\t9\thalf\t0,2\n"));
    ck_assert(answer(1, "asked\t7\nfunction\tMPI_Barrier\t100\ncomm\t4\t1\t2\talone\t1\n"));
    ck_assert(answer(2, "asked\t7\nfunction\tMPI_Barrier\t100\ncomm\t4\t2\t9\thalf\t0,2\n"));
    reports("> rank 0: MPI_Bcast, for 0.1 s\n"
            ">     but rank 2 called MPI_Barrier as the same operation on half\n"
            "> rank 1: MPI_Barrier, for 0.1 s\n"
            "> rank 2: MPI_Barrier, for 0.1 s\n"
            ">     but rank 0 called MPI_Bcast as the same operation on half\n");
}
END_TEST

START_TEST(silent_ranks)
{
    w = waits_new(4);
    ck_assert(answer(0, "asked\t7\nfunction\tMPI_Barrier\t100\ncomm\t0\t4\t1\tMPI_COMM_WORLD\t0-3\n"));
    waits_silent(w, 1, "computes");
    waits_silent(w, 2, "sleeps");
    waits_silent(w, 3, "computes");
    reports("> ranks 1,3: computes\n"
            "> rank 2: sleeps\n"
            "> rank 0: MPI_Barrier, for 0.1 s\n"
            ">     may wait for ranks 1-3\n");
}
END_TEST

/* Of another inquiry, or no answer; and invalid lines are skipped. */
START_TEST(damaged)
{
    static const char *const none[] = {"",
                                       "asked\t6\nfunction\tMPI_Recv\t1\n",
                                       "asked\t7\n",
                                       "asked\t7x\nfunction\tMPI_Recv\t1\n",
                                       "function\tMPI_Recv\t1\nasked\t7\n",
                                       "asked\t7\nfunction\tMPI_Recv\t-1\n"};
    w = waits_new(3);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        ck_assert_msg(!answer(0, none[i]), "%zu", i);
    ck_assert(
        answer(0, "asked\t7\nfunction\tMPI_Recv\t1000\n"
                  "comm\t0\t3\t1\tMPI_COMM_WORLD\t0-3\n" /* a rank that does not exist */
                  "comm\t2\t3\t1\tx\t2-1\ncomm\t2\t3\t1\tx\t0-\ncomm\t2\t3\t1\tx\t-1\ncomm\t2\n\n\t\t\t\n"
                  "recv\t0\t1\t1\t5\n" /* too few words */
                  "recv\t0\t99999999999\t1\t5\t8\n" WORLD("4") "recv\t0\t2\t2\t5\t8\nmore\tnothing\t3\nwindow\tw\n"));
    reports("> rank 0: MPI_Recv, for 1.0 s\n>     a receive from rank 2, tag 5, up to 8 bytes\n");

    /* any bytes, of any length */
    srand(1);
    for (int round = 0; round < 2000; round++) {
        static const char *const piece[] = {"asked\t7\nfunction\tMPI_Recv\t1\n",
                                            WORLD("4"),
                                            "recv\t0\t",
                                            "send\t0\t1\t1\t*\t",
                                            "more\trecv\t",
                                            "window\tw\te\n",
                                            "\t",
                                            "\n",
                                            "0-",
                                            "99999999999999999999",
                                            "*"};
        char text[512] = "asked\t7\n";

        while (strlen(text) < 400)
            strcat(text, piece[(size_t)rand() % (sizeof(piece) / sizeof(piece[0]))]);
        w = waits_new(3);
        answer(round % 3, text);
        char *out;
        size_t len;
        FILE *f = open_memstream(&out, &len);
        waits_write(w, "", round & 1, f);
        fclose(f);
        free(out);
        waits_free(w);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("waits");

    tcase_add_test(t, circle);
    tcase_add_test(t, one_of_several_is_no_circle);
    tcase_add_test(t, collectives);
    tcase_add_test(t, silent_ranks);
    tcase_add_test(t, damaged);
    return check_run(t, NULL);
}
