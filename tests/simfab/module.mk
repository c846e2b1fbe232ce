# Tests of simfab: netlist, model and the management plane

FABRIC_SRCS := simfab/engine/netlist.c simfab/engine/fabric_build.c simfab/engine/fabric.c simfab/engine/model.c

TESTPROGS += tests/simfab/test_netlist tests/simfab/test_model
UNIT_TESTS += tests/simfab/test_netlist tests/simfab/test_model
tests/simfab/test_netlist_SRCS := tests/simfab/test_netlist.c $(FABRIC_SRCS)
tests/simfab/test_netlist_PKGS := check yaml-0.1
tests/simfab/test_netlist_LDLIBS := -lm
tests/simfab/test_model_SRCS := tests/simfab/test_model.c simfab/engine/model.c simfab/engine/netlist.c
tests/simfab/test_model_PKGS := check yaml-0.1
tests/simfab/test_model_LDLIBS := -lm

SCRIPT_TESTS += tests/simfab/opensm.sh

# the verbs of simulated hosts and the simfab command
TESTPROGS += tests/simfab/test_verbs
tests/simfab/test_verbs_SRCS := tests/simfab/test_verbs.c
tests/simfab/test_verbs_PKGS := check libibverbs
SCRIPT_TESTS += tests/simfab/errors.sh tests/simfab/verbs_api.sh tests/simfab/verbs.sh tests/simfab/lifecycle.sh
