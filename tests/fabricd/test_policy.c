/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy file: accepted and refused texts with the places of errors, and a job's class by the rules. */
#include "fabricd/policy/policy.h"
#include "fabricd/proto/proto.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static const char GOOD[] = "version: 1\n"
                           "vls: 4\n"
                           "mtu: 2048\n"
                           "classes:\n"
                           "  - {name: urgent, share: 60, priority: high, lanes: 2, small: 16K}\n"
                           "  - {name: normal, share: 30}\n"
                           "  - {name: batch, share: 10, priority: 0}\n"
                           "jobs:\n"
                           "  default: normal\n"
                           "  rules:\n"
                           "    - {user: alice, name: \"prod-*\", class: urgent}\n"
                           "    - {account: students, class: batch}\n"
                           "limits: {bulk_minimum: 25}\n"
                           "paths: {lmc: 2}\n";

START_TEST(good)
{
    struct policy p;
    struct diag d = {.file = "good.yaml"};
    ck_assert(policy_parse(&p, GOOD, strlen(GOOD), &d));
    ck_assert_str_eq(text_str(&d.out), "");
    ck_assert_uint_eq(p.vls, 4);
    ck_assert_uint_eq(p.mtu, 2048);
    ck_assert_uint_eq(p.lmc, 2);
    ck_assert_uint_eq(p.bulk_minimum, 25);
    ck_assert_int_eq(p.high_limit, -1);
    ck_assert_uint_eq(p.num_classes, 3);
    ck_assert_str_eq(p.classes[0].name, "urgent");
    ck_assert_uint_eq(p.classes[0].priority, PRIORITY_HIGH);
    ck_assert(p.classes[0].has_priority && !p.classes[1].has_priority);
    ck_assert_uint_eq(p.classes[0].lanes, 2);
    ck_assert_uint_eq(p.classes[0].paths, FD_PATHS_MAX);
    ck_assert_uint_eq(p.classes[0].small_max, 16384);
    ck_assert_uint_eq(p.classes[1].priority, PRIORITY_NORMAL);
    ck_assert_uint_eq(p.classes[1].lanes, 1);
    ck_assert_uint_eq(p.classes[2].priority, PRIORITY_LOW);
    ck_assert_uint_eq(p.default_class, 1);
    struct pattern_job job = {
        .user = "alice", .groups = "", .account = "", .qos = "", .partition = "", .name = "prod-7"};
    ck_assert_uint_eq(policy_class_of(&p, &job), 0);
    job.account = "students";
    ck_assert_uint_eq(policy_class_of(&p, &job), 0);
    job.user = "bob";
    ck_assert_uint_eq(policy_class_of(&p, &job), 2);
    job.account = "";
    ck_assert_uint_eq(policy_class_of(&p, &job), 1);
    ck_assert(!policy_may_choose(&p.classes[0], &job)); /* nobody may */
}
END_TEST

/* All patterns of a rule, or of a choice, must match; of several choices, one. */
START_TEST(whom_the_scheduler_knows)
{
    static const char text[] = "version: 1\n"
                               "classes:\n"
                               "  - name: urgent\n"
                               "    share: 60\n"
                               "    choose: [{qos: high, account: \"p*\"}, {user: alice}, {group: \"adm*\"}]\n"
                               "    max jobs: 7\n"
                               "    max jobs per user: 2\n"
                               "  - {name: normal, share: 40}\n"
                               "jobs:\n"
                               "  default: normal\n"
                               "  rules:\n"
                               "    - {qos: expedite, partition: \"*\", class: urgent}\n"
                               "    - {partition: debug, class: urgent}\n";
    struct policy p;
    struct diag d = {.file = "good.yaml"};
    struct pattern_job job = {.user = "bob", .groups = "", .account = "", .qos = "", .partition = "", .name = ""};
    ck_assert(policy_parse(&p, text, strlen(text), &d));
    ck_assert_uint_eq(policy_class_of(&p, &job), 1);
    job.partition = "debug";
    ck_assert_uint_eq(policy_class_of(&p, &job), 0);
    job.partition = "long";
    ck_assert_uint_eq(policy_class_of(&p, &job), 1);
    job.qos = "expedite";
    ck_assert_uint_eq(policy_class_of(&p, &job), 0);
    ck_assert(!policy_may_choose(&p.classes[0], &job));
    job.qos = "high";
    ck_assert(!policy_may_choose(&p.classes[0], &job));
    job.account = "physics";
    ck_assert(policy_may_choose(&p.classes[0], &job));
    job.qos = "low";
    ck_assert(!policy_may_choose(&p.classes[0], &job));
    job.user = "alice";
    ck_assert(policy_may_choose(&p.classes[0], &job));
    ck_assert(!policy_may_choose(&p.classes[1], &job));
    job.user = "bob";
    job.groups = "users\0admins\0";
    ck_assert(policy_may_choose(&p.classes[0], &job));
    job.groups = "users\0dm\0";
    ck_assert(!policy_may_choose(&p.classes[0], &job));
    ck_assert_uint_eq(p.classes[0].jobs_max, 7);
    ck_assert_uint_eq(p.classes[0].user_jobs_max, 2);
    ck_assert_uint_eq(p.classes[1].jobs_max, 0);
}
END_TEST

