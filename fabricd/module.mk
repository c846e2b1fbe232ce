# fabricd and fabricctl. The pure parts (text, YAML, policy, tables, configuration, messages) are shared by both.

FABRICD_PURE := fabricd/text.c fabricd/ydoc.c fabricd/keys.c fabricd/policy.c fabricd/pattern.c fabricd/lock.c fabricd/lock_text.c \
                fabricd/compile.c fabricd/lanes.c fabricd/weights.c fabricd/ahead.c fabricd/wait.c fabricd/fabric/opensm.c fabricd/message.c fabricd/ratio.c \
                libmrmpi/route/policy.c

PROGRAMS += fabricd fabricctl
MANPAGES += man/fabricd.8 man/fabricctl.1 man/mrmpi-policy.5 man/org.mrmpi.Fabric1.5

fabricd_SRCS := $(FABRICD_PURE) fabricd/main.c fabricd/dbus/dbus.c fabricd/dbus/manager.c fabricd/dbus/job.c \
                fabricd/dbus/order.c fabricd/dbus/sender.c fabricd/requests.c fabricd/start.c fabricd/daemon.c fabricd/forget.c fabricd/subscribers.c \
                fabricd/readers.c fabricd/server.c fabricd/state.c fabricd/pace.c fabricd/manager.c fabricd/work.c fabricd/follow.c fabricd/apply.c fabricd/mend.c fabricd/settle.c fabricd/fabric/sms.c fabricd/fabric/planes.c \
                fabricd/health.c fabricd/rail_health.c fabricd/watch.c fabricd/fabric/counters.c \
                fabricd/conf.c fabricd/store.c fabricd/generations.c fabricd/keep.c fabricd/history.c fabricd/status.c fabricd/rails.c fabricd/bus.c fabricd/fabric/verify.c \
                fabricd/fabric/cables.c fabricd/fabric/snapshot.c fabricd/fabric/ports.c fabricd/fabric/rate.c fabricd/fabric/smp.c \
                fabricd/jobs/jobs.c fabricd/jobs/seats.c fabricd/jobs/journal.c fabricd/jobs/compact.c fabricd/jobs/cgroups.c \
                fabricd/jobs/claims.c fabricd/jobs/users.c fabricd/jobs/helper.c fabricd/jobs/orders.c fabricd/jobs/life.c \
                fabricd/jobs/jobs_text.c \
                fabricd/sa.c fabricd/log.c fabricd/quota.c
fabricd_PKGS := yaml-0.1 libsystemd libibumad
fabricd_LDLIBS := -pthread

# what a policy would give
FABRICD_PLAN := fabricd/arbiter.c fabricd/pace.c fabricd/plan.c fabricd/plan_load.c fabricd/plan_text.c fabricd/plan_command.c \
                libmrmpi/route/ahead.c

fabricctl_SRCS := $(FABRICD_PURE) $(FABRICD_PLAN) fabricd/fabricctl.c fabricd/takes.c fabricd/answer.c fabricd/jobs/ask.c fabricd/cluster.c fabricd/ctl.c fabricd/json.c fabricd/top.c fabricd/schema.c \
                  fabricd/rails.c fabricd/bus.c
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
mrmpi_fabric.so_SRCS := fabricd/slurm/spank.c fabricd/ctl.c fabricd/ratio.c fabricd/text.c
mrmpi_fabric.so_LDFLAGS := -Wl,-z,undefs # Slurm's programs have what it calls
CFLAGS.fabricd/slurm/spank.c := -fvisibility=default
all: $(BUILD)/lib/fabric-job
$(BUILD)/lib/fabric-job: fabricd/slurm/fabric-job
	$(Q)install -D -m 755 $< $@
endif
