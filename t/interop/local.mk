GUEST_TESTS += t/interop/examples.sh
EXTRA_DIST += t/interop/examples.sh
