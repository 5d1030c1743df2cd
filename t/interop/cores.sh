#!/bin/sh
# Each end of the interop cells really runs on the librdmacm that its name says.
# time: virtual
. "$top_srcdir/t/interop/ends.sh"

for end in ours@ours ours@stock stock@ours stock@stock; do
	for tool in ucmatose mckey rping udaddy cmtime rdma_client rdma_xserver; do
		cell "$end $tool runs on its core" runs_on_its_core $end $tool
	done
done
done_testing
