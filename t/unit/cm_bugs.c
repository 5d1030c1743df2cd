/*
 * What another librdmacm gets wrong, as far as no other test is about it: it hangs, leaks, or
 * leaves somebody in the dark.
 */
#include "unit/cm_unit.h"

#include "cm/cm.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct cm_pair pair;

/* Nothing follows on it, so there is nothing to wait for. */
START_TEST(accepting_on_a_synchronous_datagram_id_returns)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *client = cm_id(channel, RDMA_PS_UDP), *listener, *server;

	ck_assert_ok(rdma_create_id(NULL, &listener, NULL, RDMA_PS_UDP));
	ck_assert_ok(rdma_bind_addr(listener, cm_addr("0.0.0.0", CM_PORT)));
	ck_assert_ok(rdma_listen(listener, 0));
	cm_resolve(client, FAKE_ROCE_IP);
	cm_make_qp(client);
	ck_assert_ok(rdma_connect(client, NULL));
	ck_assert_ok(rdma_get_request(listener, &server));
	cm_make_qp(server);
	ck_assert_ok(rdma_accept(server, NULL));
	cm_await(channel, RDMA_CM_EVENT_ESTABLISHED);
	cm_destroy(server);
	cm_destroy(listener);
	cm_destroy(client);
	rdma_destroy_event_channel(channel);
}
END_TEST

/* Otherwise it waits until its retries end, or the id that failed is destroyed. */
START_TEST(a_peer_whose_answer_cannot_be_used_is_told_at_once)
{
	struct rdma_cm_event *event;

	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_pair_request(&pair, NULL);
	cm_make_qp(pair.server);
	ck_assert_ok(rdma_accept(pair.server, NULL));
	fake_fail_next("ibv_modify_qp", ENOMEM);
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_CONNECT_ERROR), pair.client);
	event = cm_expect(pair.channel, RDMA_CM_EVENT_REJECTED);
	ck_assert_ptr_eq(event->id, pair.server);
	ck_assert_int_eq(event->status, 28);
	ck_assert_ok(rdma_ack_cm_event(event));
	cm_pair_end(&pair);
}
END_TEST

/* The event of such a request was read, and counts as acknowledged. */
START_TEST(a_request_without_an_id_does_not_hold_its_listener)
{
	cm_pair_start(&pair, RDMA_PS_TCP);
	cm_make_qp(pair.client);
	ck_assert_ok(rdma_connect(pair.client, NULL));
	fake_fail_next("QUERY", ENOMEM);
	ck_assert_ptr_eq(cm_await(pair.channel, RDMA_CM_EVENT_REJECTED), pair.client);
	cm_pair_end(&pair);
}
END_TEST

START_TEST(every_reason_why_there_is_no_id_is_told)
{
	const struct {
		const char *step;
		int error;
	} steps[] = { { "open", EMFILE }, { "open", EACCES }, { "CREATE_ID", ENOSPC },
		{ "CREATE_ID", EACCES } };
	struct rdma_cm_id *id = NULL;
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		fake_fail_next(steps[i].step, steps[i].error);
		ck_assert_fails(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), steps[i].error);
		ck_assert_ptr_null(id);
	}
}
END_TEST

START_TEST(requests_are_found_by_handles_of_any_size)
{
	static struct evr_cm_id child = { .handle = UINT32_MAX };

	ck_assert_int_eq(evr_cm_map_add_child(&child), 0);
	ck_assert_ptr_eq(evr_cm_map_find_child(UINT32_MAX), &child);
	ck_assert_ptr_null(evr_cm_map_find_child(UINT16_MAX));
	evr_cm_map_remove_id(&child);
	ck_assert_ptr_null(evr_cm_map_find_child(UINT32_MAX));
}
END_TEST

static void fail_in_many_ways(void)
{
	struct rdma_event_channel *channel = cm_channel();
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	struct rdma_cm_event *event;

	rdma_bind_addr(id, NULL);
	rdma_connect(id, NULL);
	fake_inject_stray(channel->fd, &(struct evr_ucma_resp_event){ .uid = 0xdead });
	rdma_get_cm_event(channel, &event);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
	fake_fail_next("open", EPERM);
	rdma_create_event_channel();
	fake_device_remove(FAKE_ROCE);
	rdma_get_devices(NULL);
}

/* A library has no terminal. */
START_TEST(errors_are_returned_and_never_printed)
{
	FILE *file = tmpfile();
	int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
	off_t printed;

	ck_assert_ptr_nonnull(file);
	fflush(NULL);
	dup2(fileno(file), STDOUT_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	fail_in_many_ways();
	fflush(NULL);
	printed = lseek(fileno(file), 0, SEEK_END);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close(out);
	close(err);
	fclose(file);
	ck_assert_int_eq(printed, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		accepting_on_a_synchronous_datagram_id_returns,
		a_peer_whose_answer_cannot_be_used_is_told_at_once,
		a_request_without_an_id_does_not_hold_its_listener,
		every_reason_why_there_is_no_id_is_told,
		requests_are_found_by_handles_of_any_size,
		errors_are_returned_and_never_printed,
	};

	return cm_main("cm_bugs", tests, sizeof(tests) / sizeof(tests[0]));
}