/* Every case: a file with one mistake, and its only error. "\n" at the end: nothing follows on the line. */
static const struct {
    const char *text, *says;
} bad[] = {
    {"", "1:1: error: the file is empty"},
    {"# nothing\n", "1:1: error: the file is empty"},
    {"version: 1\nclasses: [\n", "3:1: error: "},
    {"- a\n", "1:1: error: the policy is a list; allowed: a mapping"},
    {"version: 1\nclases: [{name: a, share: 100}]\njobs: {default: a}\n",
     "2:1: error: unknown key 'clases' in the policy, did you mean 'classes'? allowed: version, vls, mtu, classes, "
     "jobs, pkeys, limits, paths, repair, repair_pause, health\n"},
    {"version: 1\nclasses: [{name: a, share: 100, job members: yes}]\njobs: {default: a}\n",
     "2:11: error: class 'a' has job members and no pkey, of whose partition they would be\n"},
    {"version: 1\nclasses: [{name: a, share: 100, pkey: 0x7fff, job members: yes}]\njobs: {default: a}\n",
     "2:39: error: pkey is the default partition, and class 'a' has members; allowed: 0x0001 to 0x7ffe"},
    {"version: 1\nclasses: [{name: a, share: 100, pkey: 0x11, members: \"n[12-3]\"}]\njobs: {default: a}\n",
     "2:54: error: members has 'n[12-3]', whose range is none; allowed: numbers of up to 9 digits, ascending"},
    {"version: 1\nclasses: [{name: a, share: 100}]\njobs: {default: a}\npkeys: [{account: x}]\n",
     "4:9: error: an entry of pkeys has no 'pkey'\n"},
    {"version: 1\nclasses: [{name: a, share: 100}]\njobs: {default: a}\npkeys: [{pkey: 0x11}]\n",
     "4:9: error: an entry of pkeys has none of"},
    {"version: 1\nclasses: [{name: a, share: 100}]\njobs: {default: a}\npkeys: [{account: x, pkey: 0xffff, members: "
     "h}]\n",
     "4:28: error: pkey is the default partition, and this entry has members"},
    {"version: 1\njobs: {default: a}\n", "1:1: error: the policy has no 'classes'\n"},
    {"version: 1\nclasses: [{name: a, share: 100}]\n", "1:1: error: the policy has no 'jobs'\n"},
    {"classes: [{name: a, share: 100}]\njobs: {default: a}\n", "1:1: error: the policy has no 'version'\n"},
    {"version: 2\nclasses: [{title: a, portion: 1}]\njob: {standard: a}\n",
     "1:10: error: the policy is written in version 2 of the format, and this fabricd reads version 1; "},
    {"classes: [{title: a, portion: 1}]\nversion: 20\n",
     "2:10: error: the policy is written in version 20 of the format, and this fabricd reads version 1; "},
    {"version: one\nclasses: 7\n", "1:10: error: version is 'one'; allowed: 1\n"},
    {"version: [1]\nclasses: 7\n", "1:10: error: version is a list; allowed: 1\n"},
    {"version: 1\nversion: 1\nclasses: [{name: a, share: 100}]\njobs: {default: a}\n",
     "2:1: error: 'version' is given twice in the policy (first on line 1)\n"},
    {"version: 1\nclasses: [{name: a, share: 100}]\njobs: {default: a}\n[x]: 1\n",
     "4:1: error: a key of the policy is a list; allowed: a name\n"},
    {"version: 1\nclasses: a\njobs: {default: a}\n", "2:10: error: classes is a single value; allowed: a list"},
    {"version: 1\nclasses: []\njobs: {default: a}\n", "2:10: error: classes is empty; allowed: 1 to 8 classes\n"},
    {"version: 1\nclasses: [a]\njobs: {default: a}\n", "2:11: error: a class is a single value; allowed: a mapping"},
    {"version: 1\nclasses:\n  - {name: c0, share: 10}\n  - {name: c1, share: 10}\n  - {name: c2, share: 10}\n  - "
     "{name: c3, share: 10}\n  - {name: c4, share: 10}\n  - {name: c5, share: 10}\n  - {name: c6, share: 10}\n  - "
     "{name: c7, share: 10}\n  - {name: c8, share: 10}\n  - {name: c9, share: 10}\njobs: {default: c9}\n",
     "11:5: error: more than 8 classes\n"},
    {"version: 1\nclasses:\n  - name: a\n    share: 60\n  - name: b\n    share: 50\n  - {name: c, share: 50}\njobs: "
     "{default: a}\n",
     "6:12: error: the shares add up to more than 100 with class 'b' (60 before it, 110 with it)\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 60}\n  - {name: b, share: 160}\n  - {name: c, share: 40}\njobs: "
     "{default: a}\n",
     "4:22: error: share is '160'; allowed: a whole number from 1 to 100\n"},
    {"version: 1\nclasses:\n  - {name: a, share: ten}\njobs: {default: a}\n",
     "3:22: error: share is 'ten'; allowed: a whole number from 1 to 100\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 0}\njobs: {default: a}\n", "3:22: error: share is '0'"},
    {"version: 1\nclasses:\n  - {name: a, share: -5}\njobs: {default: a}\n", "3:22: error: share is '-5'"},
    {"version: 1\nclasses:\n  - {name: a, share: 99999999999999999999}\njobs: {default: a}\n",
     "3:22: error: share is '9"},
    {"version: 1\nclasses:\n  - {name: a, share: [1]}\njobs: {default: a}\n",
     "3:22: error: share is a list; allowed: a number\n"},
    {"version: 1\nclasses:\n  - {name: a}\n  - {name: b, share: 100}\njobs: {default: a}\n",
     "3:5: error: a class has no 'share'\n"},
    {"version: 1\nclasses:\n  - {name: a, shares: 100}\njobs: {default: a}\n",
     "3:15: error: unknown key 'shares' in a class, did you mean 'share'? allowed: name, share, "},
    {"version: 1\nclasses:\n  - {name: a, percent: 100}\njobs: {default: a}\n",
     "3:15: error: unknown key 'percent' in a class; allowed: name, share, "},
    {"version: 1\nclasses:\n  - {name: a, share: 60}\n  - {name: a, share: 60}\njobs: {default: b}\n",
     "4:12: error: class 'a' is given twice (first on line 3)\n"},
    {"version: 1\nclasses:\n  - {name: \"a b\", share: 100}\njobs: {default: \"a b\"}\n",
     "3:12: error: name is 'a b'; allowed: only characters of A-Za-z0-9_.-\n"},
    {"version: 1\nclasses:\n  - {name: a+, share: 100}\njobs: {default: a+, rules: [{user: u, class: a+}]}\n",
     "3:12: error: name is 'a+'"},
    {"version: 1\nclasses:\n  - {name: \"\", share: 100}\njobs: {default: b, rules: [{user: u, class: c}]}\n",
     "3:12: error: name has 0 characters; allowed: 1 to 31\n"},
    {"version: 1\nclasses:\n  - {name: abcdefghijklmnopqrstuvwxyzabcdef, share: 100}\njobs: {default: "
     "abcdefghijklmnopqrstuvwxyzabcdef}\n",
     "3:12: error: name has 32 characters; allowed: 1 to 31\n"},
    {"version: 1\nclasses:\n  - {name: \"a\\0b\", share: 100}\njobs: {default: a}\n",
     "3:12: error: name is text with a zero byte in it"},
    {"version: 1\nclasses:\n  - {name: \"a\\tb\", share: 100}\njobs: {default: a}\n",
     "3:12: error: name has a control character in it"},
    {"version: 1\nclasses:\n  - {share: 100}\njobs: {default: a}\n", "3:5: error: a class has no 'name'\n"},
    {"version: 1\nclasses:\n  - {nam: a, share: 100}\njobs: {default: a}\n",
     "3:6: error: unknown key 'nam' in a class, did you mean 'name'?"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, priority: hihg}\njobs: {default: a}\n",
     "3:37: error: priority is 'hihg', did you mean 'high'? allowed: high, normal, low, 3, 2, 1, 0\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, priority: 4}\njobs: {default: a}\n",
     "3:37: error: priority is '4'; allowed: high, normal, low, 3, 2, 1, 0\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ahead of: bul}\njobs: {default: a}\n",
     "3:37: error: ahead of is 'bul', did you mean 'bulk'? allowed: bulk, everything\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ahead: bulk}\njobs: {default: a}\n",
     "3:27: error: unknown key 'ahead' in a class; allowed: "},
    {"version: 1\nclasses:\n  - {name: a, share: 100, latency: 20}\njobs: {default: a}\n",
     "3:36: error: latency is '20'; allowed: 1 to 1000000 microseconds, as 20us or 1ms\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, latency: 20s}\njobs: {default: a}\n",
     "3:36: error: latency is '20s'"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, latency: 0us}\njobs: {default: a}\n",
     "3:36: error: latency is '0us'"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, latency: 1001ms}\njobs: {default: a}\n",
     "3:36: error: latency is '1001ms'"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, latency: 5000000ms}\njobs: {default: a}\n",
     "3:36: error: latency is '5000000ms'"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, priority: high, latency: 20us}\njobs: {default: a}\n",
     "3:52: error: 'priority' and 'latency' exclude each other; allowed: one of priority, ahead of, latency, ratio\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, latency: 20us, priority: high}\njobs: {default: a}\n",
     "3:52: error: 'latency' and 'priority' exclude each other"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, priority: low, ahead of: bulk}\njobs: {default: a}\n",
     "3:52: error: 'priority' and 'ahead of' exclude each other"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ahead of: bulk, latency: 1ms}\njobs: {default: a}\n",
     "3:52: error: 'ahead of' and 'latency' exclude each other"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, priority: low, ratio: \"1:1\", latency: 1ms}\njobs: {default: "
     "a}\n",
     "3:49: error: 'priority' and 'ratio' exclude each other"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ratio: \"100\"}\njobs: {default: a}\n",
     "3:34: error: ratio is '100'; allowed: SMALL:LARGE, as 100:10, each from 1 to 1000\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ratio: \"100/10\"}\njobs: {default: a}\n",
     "3:34: error: ratio is '100/10'; allowed: SMALL:LARGE, as 100:10, each from 1 to 1000\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ratio: \"0:10\"}\njobs: {default: a}\n",
     "3:34: error: ratio is '0:10'; allowed: SMALL:LARGE, as 100:10, each from 1 to 1000\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ratio: \"100:0\"}\njobs: {default: a}\n",
     "3:34: error: ratio is '100:0'; allowed: SMALL:LARGE, as 100:10, each from 1 to 1000\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ratio: \"1001:1\"}\njobs: {default: a}\n",
     "3:34: error: ratio is '1001:1'; allowed: SMALL:LARGE, as 100:10, each from 1 to 1000\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ratio: \"100:10:1\"}\njobs: {default: a}\n",
     "3:34: error: ratio is '100:10:1'; allowed: SMALL:LARGE, as 100:10, each from 1 to 1000\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ratio: \":\"}\njobs: {default: a}\n",
     "3:34: error: ratio is ':'; allowed: SMALL:LARGE, as 100:10, each from 1 to 1000\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ratio: \"100:\"}\njobs: {default: a}\n",
     "3:34: error: ratio is '100:'; allowed: SMALL:LARGE, as 100:10, each from 1 to 1000\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ratio: \"1:1 \"}\njobs: {default: a}\n",
     "3:34: error: ratio is '1:1 '; allowed: SMALL:LARGE, as 100:10, each from 1 to 1000\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, ratio: [100, 10]}\njobs: {default: a}\n",
     "3:34: error: ratio is a list; allowed: SMALL:LARGE"},
    {"version: 1\nclasses:\n  - {name: a, share: 50}\n  - {name: b, share: 50, ratio: 100:10}\njobs: {default: a}\n",
     "4:33: error: class 'b' has a ratio and is not the only class: "},
    {"version: 1\nclasses:\n  - {name: a, share: 50, ratio: x}\n  - {name: b, share: 50}\njobs: {default: a}\n",
     "3:33: error: ratio is 'x'"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, paths: 9}\njobs: {default: a}\n",
     "3:34: error: paths is '9'; allowed: a whole number from 1 to 8\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, paths: {lmc: 1}}\njobs: {default: a}\n",
     "3:34: error: paths is a map"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, lanes: 9}\njobs: {default: a}\n",
     "3:34: error: lanes is '9'; allowed: a whole number from 1 to 8\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, max jobs: 3}\njobs: {default: a}\n",
     "4:17: error: class 'a' has max jobs, and the default class takes all; make another the default, or give it no "
     "limit\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, max jobs per user: 3}\njobs: {default: a}\n",
     "4:17: error: class 'a' has max jobs, and the default class takes all"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, max jobs: 0}\njobs: {default: a}\n",
     "3:37: error: max jobs is '0'; allowed: a whole number from 1 to 65536\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, small: 2M}\njobs: {default: a}\n",
     "3:34: error: small is '2M'; allowed: bytes from 0 to 1048576, as 8192, 8K or 1M\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, small: 2M, medium: 512}\njobs: {default: a}\n",
     "3:34: error: small is '2M'"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, medium: much}\njobs: {default: a}\n",
     "3:35: error: medium is 'much'; allowed: bytes from 0 to 1073741824"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, medium: 1K}\njobs: {default: a}\n",
     "3:35: error: medium is 1024, and small goes up to 1024; allowed: more than that\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, medium: 64K, small: 64K}\njobs: {default: a}\n",
     "3:35: error: medium is 65536, and small goes up to 65536"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, medium: [512, 32K]}\njobs: {default: a}\n",
     "3:36: error: medium is 512, and small goes up to 1024"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, medium: [64K, 32K]}\njobs: {default: a}\n",
     "3:41: error: medium is 32768, and the level before goes up to 65536"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, medium: [much, 32K]}\njobs: {default: a}\n",
     "3:36: error: medium is 'much'"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, medium: [16K, 32K, 64K, 128K]}\njobs: {default: a}\n",
     "3:46: error: more than 2 sizes in medium\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, medium: []}\njobs: {default: a}\n",
     "3:35: error: medium is empty; allowed: 1 to 2 sizes\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, medium: {upto: 1}}\njobs: {default: a}\n",
     "3:35: error: medium is a mapping; allowed: a size\n"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, medum: 9K}\njobs: {default: a}\n",
     "3:27: error: unknown key 'medum' in a class, did you mean 'medium'?"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, rails: near}\njobs: {default: a}\n",
     "3:34: error: rails is a single value; allowed: a mapping"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, rails: {large: near}}\njobs: {default: a}\n",
     "3:42: error: large in rails: \"near\" is not one of fair"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, rails: {small: even}}\njobs: {default: a}\n",
     "3:42: error: small in rails: \"even\" is not one of fair soonest"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, rails: {small: window}}\njobs: {default: a}\n",
     "3:42: error: small in rails: it needs the length of the window"},
    {"version: 1\nclasses:\n  - {name: a, share: 100, rails: {smal: near}}\njobs: {default: a}\n",
     "3:35: error: unknown key 'smal' in rails, did you mean 'small'?"},
    {"version: 1\nclasses:\n  - {name: a, share: &s 0}\n  - {name: b, share: *s}\njobs: {default: a}\n",
     "3:22: error: share is '0'"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: b}\n",
     "3:17: error: default is 'b'; allowed: abc\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abd}\n",
     "3:17: error: default is 'abd', did you mean 'abc'? allowed: abc\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: [abc]}\n",
     "3:17: error: default is a list; allowed: abc\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {rules: []}\n", "3:7: error: jobs has no 'default'\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {defalt: abc}\n",
     "3:8: error: unknown key 'defalt' in jobs, did you mean 'default'?"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: abc\n",
     "3:7: error: jobs is a single value; allowed: a mapping"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc, rules: {user: u, class: abc}}\n",
     "3:29: error: rules is a mapping; allowed: a list"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc, rules: [{class: abc}]}\n",
     "3:30: error: a rule has none of: user, group, account, qos, partition, name\n"},
    {"version: 1\nclasses: [{name: abc, share: 100, choose: [{}]}]\njobs: {default: abc}\n",
     "2:44: error: a choice has none of: user, group, account, qos, partition, name\n"},
    {"version: 1\nclasses: [{name: abc, share: 100, choose: {user: u}}]\njobs: {default: abc}\n",
     "2:43: error: choose is a mapping; allowed: a list"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc, rules: [{acount: x, class: abc}]}\n",
     "3:31: error: unknown key 'acount' in a rule, did you mean 'account'?"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc, rules: [{user: u}]}\n",
     "3:30: error: a rule has no 'class'\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc, rules: [{user: u, class: x}]}\n",
     "3:47: error: class is 'x'; allowed: abc\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc, rules: [{user: \"\", class: abc}]}\n",
     "3:37: error: user has 0 characters; allowed: 1 to 63\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc, rules: [u]}\n",
     "3:30: error: a rule is a single value; allowed: a mapping"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc}\nvls: 3\n",
     "4:6: error: vls is '3'; allowed: 1, 2, 4, 8, 15\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc}\nvls: 5\n",
     "4:6: error: vls is '5'; allowed: 1, 2, 4, 8, 15\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc}\nmtu: 2047\n",
     "4:6: error: mtu is '2047'; allowed: 256, 512, 1024, 2048, 4096\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc}\npaths: {lmc: 4}\n",
     "4:14: error: lmc is '4'; allowed: a whole number from 0 to 3\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc}\npaths: {}\n",
     "4:8: error: paths has no 'lmc'\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc}\nlimits: {bulk_minimum: 20, high_limit: "
     "3}\n",
     "4:40: error: 'bulk_minimum' and 'high_limit' exclude each other; allowed: one of bulk_minimum, high_limit\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc}\nlimits: {bulk_minimum: 51}\n",
     "4:24: error: bulk_minimum is '51'; allowed: a whole number from 1 to 50\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc}\nlimits: {high_limit: 256}\n",
     "4:22: error: high_limit is '256'; allowed: a whole number from 0 to 255\n"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc}\nlimits: 20\n",
     "4:9: error: limits is a single value; allowed: a mapping"},
    {"version: 1\nclasses: [{name: abc, share: 100}]\njobs: {default: abc}\n---\na: 1\n",
     "5:1: error: a second YAML document; allowed: one\n"},
};

