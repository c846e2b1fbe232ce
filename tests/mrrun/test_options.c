/* SPDX-License-Identifier: BSD-3-Clause */
/* mrrun's command line, and the resulting environments. */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/launch/triplets.h"
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
    return mrrun_options_parse(opts, n, kept, why, sizeof(why)) || mrrun_options_check(opts, why, sizeof(why)) ? -1 : 0;
}

#define PARSE(opts, ...) parse(opts, (char *[]){"mrrun", __VA_ARGS__, NULL})

static void refuse(const char *message, char **words)
{
    struct mrrun_options o;

    ck_assert_int_eq(parse(&o, words), -1);
    ck_assert_str_eq(why, message);
    mrrun_options_clear(&o);
}

#define REFUSE(message, ...) refuse(message, (char *[]){"mrrun", __VA_ARGS__, NULL})

static void check_host(const struct hostlist *list, int i, const char *name, int slots, int max)
{
    ck_assert_int_lt(i, list->count);
    ck_assert_str_eq(list->host[i].name, name);
    ck_assert_int_eq(list->host[i].slots, slots);
    ck_assert_int_eq(list->host[i].max_slots, max);
}

START_TEST(everything)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "-n", "4", "--ppn=2", "--hosts", "a,b,c", "-x", "A=1", "--env", "B", "2 3", "--job-id",
                           "j7", "--timeout", "30", "--grace", "0", "--stats", "-l", "-v", "prog", "-n", "9",
                           "--hosts"),
                     0);
    ck_assert_int_eq(o.ranks, 4);
    ck_assert_int_eq(o.ppn, 2);
    ck_assert_int_eq(o.hosts.count, 3);
    ck_assert_str_eq(o.hosts.host[0].name, "a");
    ck_assert_str_eq(o.hosts.host[2].name, "c");
    ck_assert_int_eq(o.num_parts, 1);
    ck_assert_int_eq(o.parts[0].env.count, 2);
    ck_assert_str_eq(o.parts[0].env.text[0], "A=1");
    ck_assert_str_eq(o.parts[0].env.text[1], "B=2 3");
    ck_assert_str_eq(o.job_id, "j7");
    ck_assert_int_eq(o.timeout_s, 30);
    ck_assert_int_eq(o.grace_s, 0);
    ck_assert(o.stats && o.label && o.verbose);
    ck_assert_str_eq(o.parts[0].program[0], "prog");
    ck_assert_str_eq(o.parts[0].program[1], "-n");
    ck_assert_str_eq(o.parts[0].program[3], "--hosts");
    ck_assert_ptr_null(o.parts[0].program[4]);
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
    mrrun_options_clear(&o);
    ck_assert_int_eq(PARSE(&o, "-n", "1", "--stats=json:a b", "prog"), 0);
    ck_assert_str_eq(o.stats_as, "json:a b");
    mrrun_options_clear(&o);
    ck_assert_int_eq(PARSE(&o, "-n", "1", "--stats=json", "-stats", "prog"), 0); /* the last one counts */
    ck_assert(o.stats);
    ck_assert_ptr_null(o.stats_as);
    ck_assert_ptr_null(o.trace);
    mrrun_options_clear(&o);
    REFUSE("option --stats: '' is neither json nor json:FILE", "-n", "1", "--stats=", "prog");
    REFUSE("option --stats: 'json:' is neither json nor json:FILE", "-n", "1", "--stats=json:", "prog");
    REFUSE("option --stats: 'jsonfile' is neither json nor json:FILE", "-n", "1", "--stats=jsonfile", "prog");
}
END_TEST

START_TEST(explaining)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "--explain"), 0);
    ck_assert(o.explain && !o.ranks);
    ck_assert_ptr_null(o.parts[0].program[0]);
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
    ck_assert_str_eq(o.parts[0].program[0], "-p");
    mrrun_options_clear(&o);
}
END_TEST

