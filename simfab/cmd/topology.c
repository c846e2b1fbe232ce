/* SPDX-License-Identifier: BSD-3-Clause */
/* `simfab topology`: writes the netlist of a network that is described in a few words. */
#include "simfab/cmd/cmd.h"
#include "simfab/cmd/graph.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/cmd/say.h"

const char usage_topology[] =
    "usage: simfab topology SHAPE --hosts N [OPTIONS] >FILE\n"
    "\n"
    "Writes a netlist for `simfab run --topology`, ibsim and others that read what ibnetdiscover prints. Shapes:\n"
    "\n"
    "  star        all hosts on one switch\n"
    "  fat-tree    two or three levels of switches; 1:1 unless told otherwise, so that any half of the hosts can talk "
    "to\n"
    "              the other half at full rate\n"
    "  dual-plane  a star, or a fat-tree if one switch is not enough, twice: --planes 2\n"
    "  line, ring  switches in a row, each with its share of the hosts\n"
    "\n"
    "  --hosts N                  how many hosts, called h1 or h001 and so on, with adapters mlx5_0, mlx5_1, ...\n"
    "  --radix N                  ports of a switch; default: 36\n"
    "  --levels 2|3               levels of a fat tree; default: the fewest that do\n"
    "  --oversubscription A:B     ports of a leaf towards hosts and towards spines; default: 1:1\n"
    "  --rails N                  adapters of each host, in a fat tree each on leaves of its own; default: 1\n"
    "  --planes N                 networks without a cable between them, with adapters of their own in every host: a\n"
    "                             subnet each; default: 1\n"
    "  --switches N               switches of a line or ring\n"
    "  --speed S                  SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR; default: what the timing model says\n"
    "  --width N                  lanes of every cable: 1, 2, 4, 8, 12; default: 4; with --speed\n"
    "\n"
    "Names and GUIDs depend on the options only. A fat tree has the fewest switches that do.\n";

static const struct {
    const char *name;
    enum shape_kind kind;
} shapes[] = {
    {"star", SHAPE_STAR}, {"fat-tree", SHAPE_FAT_TREE}, {"dual-plane", SHAPE_DUAL_PLANE},
    {"line", SHAPE_LINE}, {"ring", SHAPE_RING},
};

static bool number(const char *option, const char *text, unsigned low, unsigned high, unsigned *out)
{
    char *end;
    unsigned long v;

    errno = 0;
    v = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || v < low || v > high) {
        complain("--%s %s: a number from %u to %u is wanted", option, text, low, high);
        return false;
    }
    *out = (unsigned)v;
    return true;
}

static bool ratio(const char *text, unsigned *a, unsigned *b)
{
    char left[8], right[8], rest;

    if (sscanf(text, "%7[0-9]:%7[0-9]%c", left, right, &rest) == 2 && (*a = (unsigned)atoi(left)) > 0 &&
        (*b = (unsigned)atoi(right)) > 0 && *a <= SHAPE_RADIX_MAX && *b <= SHAPE_RADIX_MAX)
        return true;
    complain("--oversubscription %s: two numbers from 1 to %d are wanted, such as 2:1", text, SHAPE_RADIX_MAX);
    return false;
}

static bool is_word(const char *option, const char *text, const char *const *words, const char *list)
{
    for (; *words; words++)
        if (!strcmp(text, *words))
            return true;
    complain("--%s %s: one of %s is wanted", option, text, list);
    return false;
}

struct wish {
    struct shape_request r;
    const char *speed, *width;
};

enum { HOSTS = 1, RADIX, LEVELS, OVERSUBSCRIPTION, RAILS, PLANES, SWITCHES, SPEED, WIDTH };

static bool take(struct wish *w, int c, const char *arg)
{
    static const char *const speeds[] = {"SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", NULL};
    static const char *const widths[] = {"1", "2", "4", "8", "12", NULL};
    struct shape_request *r = &w->r;

    switch (c) {
    case HOSTS:
        return number("hosts", arg, 1, SHAPE_LIDS_MAX, &r->hosts);
    case RADIX:
        return number("radix", arg, 2, SHAPE_RADIX_MAX, &r->radix);
    case LEVELS:
        return number("levels", arg, 2, 3, &r->levels);
    case OVERSUBSCRIPTION:
        return ratio(arg, &r->to_hosts, &r->up);
    case RAILS:
        return number("rails", arg, 1, SHAPE_RAILS_MAX, &r->rails);
    case PLANES:
        return number("planes", arg, 1, SHAPE_RAILS_MAX, &r->planes);
    case SWITCHES:
        return number("switches", arg, 2, SHAPE_LIDS_MAX, &r->switches);
    case SPEED:
        w->speed = arg;
        return is_word("speed", arg, speeds, "SDR, DDR, QDR, FDR10, FDR, EDR, HDR and NDR");
    case WIDTH:
        w->width = arg;
        return is_word("width", arg, widths, "1, 2, 4, 8 and 12");
    default:
        fputs("Try `simfab topology --help`.\n", stderr);
        return false;
    }
}