START_TEST(levels_between)
{
    static const char text[] = "version: 1\nclasses:\n  - {name: a, share: 50, small: 256, medium: 16K}\n"
                               "  - {name: b, share: 30, medium: [64K, 1M]}\n  - {name: c, share: 20}\n"
                               "jobs: {default: a}\n";
    struct policy p;
    struct diag d = {.file = "f.yaml"};
    ck_assert(policy_parse(&p, text, strlen(text), &d));
    ck_assert_str_eq(text_str(&d.out), "");
    ck_assert_uint_eq(p.classes[0].num_medium, 1);
    ck_assert_uint_eq(p.classes[0].medium_max[0], 16384);
    ck_assert_uint_eq(p.classes[1].num_medium, 2);
    ck_assert_uint_eq(p.classes[1].medium_max[0], 65536);
    ck_assert_uint_eq(p.classes[1].medium_max[1], 1 << 20);
    ck_assert_uint_eq(p.classes[2].num_medium, 0);
}
END_TEST

/* Errors are counted as often as an alias is used, and told once. */
static unsigned lines(const char *s, const char *kind)
{
    unsigned n = 0;
    while ((s = strstr(s, kind))) {
        n++;
        s += strlen(kind);
    }
    return n;
}

START_TEST(refused)
{
    struct policy p;
    struct diag d = {.file = "f"};
    ck_assert(!policy_parse(&p, bad[_i].text, strlen(bad[_i].text), &d));
    ck_assert_uint_gt(d.errors, 0);
    const char *out = text_str(&d.out), *error = strstr(out, ": error: ");
    ck_assert_ptr_nonnull(error);
    while (error > out && error[-1] != '\n') /* a warning may come before the error */
        error--;
    ck_assert_msg(!strncmp(error, "f:", 2) && !strncmp(error + 2, bad[_i].says, strlen(bad[_i].says)),
                  "case %d: wanted 'f:%s', got '%s'", _i, bad[_i].says, out);
    ck_assert_msg(lines(out, ": error: ") == 1, "case %d: one mistake, several errors: %s", _i, out);
    text_free(&d.out);
}
END_TEST