/* Each spelling of an option counts. */
START_TEST(ranks_per_host)
{
    static const char *const spellings[] = {"--ppn", "-ppn", "-N", "-npernode", "--npernode", "-perhost"};
    struct mrrun_options o;

    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        ck_assert_int_eq(PARSE(&o, (char *)spellings[i], "3", "p"), 0); /* without -n: on each host */
        ck_assert_int_eq(o.ppn, 3);
        ck_assert_int_eq(o.ranks, 0);
        mrrun_options_clear(&o);
    }
    ck_assert_int_eq(PARSE(&o, "-pernode", "p"), 0);
    ck_assert_int_eq(o.ppn, 1);
    mrrun_options_clear(&o);
    ck_assert_int_eq(PARSE(&o, "-H", "a:2", "p"), 0);
    ck_assert_int_eq(o.ranks, 0);
    mrrun_options_clear(&o);
}
END_TEST

START_TEST(parts)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "-genv", "G", "g", "-n", "2", "-wdir", "/d", "-x", "A=1", "p", "-n", "9", ":", "-np",
                           "3", "-env", "A", "2", "-host", "h", "-l", "q", ":", "-n", "1", "r"),
                     0);
    ck_assert_int_eq(o.num_parts, 3);
    ck_assert_int_eq(o.ranks, 6);
    ck_assert_int_eq(o.parts[0].ranks, 2);
    ck_assert_int_eq(o.parts[1].ranks, 3);
    ck_assert_str_eq(o.parts[0].wdir, "/d");
    ck_assert_ptr_null(o.parts[1].wdir);
    ck_assert_str_eq(o.parts[0].program[2], "9");
    ck_assert_ptr_null(o.parts[0].program[3]);
    ck_assert_str_eq(o.parts[1].program[0], "q");
    ck_assert_ptr_null(o.parts[1].program[1]);
    ck_assert_str_eq(o.parts[2].program[0], "r");
    ck_assert_str_eq(mrrun_options_env(&o, &o.parts[0], "A"), "1");
    ck_assert_str_eq(mrrun_options_env(&o, &o.parts[1], "A"), "2");
    ck_assert_ptr_null(mrrun_options_env(&o, &o.parts[2], "A"));
    ck_assert_str_eq(mrrun_options_env(&o, &o.parts[2], "G"), "g");
    ck_assert_int_eq(o.parts[1].hosts.count, 1);
    ck_assert_int_eq(o.hosts.count, 0);
    ck_assert(o.label); /* of the whole job, at any place */
    mrrun_options_clear(&o);
}
END_TEST

static int parse_config(struct mrrun_options *o, const char *text, char **words)
{
    int err = parse(o, words);

    ck_assert_int_eq(err, -1); /* the parts are missing still */
    err = mrrun_options_config(o, text, why, sizeof(why));
    return err ? err : mrrun_options_check(o, why, sizeof(why));
}

#define CONFIG(opts, text, ...)                                                                                        \
    parse_config(opts, text, (char *[]){"mrrun", "-configfile", "f", __VA_ARGS__ __VA_OPT__(, ) NULL})

START_TEST(parts_of_a_file)
{
    struct mrrun_options o;

    ck_assert_int_eq(CONFIG(&o,
                            "# two parts\n\n-n 2 -env A 'it is' p \"a b\" c\\ d '' x\\\ny\r\n"
                            "   -n 3 q # comment\n",
                            "-l"),
                     0);
    ck_assert(o.label);
    ck_assert_int_eq(o.num_parts, 2);
    ck_assert_int_eq(o.ranks, 5);
    ck_assert_str_eq(mrrun_options_env(&o, &o.parts[0], "A"), "it is");
    ck_assert_str_eq(o.parts[0].program[1], "a b");
    ck_assert_str_eq(o.parts[0].program[2], "c d");
    ck_assert_str_eq(o.parts[0].program[3], "");
    ck_assert_str_eq(o.parts[0].program[4], "xy");
    ck_assert_ptr_null(o.parts[0].program[5]);
    ck_assert_str_eq(o.parts[1].program[0], "q");
    ck_assert_ptr_null(o.parts[1].program[1]);
    mrrun_options_clear(&o);
    ck_assert_int_eq(CONFIG(&o, "-n 1 p\n-n 1 'q\n"), -1);
    ck_assert_str_eq(why, "f:2: a quote is not closed");
    mrrun_options_clear(&o);
    ck_assert_int_eq(CONFIG(&o, "\n# nothing\n"), -1);
    mrrun_options_clear(&o);
    ck_assert_int_eq(CONFIG(&o, "-n 1 p\n", "-n", "1"), -1);
    ck_assert_ptr_nonnull(strstr(why, "'f' has the parts of the job"));
    mrrun_options_clear(&o);
    ck_assert_int_eq(CONFIG(&o, "-n 1 -configfile g p\n"), -1);
    mrrun_options_clear(&o);
}
END_TEST

