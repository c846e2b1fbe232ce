# Tests of simfab: netlist, model and the management plane

FABRIC_SRCS := simfab/engine/fabric/netlist.c simfab/engine/fabric/netlist_parse.c simfab/engine/fabric/netlist_ports.c simfab/engine/fabric/fabric_build.c simfab/engine/fabric/fabric.c simfab/engine/fabric/model.c \
               simfab/engine/fabric/model_value.c simfab/engine/fabric/port_caps.c

$(call unit_test,test_netlist,$(FABRIC_SRCS),yaml-0.1)
$(call unit_test,test_model,simfab/engine/fabric/model.c simfab/engine/fabric/model_value.c simfab/engine/fabric/netlist.c \
    simfab/engine/fabric/netlist_parse.c simfab/engine/fabric/netlist_ports.c,yaml-0.1)

# the management plane without an engine around it; libibmad is the second opinion on the layout of attributes
MGMT_SRCS := $(FABRIC_SRCS) $(addprefix simfab/engine/,mgmt/mad.c mgmt/mad_class.c mgmt/route.c mgmt/timer.c mgmt/agent.c mgmt/umad.c mgmt/umad_page.c mgmt/umad_rx.c mgmt/sma.c mgmt/portinfo.c mgmt/pma.c mgmt/samples.c mgmt/trap.c mgmt/sysfs.c fabric/pcie.c base/text.c base/util.c)
$(call unit_test,test_pkey)

$(call unit_test,test_mad,$(MGMT_SRCS),yaml-0.1)
$(call unit_test,test_sma,$(MGMT_SRCS),yaml-0.1 libibmad)

# run by umad.sh on a simulated host
TESTPROGS += tests/simfab/test_umad_client
tests/simfab/test_umad_client_SRCS := tests/simfab/test_umad_client.c
tests/simfab/test_umad_client_PKGS := check

SCRIPT_TESTS += tests/simfab/umad.sh tests/simfab/opensm.sh

# members of multicast groups, run by multicast.sh
TESTPROGS += tests/simfab/test_mcast
tests/simfab/test_mcast_SRCS := tests/simfab/test_mcast.c
tests/simfab/test_mcast_PKGS := libibverbs libibumad
SCRIPT_TESTS += tests/simfab/multicast.sh

# a message with keys of one's choice, run by partitions.sh
TESTPROGS += tests/simfab/test_keys
tests/simfab/test_keys_SRCS := tests/simfab/test_keys.c
tests/simfab/test_keys_PKGS := libibverbs
# writes a table of keys; tests/mpi/pkeys.sh
TESTPROGS += tests/simfab/set_pkeys
tests/simfab/set_pkeys_SRCS := tests/simfab/set_pkeys.c
tests/simfab/set_pkeys_PKGS := libibmad libibumad
SCRIPT_TESTS += tests/simfab/sysfs.sh tests/simfab/partitions.sh tests/simfab/sweep.sh
LONG_TESTS += tests/simfab/osmtest.sh
LONG_TESTS += tests/simfab/fuzz.sh

# the verbs of simulated hosts and the simfab command
TESTPROGS += tests/simfab/test_verbs
tests/simfab/test_verbs_SRCS := tests/simfab/test_verbs.c
tests/simfab/test_verbs_PKGS := check libibverbs
TESTPROGS += tests/simfab/test_engine_death
tests/simfab/test_engine_death_SRCS := tests/simfab/test_engine_death.c
tests/simfab/test_engine_death_PKGS := libibverbs
TESTPROGS += tests/simfab/test_timeouts
tests/simfab/test_timeouts_SRCS := tests/simfab/test_timeouts.c tests/simfab/host_ends.c
tests/simfab/test_timeouts_PKGS := libibverbs
TESTPROGS += tests/simfab/test_drops
tests/simfab/test_drops_SRCS := tests/simfab/test_drops.c tests/simfab/host_ends.c
tests/simfab/test_drops_PKGS := libibverbs
TESTPROGS += tests/simfab/test_migrate
tests/simfab/test_migrate_SRCS := tests/simfab/test_migrate.c tests/simfab/host_ends.c
tests/simfab/test_migrate_PKGS := libibverbs
SCRIPT_TESTS += tests/simfab/migrate.sh tests/simfab/timeouts.sh tests/simfab/drops.sh tests/simfab/port_events.sh
TESTPROGS += tests/simfab/test_cpu_factor
tests/simfab/test_cpu_factor_SRCS := tests/simfab/test_cpu_factor.c
tests/simfab/test_cpu_factor_PKGS := libibverbs
TESTPROGS += tests/simfab/copies
tests/simfab/copies_SRCS := tests/simfab/copies.c
tests/simfab/copies_PKGS := libibverbs
SCRIPT_TESTS += tests/simfab/copies.sh tests/simfab/cpu_factor.sh tests/simfab/errors.sh tests/simfab/odp.sh tests/simfab/verbs_api.sh tests/simfab/verbs.sh tests/simfab/lifecycle.sh

