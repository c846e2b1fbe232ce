# What tests share. tests/path stands before the system's programs in the PATH of scripts.
TESTPROGS += tests/path/timeout
tests/path/timeout_SRCS := tests/timeout.c
