/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults: the words of a command (pure), and their effects on a fabric without processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/words.h"
#include "simfab/engine/clock/sched.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fault/fault.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/wire/link.h"
#include "tests/check.h"
#include "tests/simfab/sim_lab.h"

static struct text said;

static bool parse(const char *line, struct fault_cmd *c)
{
    text_free(&said);
    return fault_parse(line, c, &said);
}

/* ---- words ----------------------------------------------------------------------------------------------------- */

START_TEST(numbers_and_times_are_exact_or_refused)
{
    uint64_t v = 0;
    double d = 0;

    ck_assert(word_time("1.5ms", &v) && v == 1500000000ull);
    ck_assert(word_time("0s", &v) && v == 0);
    ck_assert(word_time("7ps", &v) && v == 7);
    ck_assert(!word_time("5", &v));
    ck_assert(!word_time("-5ms", &v));
    ck_assert(!word_time("ms", &v));
    ck_assert(!word_time("5 ms", &v));
    ck_assert(!word_time("1e99s", &v));
    ck_assert(!word_time("nans", &v));
    ck_assert(!word_time("90000s", &v));
    ck_assert(word_whole("254", 1, 254, &v) && v == 254);
    ck_assert(!word_whole("255", 1, 254, &v));
    ck_assert(!word_whole("1.5", 1, 254, &v));
    ck_assert(!word_whole("0x10", 1, 254, &v));
    ck_assert(!word_whole("", 0, 254, &v));
    ck_assert(word_real("0.25", 0, 1, &d) && d == 0.25);
    ck_assert(!word_real("inf", 0, 1, &d));
    ck_assert(!word_real("0.5x", 0, 1, &d));
}
END_TEST

START_TEST(words_are_bounded)
{
    char line[4096];
    struct words w;

    ck_assert(words_split("", &w, &said));
    ck_assert_uint_eq(w.n, 0);
    ck_assert(words_split("a b\n\nc", &w, &said));
    ck_assert_uint_eq(w.n, 3);
    ck_assert_str_eq(w.word[0], "a b");
    ck_assert_str_eq(w.word[1], "");
    memset(line, 'x', WORD_MAX);
    line[WORD_MAX] = 0;
    ck_assert(!words_split(line, &w, &said));
    memset(line, '\n', WORDS_MAX);
    strcpy(line + WORDS_MAX, "x");
    ck_assert(!words_split(line, &w, &said));
    ck_assert_ptr_nonnull(strstr(said.buf, "too many words"));
}
END_TEST

START_TEST(commands_say_what_they_mean)
{
    struct fault_cmd c;

    ck_assert(parse("link\nh1 mlx5_0\n1\nloss=0.01\ncorrupt=0.5\nfor=10ms\nafter=1us", &c));
    ck_assert_int_eq(c.target, FAULT_LINK);
    ck_assert_str_eq(c.name, "h1 mlx5_0");
    ck_assert_uint_eq(c.port, 1);
    ck_assert_uint_eq(c.has, FAULT_LOSS | FAULT_CORRUPT | FAULT_FOR | FAULT_AFTER);
    ck_assert(c.loss == 0.01 && c.corrupt == 0.5);
    ck_assert_uint_eq(c.for_ps, 10000000000ull);
    ck_assert_uint_eq(c.when_ps, 1000000ull);
    ck_assert(parse("link\nleaf1\n2\nloss_out=1", &c));
    ck_assert_uint_eq(c.has, FAULT_LOSS_OUT);
    ck_assert(c.loss_out == 1 && c.loss == 0);
    ck_assert(parse("link\nall\nall\ndown", &c));
    ck_assert_str_eq(c.name, "*");
    ck_assert_uint_eq(c.port, 0);
    ck_assert(parse("link\nleaf*\nwidth=4\nspeed=EDR", &c));
    ck_assert_uint_eq(c.width_denied, 0xec); /* leaves 1X, 4X */
    ck_assert_uint_eq(c.speed_denied, 0);
    ck_assert_uint_eq(c.ext_speed_denied, 0xfc); /* leaves FDR and EDR */
    ck_assert(parse("host\nh1\nslow=2.5", &c));
    ck_assert(c.slow == 2.5);
    ck_assert(parse("node\nleaf1\ndie", &c));
    ck_assert_uint_eq(c.has, FAULT_DOWN);
    ck_assert(parse("list", &c));
    ck_assert_int_eq(c.verb, FAULT_LIST);
}
END_TEST