START_TEST(hosts_of_a_file)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "-n", "1", "-f", "f", "p"), 0);
    ck_assert_str_eq(o.host_file, "f");
    ck_assert_int_eq(mrrun_options_hosts(&o, "# a comment\n\na\nb:2\n  c slots=3 max_slots=4 # more\r\nd=x+y\nb:3\na",
                                         why, sizeof(why)),
                     0);
    ck_assert_int_eq(o.hosts.count, 4);
    check_host(&o.hosts, 0, "a", 2, 0);
    check_host(&o.hosts, 1, "b", 5, 0);
    check_host(&o.hosts, 2, "c", 3, 4);
    check_host(&o.hosts, 3, "d", 0, 0);
    ck_assert_str_eq(o.hosts.host[3].devices, "x,y");
    ck_assert_int_eq(mrrun_options_hosts(&o, "a\n", why, sizeof(why)), -1); /* named already */
    mrrun_options_clear(&o);
    ck_assert_int_eq(PARSE(&o, "-n", "1", "-machinefile", "f", "p"), 0);
    ck_assert_int_eq(mrrun_options_hosts(&o, "a\nb slotz=2\n", why, sizeof(why)), -1);
    ck_assert_str_eq(why, "f:2: no setting of a host in 'slotz=2' (wanted: HOST[:SLOTS][=DEVICE+...] [slots=N] "
                          "[max_slots=N])");
    hostlist_clear(&o.hosts);
    ck_assert_int_eq(mrrun_options_hosts(&o, "a:0\n", why, sizeof(why)), -1);
    hostlist_clear(&o.hosts);
    ck_assert_int_eq(mrrun_options_hosts(&o, "a slots=99999999999\n", why, sizeof(why)), -1);
    hostlist_clear(&o.hosts);
    ck_assert_int_eq(mrrun_options_hosts(&o, "# none\n", why, sizeof(why)), -1);
    mrrun_options_clear(&o);
}
END_TEST

START_TEST(hosts_with_devices)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "-n", "2", "--hosts", "a=mlx5_0+mlx5_1:2,b,c=rxe0", "p"), 0);
    ck_assert_int_eq(o.hosts.count, 3);
    ck_assert_str_eq(o.hosts.host[0].name, "a");
    ck_assert_str_eq(o.hosts.host[0].devices, "mlx5_0,mlx5_1:2");
    ck_assert_str_eq(o.hosts.host[1].name, "b");
    ck_assert_ptr_null(o.hosts.host[1].devices);
    ck_assert_str_eq(o.hosts.host[2].devices, "rxe0");
    mrrun_options_clear(&o);
    ck_assert_int_eq(PARSE(&o, "-n", "2", "--hosts", "a:4,b:1=x,a", "p"), 0);
    ck_assert_int_eq(o.hosts.count, 2);
    check_host(&o.hosts, 0, "a", 5, 0);
    check_host(&o.hosts, 1, "b", 1, 0);
    mrrun_options_clear(&o);
}
END_TEST

static void check_binding(char *option, char *value, enum binding_object target, enum binding_object unit, int units)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "-n", "1", option, value, "p"), 0);
    ck_assert_int_eq(binding_target(&o.binding), target);
    ck_assert_int_eq(binding_unit(&o.binding), unit);
    ck_assert_int_eq(o.binding.units, units);
    ck_assert_int_eq(binding_wanted(&o.binding), target && target != BINDING_NONE);
    mrrun_options_clear(&o);
}

