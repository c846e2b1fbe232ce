# SPDX-License-Identifier: BSD-3-Clause
TESTPROGS += tests/mrrun/test_launch_client
tests/mrrun/test_launch_client_SRCS := tests/mrrun/test_launch_client.c $(wildcard libmrmpi/launch/*.c)
tests/mrrun/test_launch_client_PKGS := pmix
tests/mrrun/test_launch_client_LDLIBS := -lpthread