static const struct {
    const char *line, *says;
} wrong[] = {
    {"", "not link, node, host"},
    {"lnk\nh1\ndown", "\"lnk\" is not link"},
    {"link", "which link"},
    {"link\nh1 mlx5_0", "what shall happen"},
    {"link\nh1 mlx5_0\n1", "what shall happen"},
    {"link\nh1 mlx5_0\n0\ndown", "\"0\" is not a port"},
    {"link\nh1 mlx5_0\n255\ndown", "not a port"},
    {"link\nh1 mlx5_0\n1\ndie", "nothing that can be said of a link"},
    {"link\nh1 mlx5_0\n1\nslow=2", "nothing that can be said of a link"},
    {"node\nleaf1\ndown", "nothing that can be said of a node"},
    {"node\nleaf1\nslow=2", "nothing that can be said of a node"},
    {"link\nh1 mlx5_0\nloss=1.1", "not a probability"},
    {"link\nh1 mlx5_0\nloss=", "not a probability"},
    {"link\nh1 mlx5_0\nloss=0.1\nloss=0.2", "given twice"},
    {"link\nh1 mlx5_0\nwidth=3", "not 1, 2, 4, 8 or 12"},
    {"link\nh1 mlx5_0\nspeed=fast", "not SDR"},
    {"link\nh1 mlx5_0\noverrun=2", "not a probability"},
    {"link\nh1 mlx5_0\nfc=no", "not on or off"},
    {"link\nh1 mlx5_0\nloss_out=2", "not a probability"},
    {"node\nleaf1\nloss_out=1", "nothing that can be said of a node"},
    {"link\nh1 mlx5_0\ndrop=", "not numbers of packets"},
    {"link\nh1 mlx5_0\ndrop=0,1", "not numbers of packets"},
    {"link\nh1 mlx5_0\ndrop=2,2", "not numbers of packets"},
    {"link\nh1 mlx5_0\ndrop=3,2", "not numbers of packets"},
    {"link\nh1 mlx5_0\ndrop=1,", "not numbers of packets"},
    {"link\nh1 mlx5_0\ndrop=1.5", "not numbers of packets"},
    {"link\nh1 mlx5_0\ndrop=1,2,3,4,5,6,7,8,9", "not numbers of packets"},
    {"link\nh1 mlx5_0\ndrop=4000000001", "not numbers of packets"},
    {"host\nh1\ndrop=1", "nothing that can be said of a host"},
    {"node\nleaf1\nfc=off", "nothing that can be said of a node"},
    {"host\nh1\nslow=0.5", "from 1 to 1000"},
    {"link\nh1 mlx5_0\nup\ndown", "both up and down"},
    {"link\nh1 mlx5_0\nup\nfor=1ms", "does not go with up"},
    {"link\nh1 mlx5_0\ndown\nat=1ms\nafter=1ms", "not both"},
    {"link\nh1 mlx5_0\ndown\nat=1", "not a time"},
    {"clear\nnow", "not link, node, host"},
};

START_TEST(what_is_wrong_is_named)
{
    struct fault_cmd c;

    ck_assert(!parse(wrong[_i].line, &c));
    ck_assert_msg(strstr(said.buf, wrong[_i].says) != NULL, "%s: %s", wrong[_i].line, said.buf);
}
END_TEST

START_TEST(printing_gives_the_words_back)
{
    struct fault_cmd c;

    ck_assert(parse(
        "link\nh1 "
        "mlx5_0\n1\ndown\nloss=0.25\nloss_out=0.75\ncorrupt=0.5\ndrop=1,20,4000000000\nwidth=2\nspeed=QDR\nfor=10ms",
        &c));
    text_free(&said);
    fault_print(&c, &said);
    ck_assert_str_eq(said.buf, "link \"h1 mlx5_0\" 1 down loss=0.25 loss_out=0.75 corrupt=0.5 drop=1,20,4000000000 "
                               "width=2 speed=QDR for=10ms");
}
END_TEST

/* ---- on a fabric ----------------------------------------------------------------------------------------------- */

static struct sim sim;
static struct parse_error bring_up(const char *model)
{
    return sim_lab_load(&sim, model, "etc/topologies/two-switches-two-paths.net", 0);
}

static struct port *port_of(const char *node, unsigned num)
{
    return sim_lab_port(&sim, node, num);
}

static bool command(const char *line)
{
    text_free(&said);
    return fault_command(&sim, line, &said);
}

static void nothing(void *obj, uint64_t arg)
{
}