# programs that others wrote, unmodified
SCRIPT_TESTS += $(addprefix tests/simfab/,peers_perftest.sh peers_pingpong.sh peers_ucx.sh peers_mpi.sh peers_rdmacm.sh)
LONG_TESTS += tests/simfab/peers_ucx.sh:--all tests/simfab/peers_matrix.sh tests/simfab/peers_qperf.sh tests/simfab/peers_ucx_ud.sh

# the engine's data plane
ENGINE_SRCS := $(filter-out simfab/engine/client/main.c,$(wildcard simfab/engine/*/*.c))
SCRIPT_TESTS += tests/simfab/flows.sh tests/simfab/faults_live.sh tests/simfab/faults_hosts.sh tests/simfab/faults.sh tests/simfab/hostile.sh tests/simfab/relay.sh
TESTPROGS += tests/simfab/test_hostile
tests/simfab/test_hostile_SRCS := tests/simfab/test_hostile.c
$(call unit_test,test_event,simfab/engine/base/event.c simfab/engine/base/util.c)
$(call unit_test,test_qp_table,simfab/engine/hca/qp_table.c)
$(call unit_test,test_vlarb,simfab/engine/wire/vlarb.c)
$(call unit_test,test_dataplane,tests/simfab/sim_lab.c $(ENGINE_SRCS),yaml-0.1)

$(call unit_test,test_port_caps,$(FABRIC_SRCS),yaml-0.1)

# generated networks
SCRIPT_TESTS += tests/simfab/topology.sh tests/simfab/planes.sh tests/simfab/trace.sh tests/simfab/discover.sh
$(call unit_test,test_topology,simfab/cmd/shape.c simfab/cmd/graph.c $(FABRIC_SRCS),yaml-0.1)

# the host: buses, the adapter's cache, what each step costs
$(call unit_test,test_host_bus,$(addprefix simfab/engine/,hca/bus.c hca/qp_cache.c base/event.c base/util.c))
TESTPROGS += tests/simfab/test_host_costs
tests/simfab/test_host_costs_SRCS := tests/simfab/test_host_costs.c tests/simfab/host_ends.c simfab/engine/fabric/model.c \
                                     simfab/engine/fabric/model_value.c simfab/engine/fabric/netlist.c simfab/engine/fabric/netlist_parse.c simfab/engine/fabric/netlist_ports.c
tests/simfab/test_host_costs_PKGS := libibverbs yaml-0.1
tests/simfab/test_host_costs_LDLIBS := -lm
TESTPROGS += tests/simfab/test_host_rates
tests/simfab/test_host_rates_SRCS := tests/simfab/test_host_rates.c tests/simfab/host_ends.c
tests/simfab/test_host_rates_PKGS := libibverbs
SCRIPT_TESTS += tests/simfab/models.sh
$(call unit_test,test_host_rx,tests/simfab/sim_lab.c $(ENGINE_SRCS),yaml-0.1)

# faults and flows
$(call unit_test,test_fault,tests/simfab/sim_lab.c $(ENGINE_SRCS),yaml-0.1)
$(call unit_test,test_flow,tests/simfab/sim_lab.c $(ENGINE_SRCS),yaml-0.1)

# virtual time
TESTPROGS += tests/simfab/time_mpi
tests/simfab/time_mpi_SRCS := tests/simfab/time_mpi.c
CFLAGS.tests/simfab/time_mpi.c := -Ilibmrmpi/include
tests/simfab/time_mpi_DEPS := libmpi.so.12

TESTPROGS += tests/simfab/cpus
tests/simfab/cpus_SRCS := tests/simfab/cpus.c
CFLAGS.tests/simfab/cpus.c := -Ilibmrmpi/include
tests/simfab/cpus_DEPS := libmpi.so.12
SCRIPT_TESTS += tests/simfab/cpus.sh

TESTPROGS += tests/simfab/time_start
tests/simfab/time_start_SRCS := tests/simfab/time_start.c
tests/simfab/time_start_PKGS := libibverbs

TESTPROGS += tests/simfab/time_waits
tests/simfab/time_waits_SRCS := tests/simfab/time_waits.c
CFLAGS.tests/simfab/time_waits.c := -Ilibmrmpi/include
tests/simfab/time_waits_DEPS := libmpi.so.12

TESTPROGS += tests/simfab/time_omp
tests/simfab/time_omp_SRCS := tests/simfab/time_omp.c
CFLAGS.tests/simfab/time_omp.c := -Ilibmrmpi/include -fopenmp
tests/simfab/time_omp_LDLIBS := -fopenmp
tests/simfab/time_omp_DEPS := libmpi.so.12

TESTPROGS += tests/simfab/time_threads
tests/simfab/time_threads_SRCS := tests/simfab/time_threads.c
CFLAGS.tests/simfab/time_threads.c := -Ilibmrmpi/include
tests/simfab/time_threads_DEPS := libmpi.so.12
TESTPROGS += tests/simfab/ends
tests/simfab/ends_SRCS := tests/simfab/ends.c
tests/simfab/ends_PKGS := libibverbs
SCRIPT_TESTS += tests/simfab/ends.sh
TESTPROGS += tests/simfab/time_away
tests/simfab/time_away_SRCS := tests/simfab/time_away.c
CFLAGS.tests/simfab/time_away.c := -Ilibmrmpi/include
tests/simfab/time_away_DEPS := libmpi.so.12
TESTPROGS += tests/simfab/time_timers
tests/simfab/time_timers_SRCS := tests/simfab/time_timers.c
tests/simfab/time_timers_PKGS := libibverbs
tests/simfab/time_timers_LDLIBS := -lpthread -lrt
$(call unit_test,test_stuck,simfab/engine/clock/stuck_time.c)

$(call unit_test,test_watch,simfab/engine/clock/watch.c simfab/engine/base/util.c)
TESTPROGS += tests/simfab/time_world
tests/simfab/time_world_SRCS := tests/simfab/time_world.c tests/simfab/host_ends.c
tests/simfab/time_world_PKGS := libibverbs
tests/simfab/time_world_LDLIBS := -lpthread
SCRIPT_TESTS += tests/simfab/time.sh tests/simfab/time_world.sh tests/simfab/repeat.sh
LONG_TESTS += tests/simfab/time_stuck.sh tests/simfab/repeat.sh:--all tests/simfab/tsc.sh:--all

# the link layer against arithmetic: the data plane without processes
LINK_LAB := tests/simfab/link_lab.c tests/simfab/sim_lab.c $(ENGINE_SRCS)
$(call unit_test,test_link,$(LINK_LAB),yaml-0.1)
$(call unit_test,test_link_arb,$(LINK_LAB),yaml-0.1)
$(call unit_test,test_link_error,$(LINK_LAB),yaml-0.1)
$(call unit_test,test_link_queues,$(LINK_LAB),yaml-0.1)
SCRIPT_TESTS += tests/simfab/lanes.sh

# many hosts
TESTPROGS += tests/simfab/scale_ud tests/simfab/scale_mpi
tests/simfab/scale_ud_SRCS := tests/simfab/scale_ud.c
tests/simfab/scale_ud_PKGS := libibverbs
tests/simfab/scale_mpi_SRCS := tests/simfab/scale_mpi.c
CFLAGS.tests/simfab/scale_mpi.c := -Ilibmrmpi/include
tests/simfab/scale_mpi_DEPS := libmpi.so.12
SCRIPT_TESTS += tests/simfab/scale.sh

# the time stamp counter
TESTPROGS += tests/simfab/tsc_reads tests/simfab/tsc_refuse tests/simfab/tsc_find
$(call unit_test,test_tsc,$(wildcard simfab/tsc/*.c))
tests/simfab/test_tsc_LDLIBS += -lZydis
tests/simfab/tsc_reads_SRCS := tests/simfab/tsc_reads.c
tests/simfab/tsc_reads_PKGS := libibverbs
tests/simfab/tsc_reads_LDLIBS := -ldl -lpthread
tests/simfab/tsc_refuse_SRCS := tests/simfab/tsc_refuse.c
tests/simfab/tsc_find_SRCS := tests/simfab/tsc_find.c
tests/simfab/tsc_find_LDLIBS := -ldl
SCRIPT_TESTS += tests/simfab/tsc.sh