/* Files that are no text or no reasonable YAML. Zero bytes: len counts. */
static const struct {
    const char *text;
    size_t len;
    const char *says;
} not_text[] = {
#define TEXT(s) s, sizeof(s) - 1
    {TEXT("version: 1\nx\0y: 2\n"), "2:2: error: a zero byte; allowed: UTF-8 text\n"},
    {TEXT("version: 1\n\0"), "2:1: error: a zero byte; allowed: UTF-8 text\n"},
    {TEXT("version: \x1b[31m1\n"), "1:10: error: a control character (0x1b); allowed: text"},
    {TEXT("a: 1\nb: \"\xc2\x9b\"\n"), "2:5: error: a control character (0x9b); allowed: text"},
    {TEXT("\xff\xfev\0e\0r\0"), "1:1: error: the file is UTF-16; allowed: UTF-8 "},
    {TEXT("\xfe\xff\0v\0e\0r"), "1:1: error: the file is UTF-16; allowed: UTF-8 "},
    {TEXT("# \xc3\xa4\xff\n"), "1:4: error: the byte 0xff is no part of a UTF-8 character; allowed: UTF-8 text\n"},
    {TEXT("# \xc0\x80\n"), "1:3: error: the byte 0xc0 is no part"},         /* longer than needed */
    {TEXT("# \xe0\x9f\xbf\n"), "1:3: error: the byte 0xe0 is no part"},     /* the same */
    {TEXT("# \xed\xa0\x80\n"), "1:3: error: the byte 0xed is no part"},     /* a surrogate */
    {TEXT("# \xf4\x90\x80\x80\n"), "1:3: error: the byte 0xf4 is no part"}, /* beyond U+10FFFF */
    {TEXT("a: \xe2\x82"), "1:4: error: the byte 0xe2 is no part"},          /* cut off */
    {TEXT("version: 1\nclasses:\n\t- a\n"), "3:1: error: a tab before a value or key; allowed: spaces\n"},
    {TEXT("version: 1\n\"\\e[2J\": 2\n"), "2:1: error: unknown key '\\x1b[2J' in the policy; allowed: "},
    {TEXT("version: 1\n\"\\x9b2J\": 2\n"), "2:1: error: unknown key '\\u009b2J' in the policy; allowed: "},
};