START_TEST(bindings)
{
    struct mrrun_options o;

    check_binding("-bind-to", "core", BINDING_CORE, BINDING_CORE, 0);
    check_binding("--bind-to", "socket", BINDING_SOCKET, BINDING_SOCKET, 0);
    check_binding("--bind-to", "hwthread:2", BINDING_HWTHREAD, BINDING_HWTHREAD, 2);
    check_binding("--bind-to", "none", BINDING_NONE, BINDING_NONE, 0);
    check_binding("-map-by", "numa", BINDING_NUMA, BINDING_NUMA, 0);
    check_binding("-map-by", "socket:PE=4", BINDING_CORE, BINDING_CORE, 4);
    check_binding("-map-by", "slot", BINDING_NOT_SAID, BINDING_NOT_SAID, 0);
    check_binding("-map-by", "none", BINDING_NONE, BINDING_NONE, 0);
    ck_assert_int_eq(PARSE(&o, "-n", "1", "--map-by", "core", "--bind-to", "numa", "p"), 0);
    ck_assert_int_eq(binding_target(&o.binding), BINDING_NUMA);
    ck_assert_int_eq(binding_unit(&o.binding), BINDING_CORE);
    mrrun_options_clear(&o);
    ck_assert_int_eq(PARSE(&o, "-n", "1", "--map-by", "node:PE=2", "p"), 0);
    ck_assert(o.by_node && o.binding.to == BINDING_CORE && o.binding.units == 2);
    mrrun_options_clear(&o);
    ck_assert_int_eq(PARSE(&o, "--map-by", "ppr:3:node", "p"), 0);
    ck_assert_int_eq(o.ppn, 3);
    mrrun_options_clear(&o);
}
END_TEST

/* Ranks in their order, on units with these distances and parents. */
static void check_choices(int num, const unsigned *distance, const int *parent, int ranks, const int *want)
{
    struct binding_place place[8];
    int parent_taken[8] = {0};

    for (int i = 0; i < num; i++)
        place[i] = (struct binding_place){.distance = distance[i], .parent = parent[i]};
    for (int r = 0; r < ranks; r++)
        ck_assert_int_eq(binding_choose(place, num, parent_taken), want[r]);
}

START_TEST(choices)
{
    const unsigned same[] = {10, 10, 10, 10}, second[] = {20, 20, 10, 10};
    const int none[] = {-1, -1, -1, -1}, two[] = {0, 0, 1, 1};

    check_choices(4, same, none, 6, (int[]){0, 1, 2, 3, 0, 1});
    check_choices(4, second, none, 5, (int[]){2, 3, 0, 1, 2}); /* near adapters first */
    check_choices(4, same, two, 5, (int[]){0, 2, 1, 3, 0});    /* in turn */
    check_choices(4, second, two, 4, (int[]){2, 0, 3, 1});
    ck_assert_int_eq(binding_choose(NULL, 0, NULL), -1);
}
END_TEST

static void check_readers(char *spec, int ranks, const char *want)
{
    struct mrrun_options o;
    char text[16] = "";

    ck_assert_int_eq(PARSE(&o, "-n", "1", "-s", spec, "p"), 0);
    for (int r = 0; r < ranks; r++)
        text[r] = mrrun_options_reads(&o, r) ? '1' : '0';
    ck_assert_str_eq(text, want);
    mrrun_options_clear(&o);
}

START_TEST(readers)
{
    struct mrrun_options o;

    check_readers("all", 4, "1111");
    check_readers("none", 4, "0000");
    check_readers("2", 4, "0010");
    check_readers("0,2-3,9", 5, "10110");
    ck_assert_int_eq(PARSE(&o, "-n", "1", "p"), 0);
    ck_assert(mrrun_options_reads(&o, 0) && !mrrun_options_reads(&o, 1));
    mrrun_options_clear(&o);
}
END_TEST

