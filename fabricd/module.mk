# fabricd and fabricctl. The pure parts (text, YAML, policy, tables, configuration, messages) are shared by both.

FABRICD_PURE := fabricd/base/text.c fabricd/base/ydoc.c fabricd/base/keys.c fabricd/policy/policy.c fabricd/policy/pattern.c fabricd/policy/hosts.c fabricd/policy/lock.c fabricd/policy/lock_text.c \
                fabricd/policy/compile.c fabricd/policy/lanes.c fabricd/policy/weights.c fabricd/policy/ahead.c fabricd/policy/wait.c fabricd/fabric/opensm.c fabricd/proto/message.c fabricd/proto/ratio.c \
                libmrmpi/conn/route/policy.c

PROGRAMS += fabricd fabricctl
MANPAGES += man/fabricd.8 man/fabricctl.1 man/mrmpi-policy.5 man/org.mrmpi.Fabric1.5

fabricd_SRCS := $(FABRICD_PURE) fabricd/main.c fabricd/dbus/dbus.c fabricd/dbus/manager_interface.c fabricd/dbus/job_interface.c \
                fabricd/dbus/order.c fabricd/dbus/waiting.c fabricd/dbus/reply.c fabricd/dbus/policy_calls.c fabricd/dbus/join_calls.c fabricd/dbus/sender.c fabricd/requests.c fabricd/start.c fabricd/daemon.c fabricd/forget.c fabricd/join.c fabricd/subscribers.c \
                fabricd/readers.c fabricd/names.c fabricd/server.c fabricd/state.c fabricd/policy/pace.c fabricd/apply/manager.c fabricd/apply/work.c fabricd/apply/follow.c fabricd/apply/apply.c fabricd/apply/mend.c fabricd/apply/settle.c fabricd/fabric/sms.c fabricd/fabric/partitions.c fabricd/fabric/planes.c fabricd/fabric/verdicts.c \
                fabricd/policy/health.c fabricd/fabric/rail_health.c fabricd/fabric/watch.c fabricd/fabric/counters.c \
                fabricd/base/conf.c fabricd/apply/store.c fabricd/apply/generations.c fabricd/apply/keep.c fabricd/apply/history.c fabricd/status.c fabricd/metrics.c fabricd/fabric/rails.c fabricd/fabric/pci.c fabricd/fabric/verify.c \
                fabricd/fabric/cables.c fabricd/fabric/snapshot.c fabricd/fabric/ports.c fabricd/fabric/rate.c fabricd/fabric/smp.c \
                fabricd/jobs/jobs.c fabricd/jobs/joins.c fabricd/jobs/seats.c fabricd/jobs/journal.c fabricd/jobs/compact.c fabricd/jobs/cgroups.c \
                fabricd/jobs/claims.c fabricd/jobs/users.c fabricd/jobs/helper.c fabricd/jobs/orders.c fabricd/jobs/life.c \
                fabricd/jobs/jobs_text.c \
                fabricd/fabric/sa.c fabricd/fabric/routes.c fabricd/fabric/sweeps.c fabricd/fabric/paths.c fabricd/fabric/paths_text.c fabricd/disjoint.c fabricd/base/log.c fabricd/base/quota.c
fabricd_PKGS := yaml-0.1 libsystemd libibumad
fabricd_LDLIBS := -pthread

# what a policy would give
FABRICD_PLAN := fabricd/policy/arbiter.c fabricd/policy/pace.c fabricd/policy/plan.c fabricd/policy/plan_load.c fabricd/policy/plan_text.c fabricd/ctl/plan_command.c \
                libmrmpi/conn/route/ahead.c

fabricctl_SRCS := $(FABRICD_PURE) $(FABRICD_PLAN) fabricd/ctl/fabricctl.c fabricd/ctl/takes.c fabricd/ctl/answer.c fabricd/jobs/ask.c fabricd/ctl/cluster.c fabricd/ctl/cluster_status.c fabricd/ctl/ctl.c fabricd/ctl/json.c fabricd/ctl/top.c fabricd/policy/schema.c terminal/progress.c \
                  fabricd/fabric/rails.c fabricd/fabric/pci.c
fabricctl_PKGS := yaml-0.1
fabricctl_LDLIBS := -lm

# The policy's JSON schema, made of the tables that read it.
DATA += $(BUILD)/share/policy.schema.json
all: $(BUILD)/share/policy.schema.json
$(BUILD)/share/policy.schema.json: $(BUILD)/bin/fabricctl
	$(call say,JSON,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$< policy schema >$@

# Slurm's plugin, where its headers are
ifneq ($(wildcard /usr/include/slurm/spank.h),)
LIBRARIES += mrmpi_fabric.so
mrmpi_fabric.so_SRCS := fabricd/slurm/spank.c fabricd/ctl/ctl.c terminal/progress.c fabricd/proto/ratio.c fabricd/base/text.c
mrmpi_fabric.so_LDFLAGS := -Wl,-z,undefs # Slurm's programs have what it calls
CFLAGS.fabricd/slurm/spank.c := -fvisibility=default
endif
LIBEXECS += fabricd/slurm/fabric-job
# the plugin runs the script that is beside it
all: $(BUILD)/lib/fabric-job
$(BUILD)/lib/fabric-job: $(BUILD)/libexec/mrmpi/fabric-job
	$(Q)mkdir -p $(@D) && ln -sfn ../libexec/mrmpi/fabric-job $@