START_TEST(refused_as_text)
{
    struct policy p;
    struct diag d = {.file = "f"};
    char *exact = malloc(not_text[_i].len); /* sanitizers detect reading beyond the end */
    memcpy(exact, not_text[_i].text, not_text[_i].len);
    ck_assert(!policy_parse(&p, exact, not_text[_i].len, &d));
    ck_assert_msg(!strncmp(text_str(&d.out) + 2, not_text[_i].says, strlen(not_text[_i].says)),
                  "case %d: wanted 'f:%s', got '%s'", _i, not_text[_i].says, text_str(&d.out));
    free(exact);
    text_free(&d.out);
}
END_TEST

/* 64 KiB of depth: refused where it is too deep, long before the time-out of a test. */
START_TEST(deep)
{
    static const char *const opening[] = {"[", "{", "[\n", "- ", "? ", "a: [{"};
    const char *o = opening[_i];
    struct text t = {0};
    struct policy p;
    struct diag d = {.file = "f"};
    while (t.len + strlen(o) <= FD_POLICY_MAX)
        text_put(&t, o, strlen(o));
    ck_assert(!policy_parse(&p, t.s, t.len, &d));
    ck_assert_uint_eq(d.errors, 1);
    ck_assert_msg(strstr(d.out.s, ": error: lists and mappings within each other more than 64 deep\n") != NULL, "%s",
                  d.out.s);
    text_free(&t);
    text_free(&d.out);
}
END_TEST

