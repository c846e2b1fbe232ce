# Tests of fabricd: the pure parts alone, then the daemon with the real opensm on ibsim and on simfab.


$(call unit_test,test_policy,fabricd/policy/policy.c fabricd/policy/pattern.c fabricd/policy/hosts.c fabricd/base/keys.c fabricd/base/ydoc.c \
    fabricd/base/text.c libmrmpi/conn/route/policy.c,yaml-0.1)
FABRICD_COMPILER := fabricd/policy/compile.c fabricd/policy/lanes.c fabricd/policy/weights.c fabricd/policy/ahead.c fabricd/policy/wait.c fabricd/policy/lock.c fabricd/base/text.c
$(call unit_test,test_compile,$(FABRICD_COMPILER))
$(call unit_test,test_hosts,fabricd/policy/hosts.c fabricd/base/text.c)
$(call unit_test,test_ahead,fabricd/policy/ahead.c fabricd/proto/ratio.c)
$(call unit_test,test_pace,fabricd/policy/pace.c fabricd/fabric/rails.c fabricd/fabric/pci.c fabricd/base/text.c)
$(call unit_test,test_quota,fabricd/base/quota.c)
$(call unit_test,test_health,fabricd/policy/health.c fabricd/base/text.c)
$(call unit_test,test_smp,fabricd/fabric/smp.c)
$(call unit_test,test_cables,fabricd/fabric/cables.c)
$(call unit_test,test_routes,fabricd/fabric/routes.c fabricd/fabric/sweeps.c fabricd/fabric/paths_text.c fabricd/base/text.c)
$(call unit_test,test_goals,$(FABRICD_COMPILER))
$(call unit_test,test_lock,fabricd/policy/lock_text.c $(FABRICD_COMPILER))
$(call unit_test,test_follow,fabricd/apply/follow.c fabricd/policy/lock.c fabricd/policy/lock_text.c fabricd/base/text.c)
$(call unit_test,test_wait,fabricd/policy/wait.c)
$(call unit_test,test_plan,fabricd/policy/plan.c fabricd/policy/plan_load.c fabricd/policy/plan_text.c \
    fabricd/policy/arbiter.c fabricd/fabric/pci.c fabricd/policy/pace.c $(FABRICD_COMPILER) fabricd/policy/policy.c \
    fabricd/policy/pattern.c fabricd/policy/hosts.c fabricd/base/keys.c fabricd/base/ydoc.c libmrmpi/conn/route/policy.c libmrmpi/conn/route/ahead.c,yaml-0.1)
$(call unit_test,test_opensm_conf,fabricd/fabric/opensm.c $(FABRICD_COMPILER))
$(call unit_test,test_partitions,fabricd/fabric/partitions.c fabricd/policy/policy.c fabricd/policy/pattern.c fabricd/policy/hosts.c \
    fabricd/base/keys.c fabricd/base/ydoc.c fabricd/base/text.c libmrmpi/conn/route/policy.c,yaml-0.1)
FABRICD_JOBS := fabricd/proto/ratio.c fabricd/jobs/jobs.c fabricd/jobs/seats.c fabricd/jobs/journal.c fabricd/jobs/compact.c fabricd/jobs/cgroups.c fabricd/jobs/claims.c fabricd/jobs/users.c fabricd/jobs/helper.c fabricd/policy/policy.c \
                fabricd/policy/pattern.c fabricd/policy/hosts.c fabricd/base/keys.c fabricd/base/ydoc.c fabricd/base/text.c libmrmpi/conn/route/policy.c
$(call unit_test,test_proto,fabricd/proto/message.c fabricd/names.c fabricd/jobs/jobs_text.c fabricd/jobs/orders.c fabricd/base/log.c \
    fabricd/base/quota.c fabricd/ctl/json.c $(FABRICD_JOBS),yaml-0.1 libsystemd)
$(call unit_test,test_json,fabricd/ctl/json.c fabricd/base/ydoc.c fabricd/base/text.c,yaml-0.1)
$(call unit_test,test_jobs,$(FABRICD_JOBS),yaml-0.1 libsystemd)

SCRIPT_TESTS += tests/fabricd/docs.sh tests/fabricd/policy.sh tests/fabricd/daemon.sh tests/fabricd/jobs.sh tests/fabricd/users.sh tests/fabricd/dbus.sh tests/fabricd/dbus_policy.sh tests/fabricd/nodes.sh tests/fabricd/busy.sh tests/fabricd/planes.sh tests/fabricd/planes_two.sh tests/fabricd/planes_differ.sh tests/fabricd/members.sh tests/fabricd/standby.sh tests/fabricd/foreign.sh tests/fabricd/ibsim.sh

TESTPROGS += tests/fabricd/fabric_tool tests/fabricd/reach
tests/fabricd/reach_SRCS := tests/fabricd/reach.c
tests/fabricd/reach_PKGS := libibverbs
tests/fabricd/fabric_tool_SRCS := tests/fabricd/fabric_tool.c fabricd/fabric/smp.c
tests/fabricd/fabric_tool_PKGS := libibumad
SCRIPT_TESTS += tests/fabricd/simfab.sh tests/fabricd/lock.sh tests/fabricd/trunk.sh tests/fabricd/shares.sh tests/fabricd/grants.sh tests/fabricd/binds.sh tests/fabricd/predict.sh tests/fabricd/paced.sh tests/fabricd/fuzz.sh
LONG_TESTS += tests/fabricd/fuzz.sh:--all tests/fabricd/predict.sh:--all tests/fabricd/binds.sh:--all tests/fabricd/paced.sh:--all

# jobs that want the same cable; share.py runs it
TESTPROGS += tests/fabricd/share_load
tests/fabricd/share_load_SRCS := tests/fabricd/share_load.c
tests/fabricd/share_load_DEPS := libmpi.so.12
CFLAGS.tests/fabricd/share_load.c := -fPIE -Ilibmrmpi/include

SCRIPT_TESTS += tests/fabricd/joins.sh tests/fabricd/faults.sh tests/fabricd/drift.sh tests/fabricd/mkey.sh tests/fabricd/history.sh
LONG_TESTS += tests/fabricd/faults.sh:--all
# loaded before fabricd: a fault at one of its changing calls; faults.py runs it
TESTPROGS += tests/fabricd/faults.so
tests/fabricd/faults.so_SRCS := tests/fabricd/faults.c
tests/fabricd/faults.so_LDFLAGS := -shared
CFLAGS.tests/fabricd/faults.c := -fPIC -fvisibility=default

# the metrics of a host that no test has; metrics.sh runs it
TESTPROGS += tests/fabricd/metrics_worst
tests/fabricd/metrics_worst_SRCS := tests/fabricd/metrics_worst.c fabricd/metrics.c fabricd/policy/health.c fabricd/base/text.c
tests/fabricd/metrics_worst_PKGS := libsystemd
SCRIPT_TESTS += tests/fabricd/metrics.sh tests/fabricd/cluster.sh tests/fabricd/causes.sh
LONG_TESTS += tests/fabricd/cluster.sh:--all tests/fabricd/thousand.sh tests/fabricd/standby.sh:--all
