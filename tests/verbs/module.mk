# Programs that any verbs device must pass

# Run by tests/simfab/verbs_suite.sh and tests/rxe/verbs.sh
TESTPROGS += tests/verbs/verbs_suite
tests/verbs/verbs_suite_SRCS := $(addprefix tests/verbs/,main.c suite.c states.c rc.c errors.c srq.c cq.c events.c ud.c uc.c \
                                  wr.c memory.c process.c refusals.c loss.c)
tests/verbs/verbs_suite_PKGS := libibverbs
SCRIPT_TESTS += tests/simfab/verbs_suite.sh tests/simfab/verbs_loss.sh
