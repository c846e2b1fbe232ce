# SPDX-License-Identifier: BSD-3-Clause
# libmrmpi/launch: the PMI client against a launcher of the test's own, and under the real ones.
$(call unit_test,test_pmi_text,libmrmpi/launch/pmi_text.c libmrmpi/launch/mapping.c)
$(call unit_test,test_pmi_client)
tests/launch/test_pmi_client_DEPS := libmrmpi.so

# A rank whose launcher is gone or silent
TESTPROGS += tests/launch/limits
tests/launch/limits_SRCS := tests/launch/limits.c
tests/launch/limits_DEPS := libmrmpi.so

SCRIPT_TESTS += tests/launch/hydra.sh tests/launch/slurm.sh tests/launch/fabric.sh tests/launch/wire.sh tests/launch/partitions.sh tests/launch/prolog.sh tests/launch/runs.sh tests/launch/openmpi.sh tests/launch/limits.sh
LONG_TESTS += tests/launch/hydra.sh:--all tests/launch/qos.sh
