/* Option structs from older and newer programs, values out of range, and the text of errors. */
#include "conform/suite.h"
#include "conform/fixture.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

/* A newer program's options: ours, with more behind. */
struct newer {
	union {
		struct evrdma_base_options base;
		struct evrdma_conn_options conn;
		struct evrdma_dgram_options dgram;
		struct evrdma_listener_options listener;
		struct evrdma_pool_options pool;
	};
	uint64_t more[4];
};

static void no_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
}

static int try_base(struct fixture *f, const struct evrdma_base_options *options)
{
	struct evrdma_base *base = evrdma_base_new(f->loop, options);

	if (!base)
		return errno;
	evrdma_base_close(base, NULL, NULL);
	return 0;
}

static int try_conn(struct fixture *f, const struct evrdma_conn_options *options)
{
	return evrdma_conn_new(f->base, options) ? 0 : errno;
}

static int try_dgram(struct fixture *f, const struct evrdma_dgram_options *options)
{
	return evrdma_dgram_new(f->base, options) ? 0 : errno;
}

static int try_listener(struct fixture *f, const struct evrdma_listener_options *options)
{
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, 0);
	return evrdma_listener_new(f->base, (struct sockaddr *)&sin, options, no_request, NULL)
		       ? 0
		       : errno;
}

static int try_pool(struct fixture *f, const struct evrdma_pool_options *options)
{
	return evrdma_pool_new_with_options(f->base, 64, options) ? 0 : errno;
}

START_TEST(options_of_a_newer_program_are_taken_when_the_rest_is_zero)
{
	struct fixture *f = fixture_new();
	struct newer o;

	evrdma_base_options_init_sized(&o.base, sizeof(o));
	ck_assert_int_eq(try_base(f, &o.base), 0);
	evrdma_conn_options_init_sized(&o.conn, sizeof(o));
	ck_assert_int_eq(try_conn(f, &o.conn), 0);
	evrdma_dgram_options_init_sized(&o.dgram, sizeof(o));
	o.dgram.recv_depth = 0;
	ck_assert_int_eq(try_dgram(f, &o.dgram), 0);
	evrdma_listener_options_init_sized(&o.listener, sizeof(o));
	ck_assert_int_eq(try_listener(f, &o.listener), 0);
	evrdma_pool_options_init_sized(&o.pool, sizeof(o));
	ck_assert_int_eq(try_pool(f, &o.pool), 0);
	fixture_free(f);
}
END_TEST

START_TEST(options_that_this_library_does_not_know_are_refused)
{
	struct fixture *f = fixture_new();
	struct newer o;

	evrdma_base_options_init_sized(&o.base, sizeof(o));
	o.more[3] = 1;
	ck_assert_int_eq(try_base(f, &o.base), EINVAL);
	evrdma_conn_options_init_sized(&o.conn, sizeof(o));
	o.more[3] = 1;
	ck_assert_int_eq(try_conn(f, &o.conn), EINVAL);
	evrdma_dgram_options_init_sized(&o.dgram, sizeof(o));
	o.dgram.recv_depth = 0;
	o.more[3] = 1;
	ck_assert_int_eq(try_dgram(f, &o.dgram), EINVAL);
	evrdma_listener_options_init_sized(&o.listener, sizeof(o));
	o.more[3] = 1;
	ck_assert_int_eq(try_listener(f, &o.listener), EINVAL);
	evrdma_pool_options_init_sized(&o.pool, sizeof(o));
	o.more[3] = 1;
	ck_assert_int_eq(try_pool(f, &o.pool), EINVAL);
	fixture_free(f);
}
END_TEST

/* How they end a request, limits.c has. */
START_TEST(a_listener_has_limits_for_strangers_by_default)
{
	struct evrdma_listener_options o;

	evrdma_listener_options_init(&o);
	ck_assert_uint_eq(o.max_pending, 8192);
	ck_assert_int_eq(o.request_timeout_ms, 120000);
	ck_assert_uint_eq(o.max_connections, 0);
}
END_TEST