/* Somebody waits for time t. */
static void wait_until(uint64_t t_ps)
{
    evq_push(&sim.q, t_ps, nothing, NULL, 0);
    while (sched_run(&sim, false, true) == 0)
        ;
}

START_TEST(a_fault_to_come_moves_no_time)
{
    struct port *p;

    ck_assert_str_eq(bring_up("faults:\n- {link: leaf1, port: 3, set: down, at_ms: 5, for_ms: 10}\n").text, "");
    p = port_of("leaf1", 3);
    sched_run(&sim, false, true);
    ck_assert_uint_eq(sim_now(&sim), 0);
    ck_assert(p->cable_up);
    wait_until(4999999999ull);
    ck_assert(p->cable_up);
    ck_assert_uint_eq(sim_now(&sim), 4999999999ull);
    wait_until(6000000000ull);
    ck_assert(!p->cable_up);
    ck_assert_int_eq(p->state, PORT_DOWN);
    ck_assert_int_eq(p->peer->state, PORT_DOWN);
    ck_assert(command("list"));
    ck_assert_str_eq(said.buf, "link \"leaf1\" 3 - \"leaf2\" 3: down\nat 0.015000000 s: link \"leaf1\" 3 up\n");
    sched_run(&sim, false, true);
    ck_assert_uint_eq(sim_now(&sim), 6000000000ull);
    wait_until(20000000000ull);
    ck_assert_int_eq(p->state, PORT_ACTIVE);
    ck_assert_uint_eq(sim.background, 0);
    ck_assert(command("list"));
    ck_assert_str_eq(said.buf, "no faults\n");
    sim_lab_down(&sim);
}
END_TEST