START_TEST(all_errors_at_once)
{
    static const char text[] =
        "version: 1\nclasses:\n  - {name: a, share: x}\n  - {name: b, lanes: 0}\njobs: {default: c}\n";
    struct policy p;
    struct diag d = {.file = "f.yaml"};
    ck_assert(!policy_parse(&p, text, strlen(text), &d));
    ck_assert_uint_eq(d.errors, 4);
    ck_assert_uint_eq(lines(text_str(&d.out), ": error: "), 4);
    text_free(&d.out);
}
END_TEST

START_TEST(defaults)
{
    static const char text[] = "version: 1\nclasses:\n  - {name: a, share: 100}\njobs: {default: a}\n";
    struct policy p;
    struct diag d = {.file = "f.yaml"};
    ck_assert(policy_parse(&p, text, strlen(text), &d));
    ck_assert_str_eq(text_str(&d.out), "");
    ck_assert_uint_eq(p.vls, 8);
    ck_assert_uint_eq(p.mtu, 0);
    ck_assert_uint_eq(p.lmc, 0);
    ck_assert_uint_eq(p.bulk_minimum, 0);
    ck_assert_int_eq(p.high_limit, -1);
    ck_assert_uint_eq(p.num_rules, 0);
    ck_assert_uint_eq(p.classes[0].priority, PRIORITY_NORMAL);
    ck_assert(!p.classes[0].has_priority);
    ck_assert_uint_eq(p.classes[0].lanes, 1);
    ck_assert_uint_eq(p.classes[0].small_max, 1024);
    ck_assert_uint_eq(p.classes[0].num_medium, 0);
    ck_assert_uint_eq(p.classes[0].latency_ns, 0);
    ck_assert_uint_eq(p.classes[0].ratio_small, 0);
    ck_assert_uint_eq(p.classes[0].ratio_large, 0);
}
END_TEST