START_TEST(mistakes)
{
    REFUSE(
        "unknown option '--hostz=a'; did you mean '--hosts' (the hosts to use, in this order)? ('mrrun --help' lists "
        "all)",
        "--hostz=a");
    REFUSE("unknown option '--time-out'; did you mean '--timeout' (end the job after S seconds)? ('mrrun --help' lists "
           "all)",
           "--time-out", "3");
    REFUSE("unknown option '--frobnicate' ('mrrun --help' lists all)", "--frobnicate");
    REFUSE("unknown option '-g' ('mrrun --help' lists all)", "-g"); /* a letter alone resembles nothing */
    REFUSE("unknown option '-zz' ('mrrun --help' lists all)", "-zz");
    REFUSE("option '-rmk' is not mrrun's: --launcher CMD starts agents on other hosts by CMD HOST PROGRAM ARG, ssh and "
           "srun by themselves",
           "-rmk", "slurm");
    REFUSE("option '--mca' is not mrrun's: it chooses Open MPI's components; mrmpi's settings are variables (-x "
           "MRMPI_...; --explain lists them)",
           "--mca", "btl", "tcp");
    REFUSE("option '--nolocal' is not mrrun's: --hosts names the hosts to use; leave this machine out of them",
           "--nolocal", "p");
    REFUSE("option '-rr' is not mrrun's: --map-by node deals ranks out to hosts in turn", "-rr", "p");
    REFUSE("option '--display' is not mrrun's: -v says where ranks are started and how they end", "--display", "map");
    REFUSE("option '-prepend-pattern' is not mrrun's: -l puts the rank in front of each line", "-prepend-pattern",
           "%r");
    REFUSE("option '-pmi-port' is not mrrun's: ranks get PMIx, which needs no settings", "-pmi-port", "p");
    REFUSE("option '-q' is not mrrun's: mrrun says nothing of a job that ends well", "-q", "p");
    REFUSE("option -n: '0' is not a number from 1 to 65536", "-n", "0", "p");
    REFUSE("option -n: '4x' is not a number from 1 to 65536", "-n", "4x", "p");
    REFUSE("option -n: ' 4' is not a number from 1 to 65536", "-n", " 4", "p");
    REFUSE("option -n: '99999999999999999999' is not a number from 1 to 65536", "-n", "99999999999999999999", "p");
    REFUSE("option --hosts: an empty name in 'a,,b'", "-n", "2", "--hosts", "a,,b", "p");
    REFUSE("option --hosts: an empty name in 'a,'", "-n", "2", "--hosts", "a,", "p");
    REFUSE("option --hosts: a host with devices is named twice in 'a=x,a=y'", "-n", "2", "--hosts", "a=x,a=y", "p");
    REFUSE("option -H: what follows ':' is no number of slots in 'a:x'", "-n", "2", "-H", "a:x", "p");
    REFUSE("option -map-by: 'moon' is none of slot, node, none, hwthread, core, l2cache, l3cache, numa and socket, nor "
           "one "
           "with :PE=N behind it, nor ppr:K:node",
           "-n", "2", "-map-by", "moon", "p");
    REFUSE(
        "option -bind-to: 'core:0' is none of none, hwthread, core, l2cache, l3cache, numa and socket, nor one with :N "
        "behind it",
        "-n", "2", "-bind-to", "core:0", "p");
    REFUSE(
        "option -bind-to: 'none:2' is none of none, hwthread, core, l2cache, l3cache, numa and socket, nor one with :N "
        "behind it",
        "-n", "2", "-bind-to", "none:2", "p");
    REFUSE("option -s: '1-' is neither all, none nor a list of ranks (0,4-6)", "-n", "2", "-s", "1-", "p");
    REFUSE("option -s: '1,' is neither all, none nor a list of ranks (0,4-6)", "-n", "2", "-s", "1,", "p");
    REFUSE("option -s: '3-1' is neither all, none nor a list of ranks (0,4-6)", "-n", "2", "-s", "3-1", "p");
    REFUSE("option -s: '' is neither all, none nor a list of ranks (0,4-6)", "-n", "2", "-s", "", "p");
    REFUSE("option -outfile-pattern: 'a%': a % is followed by none of r, h, p, g and %", "-n", "2", "-outfile-pattern",
           "a%", "p");
    REFUSE("option -env: there is no value for A (wanted: NAME VALUE or NAME=VALUE)", "-n", "2", "-env", "A");
    REFUSE("option -genvlist: 'A,,B' is no list of names of variables", "-n", "2", "-genvlist", "A,,B", "p");
    REFUSE("there is no program behind a ':'", "-n", "2", "p", ":");
    REFUSE("there is no program in front of a ':'", "-n", "2", ":", "-n", "1", "p");
    REFUSE("how many ranks of 'q'? (usage: mrrun -n N [OPTIONS] PROGRAM [ARGS] [: -n N ...])", "-n", "2", "p", ":",
           "q");
    REFUSE("70000 ranks are more than 65536", "-n", "35000", "p", ":", "-n", "35000", "p");
    REFUSE("option --hosts: an empty name in 'a='", "-n", "2", "--hosts", "a=", "p");
    REFUSE("option --hosts: an empty name in '=x'", "-n", "2", "--hosts", "=x", "p");
    REFUSE("option -x: '=1' names no variable (wanted: NAME[=VALUE])", "-n", "2", "-x", "=1", "p");
    REFUSE("option '--label' takes no value", "-n", "2", "--label=yes", "p");
    REFUSE("option '-n' needs a value: -n N, start N ranks of the program", "-n");
    REFUSE("how many ranks? (usage: mrrun -n N [OPTIONS] PROGRAM [ARGS] [: -n N ...])", "p");
    REFUSE("no program to run (usage: mrrun -n N [OPTIONS] PROGRAM [ARGS] [: -n N ...])", "-n", "2");
}
END_TEST

