/* The rows that hold on the fake kernel and on a device alike. */
#define _GNU_SOURCE /* EAI_ADDRFAMILY */
#include "errors/errors.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <string.h>
#include <sys/un.h>

#define GROUP "239.77.9.1"
#define BOTH (RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS)
/* The kernel's own, for what a device cannot do. */
#define ENOTSUPP 524

/* Each file is a list of CASE(), taken twice: first for the calls, then for the rows. */
#define CALL(function) ERRORS_NAME(call_##function##_, __LINE__)

#define CASE(where, scenario, function, input, answer, ...)                                        \
	static int CALL(function)(struct errors_fixture * f)                                       \
	{                                                                                          \
		return (void)f, __VA_ARGS__;                                                       \
	}
#include "errors/all.def"
#undef CASE

#define CASE(where, scenario, function, input, answer, ...)                                        \
	{ #function, input, scenario, where, answer, CALL(function) },
const struct errors_case errors_table[] = {
#include "errors/all.def"
};
#undef CASE

const size_t errors_table_len = sizeof(errors_table) / sizeof(errors_table[0]);
