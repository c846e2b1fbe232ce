# libsimfab.so: preloaded into programs of simulated hosts
LIBRARIES += libsimfab.so
libsimfab.so_SRCS := $(wildcard simfab/preload/*.c)
libsimfab.so_LDLIBS := -ldl -lpthread
