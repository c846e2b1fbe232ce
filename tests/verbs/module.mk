# Tests of the verbs: the state machine's tables, and programs that any verbs device must pass

TESTPROGS += tests/simfab/test_qp_table
UNIT_TESTS += tests/simfab/test_qp_table
tests/simfab/test_qp_table_SRCS := tests/simfab/test_qp_table.c simfab/engine/qp_table.c
tests/simfab/test_qp_table_PKGS := check
