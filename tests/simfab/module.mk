# Tests of simfab: netlist, model and the management plane

FABRIC_SRCS := simfab/engine/fabric/netlist.c simfab/engine/fabric/netlist_ports.c simfab/engine/fabric/fabric_build.c simfab/engine/fabric/fabric.c simfab/engine/fabric/model.c \
               simfab/engine/fabric/model_value.c simfab/engine/fabric/port_caps.c

TESTPROGS += tests/simfab/test_netlist tests/simfab/test_model
UNIT_TESTS += tests/simfab/test_netlist tests/simfab/test_model
tests/simfab/test_netlist_SRCS := tests/simfab/test_netlist.c $(FABRIC_SRCS)
tests/simfab/test_netlist_PKGS := check yaml-0.1
tests/simfab/test_netlist_LDLIBS := -lm
tests/simfab/test_model_SRCS := tests/simfab/test_model.c simfab/engine/fabric/model.c simfab/engine/fabric/model_value.c \
                               simfab/engine/fabric/netlist.c simfab/engine/fabric/netlist_ports.c
tests/simfab/test_model_PKGS := check yaml-0.1
tests/simfab/test_model_LDLIBS := -lm

# the management plane without an engine around it; libibmad is the second opinion on the layout of attributes
MGMT_SRCS := $(FABRIC_SRCS) $(addprefix simfab/engine/,mgmt/mad.c mgmt/agent.c mgmt/umad.c mgmt/sma.c mgmt/portinfo.c mgmt/pma.c mgmt/samples.c mgmt/trap.c mgmt/sysfs.c fabric/pcie.c base/text.c base/util.c)
TESTPROGS += tests/simfab/test_pkey
UNIT_TESTS += tests/simfab/test_pkey
tests/simfab/test_pkey_SRCS := tests/simfab/test_pkey.c
tests/simfab/test_pkey_PKGS := check

TESTPROGS += tests/simfab/test_sma tests/simfab/test_mad
UNIT_TESTS += tests/simfab/test_sma tests/simfab/test_mad
tests/simfab/test_mad_SRCS := tests/simfab/test_mad.c $(MGMT_SRCS)
tests/simfab/test_mad_PKGS := check yaml-0.1
tests/simfab/test_mad_LDLIBS := -lm
tests/simfab/test_sma_SRCS := tests/simfab/test_sma.c $(MGMT_SRCS)
tests/simfab/test_sma_PKGS := check yaml-0.1 libibmad
tests/simfab/test_sma_LDLIBS := -lm

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
LONG_TESTS += tests/simfab/peers_matrix.sh tests/simfab/peers_qperf.sh tests/simfab/peers_ucx_ud.sh

# the engine's data plane
TESTPROGS += tests/simfab/test_event tests/simfab/test_vlarb tests/simfab/test_dataplane
UNIT_TESTS += tests/simfab/test_event tests/simfab/test_vlarb tests/simfab/test_dataplane
SCRIPT_TESTS += tests/simfab/flows.sh tests/simfab/faults_live.sh tests/simfab/faults_hosts.sh tests/simfab/faults.sh tests/simfab/hostile.sh tests/simfab/relay.sh
TESTPROGS += tests/simfab/test_hostile
tests/simfab/test_hostile_SRCS := tests/simfab/test_hostile.c
tests/simfab/test_event_SRCS := tests/simfab/test_event.c simfab/engine/base/event.c simfab/engine/base/util.c
tests/simfab/test_event_PKGS := check
tests/simfab/test_vlarb_SRCS := tests/simfab/test_vlarb.c simfab/engine/wire/vlarb.c
tests/simfab/test_vlarb_PKGS := check
tests/simfab/test_dataplane_SRCS := tests/simfab/test_dataplane.c tests/simfab/sim_lab.c $(filter-out simfab/engine/client/main.c,$(wildcard simfab/engine/*/*.c))
tests/simfab/test_dataplane_PKGS := check yaml-0.1
tests/simfab/test_dataplane_LDLIBS := -lm

TESTPROGS += tests/simfab/test_port_caps
UNIT_TESTS += tests/simfab/test_port_caps
tests/simfab/test_port_caps_SRCS := tests/simfab/test_port_caps.c $(FABRIC_SRCS)
tests/simfab/test_port_caps_PKGS := check yaml-0.1
tests/simfab/test_port_caps_LDLIBS := -lm

# generated networks
TESTPROGS += tests/simfab/test_topology
UNIT_TESTS += tests/simfab/test_topology
SCRIPT_TESTS += tests/simfab/topology.sh tests/simfab/planes.sh tests/simfab/trace.sh tests/simfab/discover.sh
tests/simfab/test_topology_SRCS := tests/simfab/test_topology.c simfab/cmd/shape.c simfab/cmd/graph.c $(FABRIC_SRCS)
tests/simfab/test_topology_PKGS := check yaml-0.1
tests/simfab/test_topology_LDLIBS := -lm

# the host: buses, the adapter's cache, what each step costs
TESTPROGS += tests/simfab/test_host_bus
UNIT_TESTS += tests/simfab/test_host_bus
tests/simfab/test_host_bus_SRCS := tests/simfab/test_host_bus.c $(addprefix simfab/engine/,hca/bus.c hca/qp_cache.c base/event.c base/util.c)
tests/simfab/test_host_bus_PKGS := check
TESTPROGS += tests/simfab/test_host_costs
tests/simfab/test_host_costs_SRCS := tests/simfab/test_host_costs.c tests/simfab/host_ends.c simfab/engine/fabric/model.c \
                                     simfab/engine/fabric/model_value.c simfab/engine/fabric/netlist.c simfab/engine/fabric/netlist_ports.c
tests/simfab/test_host_costs_PKGS := libibverbs yaml-0.1
tests/simfab/test_host_costs_LDLIBS := -lm
TESTPROGS += tests/simfab/test_host_rates
tests/simfab/test_host_rates_SRCS := tests/simfab/test_host_rates.c tests/simfab/host_ends.c
tests/simfab/test_host_rates_PKGS := libibverbs
SCRIPT_TESTS += tests/simfab/models.sh
TESTPROGS += tests/simfab/test_host_rx
UNIT_TESTS += tests/simfab/test_host_rx
tests/simfab/test_host_rx_SRCS := tests/simfab/test_host_rx.c tests/simfab/sim_lab.c $(filter-out simfab/engine/client/main.c,$(wildcard simfab/engine/*/*.c))
tests/simfab/test_host_rx_PKGS := check yaml-0.1
tests/simfab/test_host_rx_LDLIBS := -lm

