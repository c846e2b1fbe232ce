# What measures: the pipeline of the papers' figures.
SCRIPT_TESTS += tests/bench/figures.sh
