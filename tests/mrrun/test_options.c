/* SPDX-License-Identifier: BSD-3-Clause */
/* mrrun's command line, and the environments it makes. */
#include <stdlib.h>
#include <string.h>

#include "mrrun/environment.h"
#include "mrrun/options.h"
#include "tests/check.h"

static char why[512];

/* The options point into the words, which are kept here until the next call. */
static int parse(struct mrrun_options *opts, char **words)
{
    static char *kept[64];
    int n = 0;

    for (; words[n]; n++)
        kept[n] = words[n];
    kept[n] = NULL;
    why[0] = 0;
    return mrrun_options_parse(opts, n, kept, why, sizeof(why));
}

#define PARSE(opts, ...) parse(opts, (char *[]){"mrrun", __VA_ARGS__, NULL})

START_TEST(everything)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "-n", "4", "--ppn=2", "--hosts", "a,b,c", "-x", "A=1", "--env", "B", "--job-id", "j7",
                           "--timeout", "30", "--grace", "0", "--stats", "-l", "-v", "prog", "-n", "9", "--hosts"),
                     0);
    ck_assert_int_eq(o.ranks, 4);
    ck_assert_int_eq(o.ppn, 2);
    ck_assert_int_eq(o.num_hosts, 3);
    ck_assert_str_eq(o.hosts[0].name, "a");
    ck_assert_str_eq(o.hosts[2].name, "c");
    ck_assert_int_eq(o.num_env, 2);
    ck_assert_str_eq(o.env[0], "A=1");
    ck_assert_str_eq(o.env[1], "B");
    ck_assert_str_eq(o.job_id, "j7");
    ck_assert_int_eq(o.timeout_s, 30);
    ck_assert_int_eq(o.grace_s, 0);
    ck_assert(o.stats && o.label && o.verbose);
    ck_assert_str_eq(o.program[0], "prog");
    ck_assert_str_eq(o.program[1], "-n");
    ck_assert_str_eq(o.program[3], "--hosts");
    ck_assert_ptr_null(o.program[4]);
    mrrun_options_clear(&o);
}
END_TEST

START_TEST(figures)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "-n", "1", "--stats=json", "--rails-trace", "t", "prog"), 0);
    ck_assert(o.stats);
    ck_assert_str_eq(o.stats_as, "json");
    ck_assert_str_eq(o.trace, "t");
    ck_assert_int_eq(PARSE(&o, "-n", "1", "--stats=json:a b", "prog"), 0);
    ck_assert_str_eq(o.stats_as, "json:a b");
    ck_assert_int_eq(PARSE(&o, "-n", "1", "--stats=json", "-stats", "prog"), 0); /* the last one counts */
    ck_assert(o.stats);
    ck_assert_ptr_null(o.stats_as);
    ck_assert_ptr_null(o.trace);
    ck_assert_int_eq(PARSE(&o, "-n", "1", "--stats=", "prog"), -1);
    ck_assert_int_eq(PARSE(&o, "-n", "1", "--stats=json:", "prog"), -1);
    ck_assert_int_eq(PARSE(&o, "-n", "1", "--stats=jsonfile", "prog"), -1);
    ck_assert_str_eq(why, "option --stats: 'jsonfile' is neither json nor json:FILE");
}
END_TEST

START_TEST(explaining)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "--explain"), 0);
    ck_assert(o.explain && !o.ranks);
    ck_assert_ptr_null(o.program[0]);
    mrrun_options_clear(&o);
    ck_assert_int_eq(PARSE(&o, "-n", "4", "--explain", "prog"), 0);
    ck_assert(o.explain && o.ranks == 4);
    mrrun_options_clear(&o);
    ck_assert_int_eq(PARSE(&o, "--explain", "--job-id"), -1);
    mrrun_options_clear(&o);
}
END_TEST

START_TEST(timeout_of_the_environment)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "-n", "1", "p"), 0);
    ck_assert_int_eq(mrrun_options_timeout(&o, NULL, why, sizeof(why)), 0);
    ck_assert_int_eq(o.timeout_s, 0);
    ck_assert_int_eq(mrrun_options_timeout(&o, "", why, sizeof(why)), 0);
    ck_assert_int_eq(o.timeout_s, 0);
    ck_assert_int_eq(mrrun_options_timeout(&o, "-1", why, sizeof(why)), 0);
    ck_assert_int_eq(o.timeout_s, 0);
    ck_assert_int_eq(mrrun_options_timeout(&o, "5m", why, sizeof(why)), -1);
    ck_assert_ptr_nonnull(strstr(why, "MPIEXEC_TIMEOUT='5m'"));
    ck_assert_int_eq(mrrun_options_timeout(&o, " 5", why, sizeof(why)), -1);
    ck_assert_int_eq(mrrun_options_timeout(&o, "99999999999999999999", why, sizeof(why)), -1);
    ck_assert_int_eq(mrrun_options_timeout(&o, "2147484", why, sizeof(why)), -1);
    ck_assert_int_eq(mrrun_options_timeout(&o, "30", why, sizeof(why)), 0);
    ck_assert_int_eq(o.timeout_s, 30);
    ck_assert_str_eq(o.timeout_by, "MPIEXEC_TIMEOUT");
    mrrun_options_clear(&o);

    ck_assert_int_eq(PARSE(&o, "-n", "1", "--timeout", "7", "p"), 0);
    ck_assert_int_eq(mrrun_options_timeout(&o, "30", why, sizeof(why)), 0);
    ck_assert_int_eq(o.timeout_s, 7);
    ck_assert_str_eq(o.timeout_by, "--timeout");
    mrrun_options_clear(&o);
}
END_TEST

