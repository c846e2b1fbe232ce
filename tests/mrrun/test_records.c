/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's record, with a clock of the test, and mrrun's output from the record: damaged records, odd names, the ring.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mrrun/records.h"
#include "mrrun/stats.h"
#include "mrrun/timeline.h"
#include "tests/check.h"

static uint64_t now_ns;
static char dir[64], setting[128];

uint64_t mr_clock_ns(void)
{
    return now_ns;
}

static char *hosts[] = {(char *)"alpha", (char *)"b\"\\\t\x7f\xe9"};
static const int host_of[] = {0, 1};
static struct records all = {.job_id = "j", .ranks = 2, .host = hosts, .host_of = host_of, .simulated = true};

static void begin(void)
{
    strcpy(dir, "/tmp/test_records.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(setting, sizeof setting, RECORD_FILE, dir, "%r");
    mr_config.record = setting;
    mr_config.record_events = 4;
}

static void end(void)
{
    char name[128];

    mr_record_close();
    records_close(&all);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/record.%d", dir, i);
        unlink(name);
    }
    ck_assert_int_eq(rmdir(dir), 0);
}

static void record_rank(unsigned rank)
{
    mr_record_open(rank, 2, "host");
    ck_assert_ptr_nonnull(mr_record);
    mr_record->num_rails = 1;
    snprintf(mr_record->rail[0].device, sizeof mr_record->rail[0].device, "dev\"%u", rank);
    mr_record->rail[0].port = 1;
    mr_record->rail[0].share_ppm = 1000000;
}

static void put(enum mr_record_kind kind, uint64_t ns, uint64_t lasted_ns)
{
    struct mr_record_event e = {.ns = ns, .lasted_ns = lasted_ns, .kind = (uint8_t)kind, .peer = 1, .a = 5, .b = 9};

    mr_record_put(&e);
}

static char *print(void (*how)(FILE *out, const struct records *r))
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    how(f, &all);
    fclose(f);
    return text;
}