START_TEST(help_needs_nothing_else)
{
    struct mrrun_options o;

    ck_assert_int_eq(mrrun_options_parse(&o, 2, (char *[]){"mrrun", "--help", NULL}, why, sizeof(why)), 0);
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

static void check_triplets(const char *text, int max, int least, int largest)
{
    int a = -1, b = -1;

    ck_assert(mr_triplets_read(text, max, &a, &b));
    ck_assert_int_eq(a, least);
    ck_assert_int_eq(b, largest);
}

START_TEST(soft_numbers)
{
    static const char *const bad[] = {
        "", "a", "1,", ",1", "1:", "1:2:", "1:2:0", "3:1", "1:3:-1", "1:2:3:4", "1 2", "99999999999"};
    int a, b;

    check_triplets("4", 8, 4, 4);
    check_triplets("9", 8, 0, 0);
    check_triplets("1:8", 8, 1, 8);
    check_triplets("-5:3", 8, 1, 3);
    check_triplets("0:8:3", 8, 3, 6);
    check_triplets("-4:20:5", 8, 1, 6);
    check_triplets("20:2:-4", 9, 4, 8);
    check_triplets("5:5", 8, 5, 5);
    check_triplets(" 7 , 2 : 4 : 2", 6, 2, 4);
    check_triplets("8,2,4", 5, 2, 4);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!mr_triplets_read(bad[i], 8, &a, &b), "'%s' is a set", bad[i]);
}
END_TEST

START_TEST(parts_with_more_hosts)
{
    struct mrrun_options o;

    ck_assert_int_eq(PARSE(&o, "-n", "4", "-soft", "1:4", "--host", "a", "--add-host", "b:2", "--add-hostfile", "f",
                           "p", ":", "-n", "1", "--add-host", "c", "q"),
                     0);
    ck_assert_str_eq(o.parts[0].soft, "1:4");
    ck_assert_int_eq(o.parts[0].num_host_files, 1);
    ck_assert_str_eq(o.parts[0].host_file[0], "f");
    ck_assert_int_eq(mrrun_options_part_hosts(&o.parts[0], 0, "d slots=3\n", why, sizeof(why)), 0);
    ck_assert_int_eq(o.parts[0].hosts.count, 3);
    check_host(&o.parts[0].hosts, 0, "a", 0, 0);
    check_host(&o.parts[0].hosts, 1, "b", 2, 0);
    check_host(&o.parts[0].hosts, 2, "d", 3, 0);
    ck_assert_ptr_null(o.parts[1].soft);
    check_host(&o.parts[1].hosts, 0, "c", 0, 0);
    mrrun_options_clear(&o);
    REFUSE("option -soft: '2:1' is no list of A, A:B and A:B:STEP", "-n", "2", "-soft", "2:1", "p");
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
    tcase_add_test(tc, ranks_per_host);
    tcase_add_test(tc, parts);
    tcase_add_test(tc, parts_of_a_file);
    tcase_add_test(tc, hosts_of_a_file);
    tcase_add_test(tc, hosts_with_devices);
    tcase_add_test(tc, bindings);
    tcase_add_test(tc, choices);
    tcase_add_test(tc, readers);
    tcase_add_test(tc, soft_numbers);
    tcase_add_test(tc, parts_with_more_hosts);
    tcase_add_test(tc, mistakes);
    tcase_add_test(tc, help_needs_nothing_else);
    tcase_add_test(tc, environments);
    return check_run(tc, NULL);
}