START_TEST(other_launchers_spellings)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "-np", "3", "-hosts", "a", "-ppn", "3", "p"), 0);
    ck_assert_int_eq(o.ranks, 3);
    ck_assert_int_eq(o.ppn, 3);
    mrrun_options_clear(&o);
    ck_assert_int_eq(PARSE(&o, "-n16", "--", "-p"), 0);
    ck_assert_int_eq(o.ranks, 16);
    ck_assert_str_eq(o.program[0], "-p");
    mrrun_options_clear(&o);
}
END_TEST

static void refuse(const char *message, char **words)
{
    struct mrrun_options o;

    ck_assert_int_eq(parse(&o, words), -1);
    ck_assert_str_eq(why, message);
    mrrun_options_clear(&o);
}

START_TEST(hosts_with_devices)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "-n", "2", "--hosts", "a=mlx5_0+mlx5_1:2,b,c=rxe0", "p"), 0);
    ck_assert_int_eq(o.num_hosts, 3);
    ck_assert_str_eq(o.hosts[0].name, "a");
    ck_assert_str_eq(o.hosts[0].devices, "mlx5_0,mlx5_1:2");
    ck_assert_str_eq(o.hosts[1].name, "b");
    ck_assert_ptr_null(o.hosts[1].devices);
    ck_assert_str_eq(o.hosts[2].devices, "rxe0");
    mrrun_options_clear(&o);
}
END_TEST

#define REFUSE(message, ...) refuse(message, (char *[]){"mrrun", __VA_ARGS__, NULL})

START_TEST(mistakes)
{
    REFUSE("unknown option '--pnn'; did you mean '--ppn'? ('mrrun --help' lists all)", "--pnn", "2");
    REFUSE("unknown option '--host=a'; did you mean '--hosts'? ('mrrun --help' lists all)", "--host=a");
    REFUSE("unknown option '--frobnicate' ('mrrun --help' lists all)", "--frobnicate");
    REFUSE("option -n: '0' is not a number from 1 to 65536", "-n", "0", "p");
    REFUSE("option -n: '4x' is not a number from 1 to 65536", "-n", "4x", "p");
    REFUSE("option -n: ' 4' is not a number from 1 to 65536", "-n", " 4", "p");
    REFUSE("option -n: '99999999999999999999' is not a number from 1 to 65536", "-n", "99999999999999999999", "p");
    REFUSE("option --hosts: an empty name in 'a,,b'", "-n", "2", "--hosts", "a,,b", "p");
    REFUSE("option --hosts: an empty name in 'a,'", "-n", "2", "--hosts", "a,", "p");
    REFUSE("option --hosts: 'a' is named twice", "-n", "2", "--hosts", "a,b,a", "p");
    REFUSE("option --hosts: 'a' is named twice", "-n", "2", "--hosts", "a=x,a=y", "p");
    REFUSE("option --hosts: an empty name in 'a='", "-n", "2", "--hosts", "a=", "p");
    REFUSE("option --hosts: an empty name in '=x'", "-n", "2", "--hosts", "=x", "p");
    REFUSE("option -x: '=1' names no variable (wanted: NAME or NAME=VALUE)", "-n", "2", "-x", "=1", "p");
    REFUSE("option '--label' takes no value", "-n", "2", "--label=yes", "p");
    REFUSE("option '-n' needs a value (-n N              start N ranks (also -np))", "-n");
    REFUSE("how many ranks? (usage: mrrun -n N [OPTIONS] PROGRAM [ARGS])", "p");
    REFUSE("no program to run (usage: mrrun -n N [OPTIONS] PROGRAM [ARGS])", "-n", "2");
}
END_TEST

START_TEST(help_needs_nothing_else)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "--help"), 0);
    ck_assert(o.help);
    mrrun_options_clear(&o);
}
END_TEST

START_TEST(environments)
{
    char *base[] = {"A=1", "AB=2", "PATHS=/x", NULL};
    char **env = environment_copy(base);

    ck_assert_str_eq(environment_get(env, "A"), "1");
    ck_assert_ptr_null(environment_get(env, "PATH"));
    ck_assert_int_eq(environment_set(&env, "A", "one"), 0);
    ck_assert_int_eq(environment_set(&env, "NEW", ""), 0);
    ck_assert_int_eq(environment_prepend_path(&env, "PATHS", "/y"), 0);
    ck_assert_int_eq(environment_prepend_path(&env, "NEW", "/z"), 0);
    ck_assert_str_eq(environment_get(env, "A"), "one");
    ck_assert_str_eq(environment_get(env, "AB"), "2");
    ck_assert_str_eq(environment_get(env, "PATHS"), "/y:/x");
    ck_assert_str_eq(environment_get(env, "NEW"), "/z");
    environment_free(env);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("options");

    tcase_add_test(tc, everything);
    tcase_add_test(tc, explaining);
    tcase_add_test(tc, figures);
    tcase_add_test(tc, timeout_of_the_environment);
    tcase_add_test(tc, other_launchers_spellings);
    tcase_add_test(tc, hosts_with_devices);
    tcase_add_test(tc, mistakes);
    tcase_add_test(tc, help_needs_nothing_else);
    tcase_add_test(tc, environments);
    return check_run(tc, NULL);
}
