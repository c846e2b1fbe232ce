# Several parts at once: what happens to a running job when one of them goes away; the demos.
SCRIPT_TESTS += tests/integration/loss.sh tests/integration/classes.sh tests/integration/levels.sh \
                tests/integration/change.sh tests/integration/ratio.sh tests/integration/late.sh tests/integration/rails.sh tests/integration/hints.sh tests/integration/hosts.sh tests/integration/spread.sh tests/integration/partitions.sh tests/integration/moved.sh tests/integration/paths.sh tests/integration/demo.sh \
                tests/integration/failover_plot.sh tests/integration/failover_demo.sh
LONG_TESTS += tests/integration/rails_table.sh tests/integration/failover_one_rail.sh tests/integration/hosts.sh:--all tests/integration/change.sh:--all