START_TEST(clearing_ends_all)
{
    ck_assert_str_eq(bring_up("faults:\n- {link: all, set: loss=0.1 corrupt=0.2 overrun=0.3 fc=off width=1}\n"
                              "- {link: leaf1, port: 1, set: \"drop=2,3\"}\n"
                              "- {node: leaf2, set: die}\n- {host: h1, set: slow=3}\n"
                              "- {host: h2, set: die, at_ms: 1}\n")
                         .text,
                     "");
    ck_assert(fabric_node_by_name(sim.fabric, "leaf2")->dead);
    ck_assert(port_of("leaf1", 1)->out->loss == 0.1 && port_of("h1 mlx5_0", 1)->out->corrupt == 0.2);
    ck_assert(port_of("leaf1", 1)->out->overrun == 0.3 && port_of("h1 mlx5_0", 1)->out->fc_off);
    ck_assert_uint_eq(port_of("leaf1", 1)->width_active, 1);
    ck_assert(command("list"));
    ck_assert_ptr_nonnull(strstr(said.buf, "\"leaf2\" 3: loss=0.1 corrupt=0.2 overrun=0.3 fc=off width=1\n"));
    ck_assert_ptr_nonnull(strstr(said.buf, "link \"leaf1\" 1: drop=2,3\n"));
    ck_assert_uint_eq(port_of("h1 mlx5_0", 1)->node->hca->slow_milli, 3000);
    ck_assert(command("clear"));
    ck_assert(command("list"));
    ck_assert_str_eq(said.buf, "no faults\n");
    ck_assert_uint_eq(sim.background, 0);
    wait_until(2000000000ull);
    ck_assert(!fabric_host_by_name(sim.fabric, "h2")->dead);
    ck_assert(port_of("leaf1", 1)->out->loss == 0 && port_of("h1 mlx5_0", 1)->out->corrupt == 0);
    ck_assert(port_of("leaf1", 1)->out->overrun == 0 && !port_of("h1 mlx5_0", 1)->out->fc_off);
    ck_assert_uint_eq(port_of("leaf1", 1)->width_active, 2);
    for (unsigned k = 1; k <= 5; k++)
        if (port_of("leaf2", k)->peer)
            ck_assert_int_eq(port_of("leaf2", k)->state, PORT_ACTIVE);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(one_direction_loses_alone)
{
    struct port *p;

    ck_assert_str_eq(bring_up("name: x\n").text, "");
    p = port_of("leaf1", 3);
    ck_assert(command("link\nleaf1\n3\nloss_out=1\nfor=1ms"));
    ck_assert(p->out->loss == 1 && p->peer->out->loss == 0);
    ck_assert(command("list"));
    ck_assert_ptr_nonnull(strstr(said.buf, "link \"leaf1\" 3: loss_out=1\n"));
    ck_assert_ptr_null(strstr(said.buf, " loss=1"));
    wait_until(2000000000ull);
    ck_assert(p->out->loss == 0);
    ck_assert(command("link\nleaf1\n3\nloss=0.5"));
    ck_assert(command("link\nleaf1\n3\nloss_out=0"));
    ck_assert(p->out->loss == 0 && p->peer->out->loss == 0.5);
    ck_assert(command("clear"));
    ck_assert(p->peer->out->loss == 0);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(two_faults_of_one_cable_both_hold)
{
    struct port *p;

    ck_assert_str_eq(bring_up("name: x\n").text, "");
    p = port_of("leaf1", 3);
    ck_assert(command("link\nleaf1\n3\ndown"));
    ck_assert(command("node\nleaf2\ndie"));
    ck_assert(command("node\nleaf2\nrevive"));
    ck_assert_int_eq(p->state, PORT_DOWN);
    ck_assert_int_eq(port_of("leaf1", 5)->state, PORT_ACTIVE);
    ck_assert(command("link\nleaf2\n3\nup")); /* from the other end */
    ck_assert_int_eq(p->state, PORT_ACTIVE);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(a_dead_host_is_named)
{
    ck_assert_str_eq(bring_up("name: x\n").text, "");
    ck_assert(command("alive\nh1"));
    ck_assert(command("host\nh1\ndie"));
    ck_assert_int_eq(port_of("leaf1", 1)->state, PORT_DOWN);
    ck_assert(!command("alive\nh1"));
    ck_assert_ptr_nonnull(strstr(said.buf, "host h1 is dead"));
    ck_assert(command("node\nh1 mlx5_0\nrevive")); /* an adapter alone does not bring the host back */
    ck_assert_int_eq(port_of("leaf1", 1)->state, PORT_DOWN);
    ck_assert(command("host\nh1\nrevive"));
    ck_assert_int_eq(port_of("leaf1", 1)->state, PORT_ACTIVE);
    ck_assert(!command("host\nh9\ndie"));
    ck_assert_str_eq(said.buf, "there is no host \"h9\" in this fabric; there are: h1 h2");
    ck_assert(!command("link\nleaf1\n2\ndown"));
    ck_assert_str_eq(said.buf, "\"leaf1\" has no cable at that port");
    sim_lab_down(&sim);
}
END_TEST

static const struct {
    const char *item, *says;
} bad_items[] = {
    {"{set: down}", "one of link, node and host"},
    {"{link: leaf1, host: h1, set: down}", "one of link, node and host"},
    {"{link: leaf1}", "wants a set"},
    {"{link: leaf9, set: down}", "no node \"leaf9\""},
    {"{link: leaf1, port: 2, set: down}", "no cable at that port"},
    {"{link: leaf1, port: 9, set: down}", "no port 9"},
    {"{link: leaf1, set: loss=7}", "not a probability"},
    {"{host: h1, port: 1, set: die}", "port goes with link only"},
    {"{link: leaf1, set: down at=5ms}", "use the keys at_ms"},
    {"{link: leaf1, set: up, for_ms: 5}", "goes with no repair"},
    {"{link: leaf1, set: down, at_ms: -1}", "out of range"},
};

START_TEST(wrong_items_are_named_with_their_place)
{
    char model[256];
    struct parse_error err;

    snprintf(model, sizeof model, "name: x\nfaults:\n- %s\n", bad_items[_i].item);
    err = bring_up(model);
    ck_assert_msg(strstr(err.text, bad_items[_i].says) != NULL, "%s", err.text);
    ck_assert_msg(strstr(err.text, ":3:") != NULL, "%s", err.text);
    sim_lab_down(&sim);
}
END_TEST

int main(void)
{
    TCase *words = tcase_create("words"), *fabric = tcase_create("fabric");

    tcase_add_test(words, numbers_and_times_are_exact_or_refused);
    tcase_add_test(words, words_are_bounded);
    tcase_add_test(words, commands_say_what_they_mean);
    tcase_add_loop_test(words, what_is_wrong_is_named, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(words, printing_gives_the_words_back);
    tcase_add_test(fabric, a_fault_to_come_moves_no_time);
    tcase_add_test(fabric, clearing_ends_all);
    tcase_add_test(fabric, one_direction_loses_alone);
    tcase_add_test(fabric, two_faults_of_one_cable_both_hold);
    tcase_add_test(fabric, a_dead_host_is_named);
    tcase_add_loop_test(fabric, wrong_items_are_named_with_their_place, 0, sizeof bad_items / sizeof *bad_items);
    return check_run(words, fabric, NULL);
}
