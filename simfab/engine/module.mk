# simfab-engine: the process that is the fabric; started by simfab
PROGRAMS += simfab-engine
simfab-engine_SRCS := $(wildcard simfab/engine/*/*.c)
simfab-engine_PKGS := yaml-0.1
simfab-engine_LDLIBS := -lm