# faults and flows
TESTPROGS += tests/simfab/test_fault
UNIT_TESTS += tests/simfab/test_fault
tests/simfab/test_fault_SRCS := tests/simfab/test_fault.c tests/simfab/sim_lab.c $(filter-out simfab/engine/client/main.c,$(wildcard simfab/engine/*/*.c))
tests/simfab/test_fault_PKGS := check yaml-0.1
tests/simfab/test_fault_LDLIBS := -lm
TESTPROGS += tests/simfab/test_flow
UNIT_TESTS += tests/simfab/test_flow
tests/simfab/test_flow_SRCS := tests/simfab/test_flow.c tests/simfab/sim_lab.c $(filter-out simfab/engine/client/main.c,$(wildcard simfab/engine/*/*.c))
tests/simfab/test_flow_PKGS := check yaml-0.1
tests/simfab/test_flow_LDLIBS := -lm


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
TESTPROGS += tests/simfab/time_away
tests/simfab/time_away_SRCS := tests/simfab/time_away.c
CFLAGS.tests/simfab/time_away.c := -Ilibmrmpi/include
tests/simfab/time_away_DEPS := libmpi.so.12
TESTPROGS += tests/simfab/time_timers
tests/simfab/time_timers_SRCS := tests/simfab/time_timers.c
tests/simfab/time_timers_PKGS := libibverbs
tests/simfab/time_timers_LDLIBS := -lpthread -lrt
TESTPROGS += tests/simfab/test_stuck
UNIT_TESTS += tests/simfab/test_stuck
tests/simfab/test_stuck_SRCS := tests/simfab/test_stuck.c simfab/engine/clock/stuck_time.c
tests/simfab/test_stuck_PKGS := check

TESTPROGS += tests/simfab/test_watch
UNIT_TESTS += tests/simfab/test_watch
tests/simfab/test_watch_SRCS := tests/simfab/test_watch.c simfab/engine/clock/watch.c simfab/engine/base/util.c
tests/simfab/test_watch_PKGS := check
tests/simfab/test_watch_LDLIBS := -lpthread
TESTPROGS += tests/simfab/time_world
tests/simfab/time_world_SRCS := tests/simfab/time_world.c tests/simfab/host_ends.c
tests/simfab/time_world_PKGS := libibverbs
tests/simfab/time_world_LDLIBS := -lpthread
SCRIPT_TESTS += tests/simfab/time.sh tests/simfab/time_world.sh tests/simfab/repeat.sh
LONG_TESTS += tests/simfab/time_stuck.sh tests/simfab/repeat_long.sh

# the link layer against arithmetic: the data plane without processes
ENGINE_SRCS := $(filter-out simfab/engine/client/main.c,$(wildcard simfab/engine/*/*.c))
LINK_TESTS := $(addprefix tests/simfab/,test_link test_link_arb test_link_error test_link_queues)
TESTPROGS += $(LINK_TESTS)
UNIT_TESTS += $(LINK_TESTS)
define link_test
$(1)_SRCS := $(1).c tests/simfab/link_lab.c tests/simfab/sim_lab.c $(ENGINE_SRCS)
$(1)_PKGS := check yaml-0.1
$(1)_LDLIBS := -lm
endef
$(foreach t,$(LINK_TESTS),$(eval $(call link_test,$(t))))
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
TESTPROGS += tests/simfab/test_tsc tests/simfab/tsc_reads tests/simfab/tsc_refuse tests/simfab/tsc_find
UNIT_TESTS += tests/simfab/test_tsc
tests/simfab/test_tsc_SRCS := tests/simfab/test_tsc.c $(wildcard simfab/tsc/*.c)
tests/simfab/test_tsc_PKGS := check
tests/simfab/test_tsc_LDLIBS := -lZydis
tests/simfab/tsc_reads_SRCS := tests/simfab/tsc_reads.c
tests/simfab/tsc_reads_PKGS := libibverbs
tests/simfab/tsc_reads_LDLIBS := -ldl -lpthread
tests/simfab/tsc_refuse_SRCS := tests/simfab/tsc_refuse.c
tests/simfab/tsc_find_SRCS := tests/simfab/tsc_find.c
tests/simfab/tsc_find_LDLIBS := -ldl
SCRIPT_TESTS += tests/simfab/tsc.sh
