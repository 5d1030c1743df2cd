/* The cases of the conformance suite, one file each. */
#ifndef EVR_CONFORM_SUITE_H
#define EVR_CONFORM_SUITE_H

#include <check.h>

TCase *close_case(void);
TCase *scale_case(void);
TCase *removal_case(void);
TCase *handover_case(void);
TCase *transfer_case(void);
TCase *work_case(void);
TCase *bufferevent_http_case(void);
TCase *bufferevent_regress_case(void);
TCase *bufferevent_tls_case(void);
TCase *bufferevent_zlib_case(void);
TCase *source_case(void);
TCase *peer_case(void);
TCase *alive_case(void);
TCase *share_case(void);
TCase *connect_case(void);
TCase *listener_case(void);
TCase *base_case(void);
TCase *process_case(void);
TCase *shutdown_case(void);
TCase *option_case(void);
TCase *name_case(void);
TCase *id_case(void);
TCase *group_case(void);
TCase *stats_case(void);
TCase *limits_case(void);
TCase *shortage_case(void);
TCase *pool_case(void);
TCase *receive_case(void);
TCase *read_case(void);
TCase *memory_case(void);
TCase *bufferevent_case(void);
TCase *bufferevent_threads_case(void);

/* Runs them all, and the n more of the testbed's own; returns main's status. */
int run_suite(const char *name, TCase *(*const more[])(void), size_t n);

#endif
