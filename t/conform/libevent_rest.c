/* In place of what t/conform/libevent_tests.sh leaves out of libevent's tests. */
#include <event2/event.h>
#include <event2/util.h>
#include <stddef.h>

#include "tinytest.h"

struct event_base *global_base;
evutil_socket_t pair[2];
int test_ok, called;

#define NO_TESTS_OF(group) struct testcase_t group##_testcases[] = { END_OF_TESTCASES }
NO_TESTS_OF(dns);
NO_TESTS_OF(edgetriggered);
NO_TESTS_OF(evbuffer);
NO_TESTS_OF(evtag);
NO_TESTS_OF(finalize);
NO_TESTS_OF(listener);
NO_TESTS_OF(main);
NO_TESTS_OF(minheap);
NO_TESTS_OF(rpc);
NO_TESTS_OF(signal);
NO_TESTS_OF(thread);
NO_TESTS_OF(util);