/* The last field of the defaults would be refused if it were read. */
START_TEST(options_of_an_older_program_get_the_defaults_for_the_rest)
{
	struct fixture *f = fixture_new();
	struct evrdma_conn_options o;

	evrdma_conn_options_init_sized(&o, offsetof(struct evrdma_conn_options, tos));
	o.tos = 4711;
	o.private_data_len = 4711;
	ck_assert_int_eq(try_conn(f, &o), 0);
	fixture_free(f);
}
END_TEST

/* What a stack or a heap may hold where nobody has called init: also what looks like a size. */
START_TEST(options_that_were_never_initialised_are_refused)
{
	static const size_t sizes[] = { 0, sizeof(size_t) - 1, sizeof(struct evrdma_conn_options),
		sizeof(struct evrdma_conn_options) + 8, 4711, SIZE_MAX / 255, SIZE_MAX };
	struct fixture *f = fixture_new();
	struct evrdma_conn_options *o = malloc(sizeof(*o));
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		evrdma_conn_options_init(o);
		o->size = sizes[i];
		ck_assert_msg(try_conn(f, o) == EINVAL, "a size of %zu was taken", sizes[i]);
	}
	free(o);
	fixture_free(f);
}
END_TEST

#define REFUSED_CONN(f, field, value)                                                              \
	do {                                                                                       \
		struct evrdma_conn_options o;                                                      \
		evrdma_conn_options_init(&o);                                                      \
		o.field = (value);                                                                 \
		ck_assert_msg(try_conn((f), &o) == EINVAL, #field " = " #value " was taken");      \
	} while (0)

static void refuse_a_pool_beside_a_shared_queue(struct fixture *f)
{
	struct evrdma_srq *srq = evrdma_srq_new(f->base, f->pool, 1);
	struct evrdma_conn_options o;

	evrdma_conn_options_init(&o);
	o.srq = srq;
	ck_assert_int_eq(try_conn(f, &o), 0);
	o.recv_pool = f->pool;
	ck_assert_int_eq(try_conn(f, &o), EINVAL);
	evrdma_srq_free(srq);
}

START_TEST(values_out_of_range_for_a_connection_are_refused)
{
	struct fixture *f = fixture_new();

	REFUSED_CONN(f, connect_timeout_ms, 0);
	REFUSED_CONN(f, connect_timeout_ms, -1);
	REFUSED_CONN(f, attempt_timeout_ms, -1);
	REFUSED_CONN(f, drain_timeout_ms, 0);
	REFUSED_CONN(f, send_depth, 0);
	REFUSED_CONN(f, send_depth, 65537);
	REFUSED_CONN(f, recv_depth, 65537);
	REFUSED_CONN(f, low_water, 65);
	REFUSED_CONN(f, port_space, RDMA_PS_UDP);
	REFUSED_CONN(f, tos, 256);
	REFUSED_CONN(f, ack_timeout, 32);
	REFUSED_CONN(f, retry_count, 8);
	REFUSED_CONN(f, rnr_retry_count, 8);
	REFUSED_CONN(f, min_rnr_timer_us, 0);
	REFUSED_CONN(f, min_rnr_timer_us, -2);
	REFUSED_CONN(f, min_rnr_timer_us, 655361);
	REFUSED_CONN(f, private_data_len, 1);
	REFUSED_CONN(f, private_data_len, 256);
	refuse_a_pool_beside_a_shared_queue(f);
	fixture_free(f);
}
END_TEST

#define REFUSED_BASE(f, field, value)                                                              \
	do {                                                                                       \
		struct evrdma_base_options o;                                                      \
		evrdma_base_options_init(&o);                                                      \
		o.field = (value);                                                                 \
		ck_assert_msg(try_base((f), &o) == EINVAL, #field " = " #value " was taken");      \
	} while (0)

START_TEST(values_out_of_range_for_a_base_are_refused)
{
	struct fixture *f = fixture_new();

	REFUSED_BASE(f, cq_budget, 0);
	REFUSED_BASE(f, cq_budget, 0x80000000u);
	REFUSED_BASE(f, cq_entries, 0);
	REFUSED_BASE(f, turn_budget_us, 0x80000000u);
	REFUSED_BASE(f, device_idle_ms, 0x80000000u);
	REFUSED_BASE(f, device_poll_ms, 0x80000000u);
	REFUSED_BASE(f, data_priority, -2);
	REFUSED_BASE(f, data_priority, 1);
	REFUSED_BASE(f, cm_priority, -2);
	REFUSED_BASE(f, cm_priority, 1);
	REFUSED_BASE(f, flags, 0x2);
	fixture_free(f);
}
END_TEST

#define REFUSED_LISTENER(f, field, value)                                                          \
	do {                                                                                       \
		struct evrdma_listener_options o;                                                  \
		evrdma_listener_options_init(&o);                                                  \
		o.field = (value);                                                                 \
		ck_assert_msg(try_listener((f), &o) == EINVAL, #field " = " #value " was taken");  \
	} while (0)

START_TEST(values_out_of_range_for_a_listener_are_refused)
{
	struct fixture *f = fixture_new();

	REFUSED_LISTENER(f, backlog, -1);
	REFUSED_LISTENER(f, v6_only, 2);
	REFUSED_LISTENER(f, v6_only, -1);
	REFUSED_LISTENER(f, relisten_ms, -1);
	REFUSED_LISTENER(f, port_space, 0);
	REFUSED_LISTENER(f, ack_timeout, 32);
	REFUSED_LISTENER(f, ack_timeout, -2);
	REFUSED_LISTENER(f, request_timeout_ms, -1);
	fixture_free(f);
}
END_TEST

#define REFUSED_DGRAM(f, field, value)                                                             \
	do {                                                                                       \
		struct evrdma_dgram_options o;                                                     \
		evrdma_dgram_options_init(&o);                                                     \
		o.recv_pool = (f)->pool;                                                           \
		o.field = (value);                                                                 \
		ck_assert_msg(try_dgram((f), &o) == EINVAL, #field " = " #value " was taken");     \
	} while (0)

START_TEST(values_out_of_range_for_an_endpoint_are_refused)
{
	struct fixture *f = fixture_new();
	struct evrdma_pool *tiny = evrdma_pool_new(f->base, EVRDMA_DGRAM_HEADER_BYTES - 1, 0);

	REFUSED_DGRAM(f, resolve_timeout_ms, 0);
	REFUSED_DGRAM(f, drain_timeout_ms, 0);
	REFUSED_DGRAM(f, drain_timeout_ms, -1);
	REFUSED_DGRAM(f, join_timeout_ms, 0);
	REFUSED_DGRAM(f, send_depth, 0);
	REFUSED_DGRAM(f, recv_depth, 0);
	REFUSED_DGRAM(f, recv_pool, NULL);
	REFUSED_DGRAM(f, recv_pool, tiny);
	REFUSED_DGRAM(f, low_water, 65);
	REFUSED_DGRAM(f, port_space, RDMA_PS_TCP);
	REFUSED_DGRAM(f, flags, 0x2);
	REFUSED_DGRAM(f, flags, 0x80000000u);
	fixture_free(f);
}
END_TEST

/* --- the text of errors --------------------------------------------------------------------- */

START_TEST(an_errors_text_says_what_was_done_and_why_it_failed)
{
	struct evrdma_error error = { .err = ECONNREFUSED,
		.step = EVRDMA_STEP_CONNECT,
		.cm_event = RDMA_CM_EVENT_REJECTED,
		.cm_status = 8 };
	char text[EVRDMA_ERROR_TEXT_MAX];

	ck_assert_str_eq(evrdma_error_text(&error, text, sizeof(text)),
		"connecting: Connection refused (RDMA_CM_EVENT_REJECTED, status 8)");
	error = (struct evrdma_error){ .err = ETIMEDOUT,
		.step = EVRDMA_STEP_TRANSFER,
		.cm_event = -1,
		.wc_status = IBV_WC_RETRY_EXC_ERR };
	ck_assert_ptr_nonnull(strstr(evrdma_error_text(&error, text, sizeof(text)),
		ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR)));
	error = (struct evrdma_error){ .err = EHOSTUNREACH,
		.step = EVRDMA_STEP_NAME,
		.cm_event = -1,
		.eai = EVUTIL_EAI_NONAME };
	ck_assert_ptr_nonnull(strstr(evrdma_error_text(&error, text, sizeof(text)),
		evutil_gai_strerror(EVUTIL_EAI_NONAME)));
}
END_TEST

START_TEST(an_errors_text_says_what_can_be_done)
{
	static const struct {
		enum evrdma_step step;
		int err;
		const char *wanted;
	} errors[] = {
		{ EVRDMA_STEP_ADDR, ENODEV, "rdma link" },
		{ EVRDMA_STEP_ADDR, EINVAL, "127.0.0.1" },
		{ EVRDMA_STEP_ROUTE, ENODEV, "127.0.0.1" },
		{ EVRDMA_STEP_DEVICE, EIO, "cq_entries" },
		{ EVRDMA_STEP_ACCEPT, ECONNRESET, "the peer gave up" },
		{ EVRDMA_STEP_DELIVER, ETIMEDOUT, "not acknowledged" },
		{ EVRDMA_STEP_DISCONNECT, ETIMEDOUT, "answer is late" },
		{ EVRDMA_STEP_CHANNEL, EIO, "make another one" },
	};
	struct evrdma_error error = {
		.err = errors[_i].err, .step = errors[_i].step, .cm_event = -1
	};
	char text[EVRDMA_ERROR_TEXT_MAX];

	evrdma_error_text(&error, text, sizeof(text));
	ck_assert_msg(strstr(text, errors[_i].wanted) != NULL, "%s", text);
	ck_assert_int_eq(text[strlen(text) - 1], ')');
}
END_TEST

START_TEST(an_errors_text_is_cut_to_fit)
{
	struct evrdma_error error = {
		.err = ECONNREFUSED, .step = EVRDMA_STEP_CONNECT, .cm_event = RDMA_CM_EVENT_REJECTED
	};
	char whole[EVRDMA_ERROR_TEXT_MAX], text[EVRDMA_ERROR_TEXT_MAX];
	size_t size;

	evrdma_error_text(&error, whole, sizeof(whole));
	for (size = 1; size <= strlen(whole); size++) {
		memset(text, 'x', sizeof(text));
		evrdma_error_text(&error, text, size);
		ck_assert_uint_eq(strlen(text), size - 1);
		ck_assert_mem_eq(text, whole, size - 1);
		ck_assert_int_eq(text[size], 'x');
	}
	text[0] = 'x';
	ck_assert_ptr_eq(evrdma_error_text(&error, text, 0), text);
	ck_assert_int_eq(text[0], 'x');
}
END_TEST

START_TEST(every_step_has_a_name)
{
	int step, other;

	for (step = EVRDMA_STEP_NAME; step <= EVRDMA_STEP_CHANNEL; step++)
		for (other = EVRDMA_STEP_NONE; other < step; other++)
			ck_assert_str_ne(evrdma_step_text((enum evrdma_step)step),
				evrdma_step_text((enum evrdma_step)other));
}
END_TEST

TCase *option_case(void)
{
	TCase *tc = tcase_create("option");

	tcase_add_checked_fixture(tc, testbed.start, testbed.stop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, options_of_a_newer_program_are_taken_when_the_rest_is_zero);
	tcase_add_test(tc, options_that_this_library_does_not_know_are_refused);
	tcase_add_test(tc, a_listener_has_limits_for_strangers_by_default);
	tcase_add_test(tc, options_of_an_older_program_get_the_defaults_for_the_rest);
	tcase_add_test(tc, options_that_were_never_initialised_are_refused);
	tcase_add_test(tc, values_out_of_range_for_a_base_are_refused);
	tcase_add_test(tc, values_out_of_range_for_a_connection_are_refused);
	tcase_add_test(tc, values_out_of_range_for_a_listener_are_refused);
	tcase_add_test(tc, values_out_of_range_for_an_endpoint_are_refused);
	tcase_add_test(tc, an_errors_text_says_what_was_done_and_why_it_failed);
	tcase_add_loop_test(tc, an_errors_text_says_what_can_be_done, 0, 8);
	tcase_add_test(tc, an_errors_text_is_cut_to_fit);
	tcase_add_test(tc, every_step_has_a_name);
	return tc;
}