START_TEST(how_small_messages_go)
{
    static const struct {
        const char *says;
        uint32_t priority;
        bool given;
        uint32_t latency_ns, small, large;
        unsigned col; /* of a goal with a place */
    } cases[] = {
        {"priority: high", PRIORITY_HIGH, true, 0, 0, 0, 0},
        {"priority: 2", 2, true, 0, 0, 0, 0},
        {"priority: low", PRIORITY_LOW, true, 0, 0, 0, 0},
        {"ahead of: bulk", PRIORITY_NORMAL, true, 0, 0, 0, 0},
        {"ahead of: everything", PRIORITY_HIGH, true, 0, 0, 0, 0},
        {"latency: 20us", PRIORITY_NORMAL, false, 20000, 0, 0, 36},
        {"latency: 1us", PRIORITY_NORMAL, false, 1000, 0, 0, 36},
        {"latency: 1000ms", PRIORITY_NORMAL, false, 1000000000, 0, 0, 36},
        {"ratio: \"100:10\"", PRIORITY_LOW, false, 0, 100, 10, 34},
        {"ratio: 100:200", PRIORITY_LOW, false, 0, 100, 200, 34},
        {"ratio: 1:1000", PRIORITY_LOW, false, 0, 1, 1000, 34},
    };
    struct policy p;
    struct diag d = {.file = "f.yaml"};
    struct text t = {0};
    text_printf(&t, "version: 1\nclasses:\n  - {name: a, share: 100, %s}\njobs: {default: a}\n", cases[_i].says);
    ck_assert_msg(policy_parse(&p, t.s, t.len, &d), "%s: %s", cases[_i].says, text_str(&d.out));
    const struct policy_class *c = &p.classes[0];
    ck_assert_uint_eq(c->priority, cases[_i].priority);
    ck_assert(c->has_priority == cases[_i].given);
    ck_assert_uint_eq(c->latency_ns, cases[_i].latency_ns);
    ck_assert_uint_eq(c->ratio_small, cases[_i].small);
    ck_assert_uint_eq(c->ratio_large, cases[_i].large);
    ck_assert_uint_eq(c->latency_ns ? c->latency_at.col : c->ratio_at.col, cases[_i].col);
    text_free(&t);
    text_free(&d.out);
}
END_TEST