/* args is the command line with room for a program name in front. */
static bool parse_wish(int argc, char **args, struct wish *w)
{
    static const struct option longs[] = {
        {"hosts", required_argument, NULL, HOSTS},
        {"radix", required_argument, NULL, RADIX},
        {"levels", required_argument, NULL, LEVELS},
        {"oversubscription", required_argument, NULL, OVERSUBSCRIPTION},
        {"rails", required_argument, NULL, RAILS},
        {"planes", required_argument, NULL, PLANES},
        {"switches", required_argument, NULL, SWITCHES},
        {"speed", required_argument, NULL, SPEED},
        {"width", required_argument, NULL, WIDTH},
        {NULL, 0, NULL, 0},
    };
    const char *shape;
    bool found = false;
    int c;

    args[0] = "simfab topology"; /* a name for getopt */
    w->r = (struct shape_request){.radix = 36, .to_hosts = 1, .up = 1, .rails = 1};
    while ((c = getopt_long(argc, args, "", longs, NULL)) != -1)
        if (!take(w, c, optarg))
            return false;
    shape = optind + 1 == argc ? args[optind] : NULL;
    for (size_t i = 0; shape && i < sizeof shapes / sizeof *shapes; i++)
        if (!strcmp(shape, shapes[i].name)) {
            w->r.kind = shapes[i].kind;
            found = true;
        }
    if (!found || !w->r.hosts) {
        complain(found ? "--hosts N is required" : "one shape is wanted: star, fat-tree, dual-plane, line or ring");
        return false;
    }
    if (!w->r.planes)
        w->r.planes = w->r.kind == SHAPE_DUAL_PLANE ? 2 : 1;
    if (w->r.switches && w->r.kind != SHAPE_LINE && w->r.kind != SHAPE_RING) {
        complain("--switches is for line and ring");
        return false;
    }
    if ((w->r.levels || w->r.to_hosts != w->r.up) && w->r.kind != SHAPE_FAT_TREE && w->r.kind != SHAPE_DUAL_PLANE) {
        complain("--levels and --oversubscription are for fat-tree and dual-plane");
        return false;
    }
    return true;
}

/* The request, and the numbers to check the result. */
static void write_heading(const struct wish *w, const struct shape *s, const struct graph *g, int argc, char **argv)
{
    fputs("# simfab topology", stdout);
    for (int i = 0; i < argc; i++)
        printf(" %s", argv[i]);
    printf("\n#\n# %u hosts, %u adapter%s each, %u switches, %u cables", w->r.hosts, w->r.rails * w->r.planes,
           w->r.rails * w->r.planes == 1 ? "" : "s", shape_switches(s) * w->r.planes, g->num_cables);
    if (w->r.planes > 1)
        printf("; %u planes, each a subnet", w->r.planes);
    putchar('\n');
    if (s->levels > 1)
        printf("# %u leaves: at most %u cables down, %u up\n", s->leaves, s->leaf_hosts, s->pod_spines * s->leaf_link);
    if (s->levels > 2)
        printf("# %u spines in %u pods: %u cables down, %u up; %u cores\n", s->pods * s->pod_spines, s->pods,
               s->pod_leaves * s->leaf_link, s->cores * s->spine_link, s->pod_spines * s->cores);
    else if (s->levels > 1)
        printf("# %u spines: %u cables down\n", s->pod_spines, s->pod_leaves * s->leaf_link);
}

static int write_netlist(const struct wish *w, int argc, char **argv)
{
    char why[512], rate[16] = "";
    struct shape s;
    struct graph g;
    bool ok;

    if (!shape_plan(&w->r, &s, why)) {
        complain("%s", why);
        return EXIT_USAGE;
    }
    if (w->width && !w->speed) {
        complain("--width wants --speed beside it");
        return EXIT_USAGE;
    }
    if (w->speed)
        snprintf(rate, sizeof rate, "%sx%s", w->width ? w->width : "4", w->speed);
    graph_build(&g, &w->r, &s);
    write_heading(w, &s, &g, argc, argv);
    ok = graph_write(&g, rate, stdout) && !fflush(stdout);
    if (!ok)
        complain("%s", strerror(errno));
    graph_free(&g);
    return ok ? 0 : 1;
}

int cmd_topology(int argc, char **argv)
{
    char **args = calloc((size_t)argc + 2, sizeof *args), **said = calloc((size_t)argc + 1, sizeof *said);
    struct wish w = {0};
    int status = 1;

    if (args && said) {
        memcpy(args + 1, argv, (size_t)argc * sizeof *argv);
        memcpy(said, argv, (size_t)argc * sizeof *argv); /* getopt changes the order */
        status = parse_wish(argc + 1, args, &w) ? write_netlist(&w, argc, said) : EXIT_USAGE;
    }
    free(args);
    free(said);
    return status;
}
