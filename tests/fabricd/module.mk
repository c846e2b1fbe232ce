SCRIPT_TESTS += tests/fabricd/ibsim.sh