static void print_timeline(FILE *out, const struct records *r)
{
    ck_assert_int_eq(timeline_print(out, r), 0);
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;

    while ((text = strstr(text, word))) {
        n++;
        text++;
    }
    return n;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

START_TEST(what_peers_moved_counts)
{
    struct record_bytes *b;

    record_rank(0);
    mr_record->rail[0].count[MR_RAIL_BYTES_SENT] = 100;
    mr_record->rail[0].count[MR_RAIL_BYTES_READ] = 7;
    mr_record_tally(1, 0)->read = 7;
    mr_record_tally(1, 0)->written = 30;
    mr_record_close();
    record_rank(1);
    mr_record->rail[0].count[MR_RAIL_BYTES_RECEIVED] = 100;
    mr_record_close();
    ck_assert_int_eq(records_open(&all, dir), 0);
    b = records_bytes(&all);
    ck_assert_uint_eq(b[0].out, 100);
    ck_assert_uint_eq(b[0].in, 7);
    ck_assert_uint_eq(b[MR_RECORD_RAILS].out, 7);
    ck_assert_uint_eq(b[MR_RECORD_RAILS].in, 130);
    free(b);
}
END_TEST

START_TEST(odd_names)
{
    char *text;

    record_rank(0);
    mr_record_close();
    record_rank(1);
    mr_record_close();
    ck_assert_int_eq(records_open(&all, dir), 0);
    text = print(stats_print_json);
    ck_assert_ptr_nonnull(strstr(text, "\"host\": \"b\\\"\\\\\\u0009\\u007f\\u00e9\""));
    ck_assert_ptr_nonnull(strstr(text, "\"rail\": \"dev\\\"1:1\""));
    free(text);
}
END_TEST

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static void damage(long at, uint64_t word, size_t size)
{
    char name[128];
    FILE *f;

    snprintf(name, sizeof name, "%s/record.0", dir);
    f = fopen(name, "r+");
    ck_assert_ptr_nonnull(f);
    fseek(f, at, SEEK_SET);
    ck_assert_uint_eq(fwrite(&word, size, 1, f), 1);
    fclose(f);
}

#define FIELD(f) (long)offsetof(struct mr_record, f)

START_TEST(damaged_records_are_left_out)
{
    static const struct {
        long at;
        uint64_t word;
        size_t size;
    } all_damages[] = {
        {FIELD(magic), 0, 4},      {FIELD(version), 99, 4},
        {FIELD(size), 8, 4},       {FIELD(rank), 1, 4},
        {FIELD(num_ranks), 3, 4},  {FIELD(num_rails), 9, 4},
        {FIELD(tally_at), 1, 8},   {FIELD(tally_at), UINT64_MAX, 8},
        {FIELD(events_at), 64, 8}, {FIELD(events_at), 1ull << 40, 8},
        {FIELD(num_events), 5, 8}, {FIELD(num_events), UINT64_MAX / 48, 8},
    };

    record_rank(0);
    mr_record_close();
    damage(all_damages[_i].at, all_damages[_i].word, all_damages[_i].size);
    ck_assert_int_eq(records_open(&all, dir), 0);
    ck_assert_ptr_null(all.of[0].at);
    ck_assert_ptr_null(all.of[1].at);
}
END_TEST

START_TEST(cut_short)
{
    char name[128], *text;

    record_rank(0);
    mr_record_close();
    snprintf(name, sizeof name, "%s/record.0", dir);
    ck_assert_int_eq(truncate(name, _i ? (long)sizeof(struct mr_record) : 100), 0);
    ck_assert_int_eq(records_open(&all, dir), 0);
    ck_assert_ptr_null(all.of[0].at);
    text = print(stats_print_json);
    ck_assert_uint_eq(count(text, "\"recorded\": false"), 2);
    free(text);
    text = print(print_timeline);
    ck_assert_ptr_nonnull(strstr(text, "\"ranks_without_record\": [0, 1]"));
    free(text);
}
END_TEST

/* ---- the timeline ------------------------------------------------------------------------------------------------ */

START_TEST(slices_that_overlap_have_tracks_of_their_own)
{
    char *text;

    now_ns = 500;
    record_rank(0);
    put(MR_RECORD_READ, 1000, 4000);
    put(MR_RECORD_READ, 2000, 1000);
    put(MR_RECORD_READ, 3000, 1000);
    mr_record_close();
    ck_assert_int_eq(records_open(&all, dir), 0);
    text = print(print_timeline);
    ck_assert_uint_eq(count(text, "\"tid\": 1001, \"name\": \"read from rank 1\", \"ts\": 0.500, \"dur\": 4.000"), 1);
    ck_assert_uint_eq(count(text, "\"tid\": 1002, \"name\": \"read from rank 1\", \"ts\": 1.500, \"dur\": 1.000"), 1);
    ck_assert_uint_eq(count(text, "\"tid\": 1002, \"name\": \"read from rank 1\", \"ts\": 2.500, \"dur\": 1.000"), 1);
    ck_assert_uint_eq(count(text, "\"tid\": 1003"), 0);
    free(text);
}
END_TEST

START_TEST(the_last_events_stay)
{
    char *text;

    now_ns = 500;
    record_rank(0);
    for (unsigned i = 0; i < 10; i++)
        put(MR_RECORD_BREAK, 1000 + i, 0);
    mr_record_close();
    ck_assert_int_eq(records_open(&all, dir), 0);
    text = print(print_timeline);
    ck_assert_uint_eq(count(text, "broken to rank 1"), 4);
    ck_assert_uint_eq(count(text, "\"ts\": 0.505"), 0);
    ck_assert_uint_eq(count(text, "\"ts\": 0.506"), 1);
    ck_assert_ptr_nonnull(strstr(text, "\"dropped_events\": {\"0\": 6}"));
    free(text);
}
END_TEST

/* _i 0: the beginning was dropped; 1: the rank ended before the end. */
START_TEST(each_beginning_has_its_end)
{
    char *text;

    now_ns = 500;
    record_rank(0);
    put(_i ? MR_RECORD_PORT_DOWN : MR_RECORD_PORT_UP, 1000, 0);
    mr_record->updated_ns = 9000;
    mr_record_close();
    ck_assert_int_eq(records_open(&all, dir), 0);
    text = print(print_timeline);
    ck_assert_uint_eq(count(text, "\"ph\": \"B\""), (unsigned)_i);
    ck_assert_uint_eq(count(text, "\"ph\": \"E\""), (unsigned)_i);
    if (_i)
        ck_assert_ptr_nonnull(strstr(text, "\"name\": \"port down\", \"ts\": 8.500"));
    free(text);
}
END_TEST

/* Numbers that no rank can have written. */
START_TEST(nonsense)
{
    struct mr_record_event e;
    char *text;

    record_rank(0);
    for (unsigned kind = 0; kind < 4; kind++) {
        memset(&e, 0xff, sizeof e);
        e.kind = (uint8_t)(kind == 3 ? 255 : kind * 2);
        mr_record_put(&e);
    }
    mr_record_close();
    ck_assert_int_eq(records_open(&all, dir), 0);
    text = print(print_timeline);
    ck_assert_ptr_nonnull(strstr(text, "rail 255"));
    free(text);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");

    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, what_peers_moved_counts);
    tcase_add_test(t, odd_names);
    tcase_add_loop_test(t, damaged_records_are_left_out, 0, 12);
    tcase_add_loop_test(t, cut_short, 0, 2);
    tcase_add_test(t, slices_that_overlap_have_tracks_of_their_own);
    tcase_add_test(t, the_last_events_stay);
    tcase_add_loop_test(t, each_beginning_has_its_end, 0, 2);
    tcase_add_test(t, nonsense);
    return check_run(t, NULL);
}