START_TEST(raw_limit_warns)
{
    static const struct {
        const char *limit, *says;
    } cases[] = {{"0", NULL}, {"4", NULL}, {"255", "f:4:22: warning: high_limit 255 is no limit"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct policy p;
        struct diag d = {.file = "f"};
        struct text t = {0};
        text_printf(&t, "version: 1\nclasses: [{name: a, share: 100}]\njobs: {default: a}\nlimits: {high_limit: %s}\n",
                    cases[i].limit);
        ck_assert(policy_parse(&p, t.s, t.len, &d));
        ck_assert_int_eq(p.high_limit, atoi(cases[i].limit));
        ck_assert_uint_eq(d.warnings, cases[i].says != NULL);
        if (cases[i].says)
            ck_assert_ptr_eq(strstr(text_str(&d.out), cases[i].says), d.out.s);
        text_free(&t);
        text_free(&d.out);
    }
}
END_TEST

START_TEST(many_rules)
{
    for (unsigned n = POLICY_RULES_MAX; n < POLICY_RULES_MAX + 3; n++) {
        struct policy p;
        struct diag d = {.file = "f"};
        struct text t = {0};
        text_printf(&t, "version: 1\nclasses: [{name: a, share: 100}]\njobs:\n  default: a\n  rules:\n");
        for (unsigned i = 0; i < n; i++)
            text_printf(&t, "    - {user: u%u, class: a}\n", i);
        bool parsed = policy_parse(&p, t.s, t.len, &d);
        ck_assert(parsed == (n == POLICY_RULES_MAX));
        ck_assert_str_eq(text_str(&d.out), parsed ? "" : "f:70:7: error: more than 64 rules\n");
        ck_assert_uint_eq(p.num_rules, POLICY_RULES_MAX);
        text_free(&t);
        text_free(&d.out);
    }
}
END_TEST

START_TEST(shares_below_100_warn)
{
    static const char text[] = "version: 1\nclasses:\n  - {name: a, share: 30}\njobs: {default: a}\n";
    struct policy p;
    struct diag d = {.file = "f.yaml"};
    ck_assert(policy_parse(&p, text, strlen(text), &d));
    ck_assert_uint_eq(d.warnings, 1);
    ck_assert_ptr_nonnull(strstr(text_str(&d.out), "f.yaml:3:3: warning: the shares add up to 30"));
    text_free(&d.out);
}
END_TEST

START_TEST(nearest)
{
    static const char *const names[] = {"classes", "jobs", "limits", NULL};
    ck_assert_str_eq(nearest_name("limit", names), "limits");
    ck_assert_str_eq(nearest_name("clsases", names), "classes");
    ck_assert_ptr_null(nearest_name("weather", names));
}
END_TEST

START_TEST(yaml_strings)
{
    static const struct {
        const char *in, *out;
    } cases[] = {{"plain-1.x", "plain-1.x"}, {"12", "\"12\""}, {"true", "\"true\""},
                 {"a: b", "\"a: b\""},       {"", "\"\""},     {"q\"\\", "\"q\\\"\\\\\""},
                 {"h1 mlx5_0", "h1 mlx5_0"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct text t = {0};
        text_yaml_string(&t, cases[i].in);
        ck_assert_str_eq(t.s, cases[i].out);
        text_free(&t);
    }
}
END_TEST

static const char *const partitions_of_all =
    "version: 1\nclasses: [{name: a, share: 60, pkey: 0x11, job members: yes}, {name: b, share: 40}]\n"
    "jobs: {default: b}\n"
    "pkeys:\n"
    "  - {account: \"phys*\", user: u, pkey: 0x12, members: [\"n[08-11]\"]}\n"
    "  - {account: \"phys*\", pkey: 0x11, members: login}\n"
    "  - {account: chem, pkey: 0x13}\n";

START_TEST(partition_of_a_job)
{
    static struct policy p;
    struct diag d = {.file = "p"};
    struct host_keys jobs = {0};
    struct pattern_job job = {.user = "u", .groups = "", .account = "physics", .qos = "", .partition = "", .name = ""};
    ck_assert_msg(policy_parse(&p, partitions_of_all, strlen(partitions_of_all), &d), "%s", text_str(&d.out));
    ck_assert_uint_eq(policy_partition_of(&p, 0, &job)->pkey, 0x12);
    job.user = "v";
    ck_assert_uint_eq(policy_partition_of(&p, 1, &job)->pkey, 0x11);
    job.account = "";
    ck_assert_uint_eq(policy_partition_of(&p, 0, &job)->pkey, 0x11);
    ck_assert_uint_eq(policy_partition_of(&p, 1, &job)->pkey, 0);
    job.account = "chem";
    ck_assert_uint_eq(policy_partition_of(&p, 1, &job)->pkey, 0x13);

    /* the policy decides over three of them; two have one P_Key */
    char name[64];
    ck_assert(policy_partition(&p, 2) && !policy_partition(&p, 3) && policy_has_members(&p));
    ck_assert(policy_partition_by_key(&p, 0x11) == policy_partition(&p, 0) && !policy_partition_by_key(&p, 0x13));
    policy_partition_name(&p, policy_partition(&p, 0), name);
    ck_assert_str_eq(name, "class 'a'");
    policy_partition_name(&p, policy_partition(&p, 2), name);
    ck_assert_str_eq(name, "entry 2 of pkeys");

    host_keys_add(&jobs, 0x11, "h1", 2);
    host_keys_add(&jobs, 0x12, "h2", 2);
    host_keys_sort(&jobs);
    ck_assert(policy_is_member(&p, &jobs, 0x11, "h1 mlx5_0") && !policy_is_member(&p, NULL, 0x11, "h1 mlx5_0"));
    ck_assert(policy_is_member(&p, &jobs, 0x11, "login mlx5_0") && policy_is_member(&p, NULL, 0x12, "n10 x"));
    ck_assert(!policy_is_member(&p, &jobs, 0x12, "h2 mlx5_0")); /* no job members */
    ck_assert(!policy_is_member(&p, &jobs, 0x12, "n12 x") && !policy_is_member(&p, &jobs, 0x13, "h1 x"));
    host_keys_free(&jobs);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("policy");
    tcase_add_test(t, good);
    tcase_add_test(t, whom_the_scheduler_knows);
    tcase_add_test(t, levels_between);
    tcase_add_test(t, partition_of_a_job);
    tcase_add_loop_test(t, refused, 0, (int)(sizeof(bad) / sizeof(bad[0])));
    tcase_add_loop_test(t, refused_as_text, 0, (int)(sizeof(not_text) / sizeof(not_text[0])));
    tcase_add_loop_test(t, deep, 0, 6);
    tcase_add_test(t, all_errors_at_once);
    tcase_add_test(t, defaults);
    tcase_add_loop_test(t, how_small_messages_go, 0, 11);
    tcase_add_test(t, raw_limit_warns);
    tcase_add_test(t, many_rules);
    tcase_add_test(t, shares_below_100_warn);
    tcase_add_test(t, nearest);
    tcase_add_test(t, yaml_strings);
    return check_run(t, NULL);
}
