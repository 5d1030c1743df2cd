/* How a bufferevent over RDMA ends: freed, closed, broken, and with its base. */
#include "conform/bufferevent.h"
#include "conform/stream.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- ends ----------------------------------------------------------------------------------- */

START_TEST(what_was_written_before_the_free_arrives_and_then_the_end)
{
	bevs.server.on_read = side_check;
	bevs.server.on_event = side_free_at_end;
	bevs_start();
	side_write(&bevs.client, 50000);
	ck_assert_uint_eq(side_output(&bevs.client), 0);
	side_free(&bevs.client);
	bevs_run_until(server_has_eof);
	ck_assert_uint_eq(bevs.server.checked, 50000);
	ck_assert_uint_eq(bevs.server.errors, 0);
}
END_TEST

/* What libevent says is written has gone into the pair, a byte or two. */
START_TEST(what_was_written_into_a_full_window_arrives_after_the_free)
{
	size_t left;

	bevs.server.on_read = side_check;
	bevs.server.on_event = side_free_at_end;
	bevs_start();
	bufferevent_disable(bevs.server.bev, EV_READ);
	side_write(&bevs.client, MILLION);
	bevs_run_until(client_is_blocked);
	left = side_output(&bevs.client);
	side_free(&bevs.client);
	fixture_run_a_little(bevs.f);
	bufferevent_enable(bevs.server.bev, EV_READ);
	bevs_run_until(server_has_eof);
	ck_assert_uint_eq(bevs.server.checked, MILLION - left);
}
END_TEST

static bool server_has_no_conn(struct fixture *f)
{
	return !evrdma_bufferevent_get_conn(bevs.server.bev);
}

START_TEST(a_peer_that_takes_nothing_is_given_up_in_time)
{
	bevs.options.linger_timeout_ms = 500;
	bevs_start();
	bufferevent_disable(bevs.server.bev, EV_READ);
	side_write(&bevs.client, MILLION);
	bevs_run_until(client_is_blocked);
	side_free(&bevs.client);
	bevs_run_until(server_has_no_conn);
	bufferevent_enable(bevs.server.bev, EV_READ);
	bevs_run_until(server_has_error);
	ck_assert_uint_eq(bevs.server.read_errors, 1);
	ck_assert_int_eq(bevs.server.err, ECONNRESET);
}
END_TEST

static bool client_has_sent_all(struct fixture *f)
{
	return !side_output(&bevs.client) || bevs.client.errors;
}

/* Of a ring in which something was read by reference, up to the middle of a half. */
START_TEST(a_peer_that_writes_first_is_not_held_up_by_what_was_read_before_the_free)
{
	size_t left;

	bevs.server.on_read = side_check;
	bevs_start();
	side_write(&bevs.client, 10000);
	side_await(&bevs.server, 10000);
	bufferevent_disable(bevs.client.bev, EV_READ);
	side_write(&bevs.server, MILLION);
	fixture_run_a_little(bevs.f);
	left = side_output(&bevs.server);
	side_free(&bevs.server);
	side_write(&bevs.client, MILLION);
	bevs_run_until(client_has_sent_all);
	ck_assert_uint_eq(bevs.client.errors, 0);
	bufferevent_enable(bevs.client.bev, EV_READ);
	bevs.client.on_read = side_check;
	side_await(&bevs.client, MILLION - left);
	bevs_run_until(client_has_eof);
}
END_TEST

START_TEST(half_of_it_is_closed_by_shutdown_and_the_other_goes_on)
{
	bevs.client.on_read = side_check;
	bevs_start();
	ck_assert_int_eq(shutdown(bufferevent_getfd(bevs.client.bev), SHUT_WR), 0);
	bevs_run_until(server_has_eof);
	side_write(&bevs.server, 300000);
	side_await(&bevs.client, 300000);
	ck_assert_uint_eq(bevs.client.eof + bevs.client.errors, 0);
}
END_TEST

static void connect_to_nobody(void)
{
	struct sockaddr_in sin;

	fixture_address(&sin, testbed.ip, 1);
	side_begin(&bevs.client,
		evrdma_bufferevent_connect(bevs.f->base, NULL, (struct sockaddr *)&sin,
			&bevs.options, bevs.bev_options));
}

START_TEST(nobody_there_is_an_error_with_its_cause)
{
	struct evrdma_error error;

	connect_to_nobody();
	if (_i)
		bufferevent_disable(bevs.client.bev, EV_READ);
	ck_assert_int_eq(evrdma_bufferevent_get_error(bevs.client.bev, &error), -ENOENT);
	bevs_run_until(client_has_error);
	ck_assert_int_eq(bevs.client.err, ECONNREFUSED);
	fixture_run_a_little(bevs.f);
	ck_assert_uint_eq(bevs.client.errors, 1);
	ck_assert_uint_eq(bevs.client.connected + bevs.client.writes + bevs.client.reads, 0);
	ck_assert_int_eq(evrdma_bufferevent_get_error(bevs.client.bev, &error), 0);
	ck_assert_int_eq(error.err, ECONNREFUSED);
}
END_TEST

static void break_server(void)
{
	evrdma_conn_close(evrdma_bufferevent_get_conn(bevs.server.bev));
}

START_TEST(a_connection_that_breaks_is_an_error_for_who_reads)
{
	bevs_start();
	side_write(&bevs.server, 10);
	fixture_run_a_little(bevs.f);
	break_server();
	bevs_run_until(client_has_error);
	ck_assert_uint_eq(bevs.client.read_errors, 1);
	ck_assert_int_eq(bevs.client.err, ECONNRESET);
	/* What came before is there, and nothing else. */
	side_check(&bevs.client);
	ck_assert_uint_eq(bevs.client.checked, 10);
}
END_TEST

START_TEST(a_connection_that_breaks_is_an_error_for_a_writer_that_waits)
{
	bevs_start();
	bufferevent_disable(bevs.client.bev, EV_READ);
	bufferevent_disable(bevs.server.bev, EV_READ);
	side_write(&bevs.client, MILLION);
	bevs_run_until(client_is_blocked);
	break_server();
	bevs_run_until(client_has_error);
	ck_assert_uint_eq(bevs.client.write_errors, 1);
	ck_assert_int_eq(bevs.client.err, ECONNRESET);
}
END_TEST

START_TEST(a_writer_whose_peer_has_closed_gets_an_error)
{
	bevs_start();
	side_free(&bevs.client);
	bevs_run_until(server_has_eof);
	side_write(&bevs.server, 1000);
	bevs_run_until(server_has_error);
	ck_assert_int_eq(bevs.server.err, ECONNRESET);
}
END_TEST

/* --- in every callback ---------------------------------------------------------------------- */

static void free_now(struct side *side)
{
	side_free(side);
}

static void free_when_connected(struct side *side, short what)
{
	side_free(side);
}

static bool client_is_gone(struct fixture *f)
{
	return !bevs.client.bev;
}

START_TEST(it_is_freed_in_every_callback)
{
	bevs.bev_options = _i / 4 ? BEV_OPT_DEFER_CALLBACKS : 0;
	bevs.server.on_read = side_echo;
	bevs.server.on_event = side_free_at_end;
	switch (_i % 4) {
	case 0:
		bevs.client.on_read = free_now;
		break;
	case 1:
		bevs.client.on_write = free_now;
		break;
	case 2:
		bevs.client.on_event = free_when_connected;
		break;
	default:
		bevs.client.on_event = side_free_at_end;
		break;
	}
	bevs_listen();
	bevs_connect();
	side_write(&bevs.client, 5000);
	if (_i % 4 == 3) {
		bevs_run_until(bevs_are_up);
		side_free(&bevs.server);
	}
	bevs_run_until(client_is_gone);
}
END_TEST

START_TEST(it_is_freed_while_it_connects)
{
	bevs_listen();
	bevs_connect();
	fixture_run_turns(bevs.f, _i);
	side_free(&bevs.client);
	fixture_run_turns(bevs.f, 20);
}
END_TEST

/* The user's callbacks are called no more, and the buffers are another's. */
START_TEST(a_bufferevent_that_is_given_another_descriptor_is_that_ones)
{
	int fds[2], old;
	char byte = 0;

	bevs_start();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	old = bufferevent_getfd(bevs.client.bev);
	bufferevent_setfd(bevs.client.bev, fds[0]);
	close(old);
	bufferevent_write(bevs.client.bev, "x", 1);
	bevs_run_until(server_has_eof);
	ck_assert_int_eq(recv(fds[1], &byte, 1, 0), 1);
	ck_assert_int_eq(byte, 'x');
	ck_assert_int_eq(send(fds[1], "yz", 2, 0), 2);
	fixture_run_a_little(bevs.f);
	ck_assert_uint_eq(side_input(&bevs.client), 2);
	ck_assert_ptr_null(evrdma_bufferevent_get_conn(bevs.client.bev));
	close(fds[1]);
}
END_TEST

/* As TLS does, which begins as soon as it is given one. */
START_TEST(what_is_written_while_it_has_another_descriptor_waits_for_its_own)
{
	int own, other = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	bevs.server.on_read = side_echo;
	bevs.client.on_read = side_check;
	bevs_start();
	own = bufferevent_getfd(bevs.client.bev);
	bufferevent_setfd(bevs.client.bev, _i ? other : -1);
	ck_assert_ptr_null(evrdma_bufferevent_get_conn(bevs.client.bev));
	side_write(&bevs.client, 1000);
	bufferevent_setfd(bevs.client.bev, own);
	close(other);
	side_await(&bevs.client, 1000);
	side_write(&bevs.client, 100000);
	side_await(&bevs.client, 101000);
	ck_assert_ptr_nonnull(evrdma_bufferevent_get_conn(bevs.client.bev));
}
END_TEST

/* Of RDMA a byte at a time goes through the pair, and all that may. */
START_TEST(a_bufferevent_that_is_given_another_descriptor_has_its_own_limits_again)
{
	struct bufferevent *other = bufferevent_socket_new(bevs.f->loop, -1, 0);
	char bytes[1000] = "";
	int fds[2], old;

	bevs_start();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	old = bufferevent_getfd(bevs.client.bev);
	bufferevent_setfd(bevs.client.bev, fds[0]);
	close(old);
	bufferevent_write(bevs.client.bev, bytes, sizeof(bytes));
	ck_assert_int_eq(send(fds[1], "yz", 2, 0), 2);
	fixture_run_turns(bevs.f, 4);
	ck_assert_int_eq(recv(fds[1], bytes, sizeof(bytes), 0), sizeof(bytes));
	ck_assert_int_eq(bufferevent_get_max_single_read(bevs.client.bev),
		bufferevent_get_max_single_read(other));
	ck_assert_int_eq(bufferevent_get_max_single_write(bevs.client.bev),
		bufferevent_get_max_single_write(other));
	bufferevent_free(other);
	close(fds[1]);
}
END_TEST

/* As the next one that is opened has. */
START_TEST(a_descriptor_of_the_same_number_is_another_ones)
{
	struct evrdma_error error;
	int fds[2], fd;
	char byte = 0;

	bevs_start();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	fd = bufferevent_getfd(bevs.client.bev);
	bufferevent_setfd(bevs.client.bev, -1);
	dup2(fds[0], fd);
	bufferevent_setfd(bevs.client.bev, fd);
	if (_i)
		ck_assert_ptr_null(evrdma_bufferevent_get_conn(bevs.client.bev));
	else
		ck_assert_int_eq(
			evrdma_bufferevent_get_error(bevs.client.bev, &error), -ENOENT);
	bufferevent_write(bevs.client.bev, "x", 1);
	bevs_run_until(server_has_eof);
	fixture_run_a_little(bevs.f);
	ck_assert_int_eq(recv(fds[1], &byte, 1, 0), 1);
	ck_assert_int_eq(byte, 'x');
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(a_descriptor_that_the_user_closes_ends_the_connection)
{
	bevs_start();
	close(bufferevent_getfd(bevs.client.bev));
	bufferevent_setfd(bevs.client.bev, -1);
	bevs_run_until(server_has_eof);
	bufferevent_write(bevs.client.bev, "x", 1);
	fixture_run_a_little(bevs.f);
	ck_assert_uint_eq(side_output(&bevs.client), 1);
}
END_TEST

/* Its error is known, and waits to be read. */
static bool client_is_down(struct fixture *f)
{
	struct evrdma_error error;

	return evrdma_bufferevent_get_error(bevs.client.bev, &error) == 0;
}

START_TEST(a_base_that_is_closed_ends_them)
{
	bevs_start();
	side_write(&bevs.client, MILLION);
	fixture_close_base(bevs.f);
	bevs_run_until(fixture_base_is_closed);
	bevs_run_until(server_has_eof);
	ck_assert_ptr_null(evrdma_bufferevent_get_conn(bevs.client.bev));
	bufferevent_disable(bevs.client.bev, EV_WRITE);
	bufferevent_write(bevs.client.bev, "x", 1);
}
END_TEST

START_TEST(an_error_that_nobody_read_before_its_base_was_closed_is_an_end)
{
	bevs_start();
	bufferevent_disable(bevs.client.bev, EV_READ);
	break_server();
	bevs_run_until(client_is_down);
	fixture_close_base(bevs.f);
	bevs_run_until(fixture_base_is_closed);
	bufferevent_enable(bevs.client.bev, EV_READ);
	bevs_run_until(client_has_eof);
	ck_assert_uint_eq(evbuffer_get_length(bufferevent_get_input(bevs.client.bev)), 0);
}
END_TEST

START_TEST(a_base_that_is_shut_down_closes_them_in_order)
{
	fixture_add_other(bevs.f);
	bevs.server.on_read = side_check;
	bevs_start();
	side_write(&bevs.client, 50000);
	bevs_shut_down();
	bevs_run_until(server_has_eof);
	bevs_run_until(fixture_base_is_closed);
	ck_assert_uint_eq(bevs.server.checked, 50000);
}
END_TEST

/* As of a socket that was shut down: whatever the peer does then, it was this side that closed. */
START_TEST(what_is_written_after_its_base_was_shut_down_is_a_broken_pipe)
{
	fixture_add_other(bevs.f);
	bevs.server.on_event = side_free_at_end;
	bevs_start();
	bevs_shut_down();
	fixture_run_turns(bevs.f, _i);
	side_write(&bevs.client, 1000);
	bevs_run_until(fixture_base_is_closed);
	fixture_run_a_little(bevs.f);
	ck_assert_uint_eq(bevs.client.eof, 1);
	ck_assert_uint_eq(bevs.client.read_errors, 0);
	if (bevs.client.errors)
		ck_assert_msg(bevs.client.err == EPIPE, "%s", strerror(bevs.client.err));
}
END_TEST

/* With something in the pair that nobody has taken. */
START_TEST(with_room_wanted_a_base_that_is_closed_is_an_end_and_a_broken_pipe)
{
	bevs_start();
	bufferevent_disable(bevs.server.bev, EV_READ);
	side_write(&bevs.client, MILLION);
	bevs_run_until(client_is_blocked);
	fixture_close_base(bevs.f);
	bevs_run_until(fixture_base_is_closed);
	bevs_run_until(client_has_error);
	fixture_run_a_little(bevs.f);
	ck_assert_uint_eq(bevs.client.read_errors, 0);
	ck_assert_uint_eq(bevs.client.eof, 1);
	ck_assert_uint_eq(bevs.client.write_errors, 1);
	ck_assert_msg(bevs.client.err == EPIPE, "%s", strerror(bevs.client.err));
}
END_TEST

/* In the pair, or not even there. */
START_TEST(a_base_that_is_shut_down_sends_what_a_full_window_held_up)
{
	fixture_add_other(bevs.f);
	bevs.client.on_event = side_free_at_end;
	bevs.server.on_read = side_check;
	bevs_start();
	bufferevent_disable(bevs.server.bev, EV_READ);
	side_write(&bevs.client, MILLION);
	if (_i)
		bevs_run_until(client_is_blocked);
	bevs_shut_down();
	fixture_run_a_little(bevs.f);
	bufferevent_enable(bevs.server.bev, EV_READ);
	bevs_run_until(server_has_eof);
	bevs_run_until(fixture_base_is_closed);
	ck_assert_uint_eq(bevs.server.checked, MILLION);
	ck_assert_uint_eq(bevs.client.eof, 1);
	ck_assert_uint_eq(bevs.client.errors, 0);
}
END_TEST

/* All of it, or an error. */
START_TEST(a_base_that_is_shut_down_while_it_connects_loses_nothing_in_silence)
{
	fixture_add_other(bevs.f);
	bevs.server.on_read = side_check;
	bevs_listen();
	bevs_connect();
	side_write(&bevs.client, 1000);
	fixture_run_turns(bevs.f, _i);
	bevs_shut_down();
	bevs_run_until(fixture_base_is_closed);
	fixture_run_a_little(bevs.f);
	if (bevs.server.eof && !bevs.server.errors)
		ck_assert_uint_eq(bevs.server.checked, 1000);
}
END_TEST

START_TEST(a_base_that_is_shut_down_does_not_wait_for_who_waits_for_a_peer_that_is_gone)
{
	fixture_add_other(bevs.f);
	bevs_start();
	bufferevent_disable(bevs.server.bev, EV_READ);
	side_write(&bevs.client, MILLION);
	bevs_run_until(client_is_blocked);
	bevs_shut_down();
	break_server();
	bevs_run_until(fixture_base_is_closed);
}
END_TEST

/* --- without memory ------------------------------------------------------------------------- */

static bool no_memory;

static void *allocate(size_t size)
{
	return no_memory ? NULL : malloc(size);
}

static void *reallocate(void *old, size_t size)
{
	return no_memory ? NULL : realloc(old, size);
}

/* What libevent made before came from malloc(), too. */
static void set_memory(void)
{
	event_set_mem_functions(allocate, reallocate, free);
}

static bool client_has_error_without_memory(struct fixture *f)
{
	no_memory = !bevs.client.errors;
	return !no_memory;
}

START_TEST(without_memory_an_error_is_told_and_nothing_is_made_up)
{
	set_memory();
	bevs_start();
	side_write(&bevs.server, 10);
	fixture_run_a_little(bevs.f);
	break_server();
	bevs_run_until(client_has_error_without_memory);
	ck_assert_uint_eq(bevs.client.read_errors, 1);
	ck_assert_uint_le(side_input(&bevs.client), 10);
	side_check(&bevs.client);
}
END_TEST

START_TEST(without_memory_what_cannot_connect_has_not_written)
{
	set_memory();
	connect_to_nobody();
	bevs_run_until(client_has_error_without_memory);
	fixture_run_a_little(bevs.f);
	ck_assert_uint_eq(bevs.client.writes, 0);
}
END_TEST

void bufferevent_add_ends(TCase *tcase)
{
	tcase_add_test(tcase, what_was_written_before_the_free_arrives_and_then_the_end);
	tcase_add_test(tcase, what_was_written_into_a_full_window_arrives_after_the_free);
	tcase_add_test(tcase, a_peer_that_takes_nothing_is_given_up_in_time);
	tcase_add_test(tcase,
		a_peer_that_writes_first_is_not_held_up_by_what_was_read_before_the_free);
	tcase_add_test(tcase, half_of_it_is_closed_by_shutdown_and_the_other_goes_on);
	tcase_add_loop_test(tcase, nobody_there_is_an_error_with_its_cause, 0, 2);
	tcase_add_test(tcase, a_connection_that_breaks_is_an_error_for_who_reads);
	tcase_add_test(tcase, a_connection_that_breaks_is_an_error_for_a_writer_that_waits);
	tcase_add_test(tcase, a_writer_whose_peer_has_closed_gets_an_error);
	tcase_add_loop_test(tcase, it_is_freed_in_every_callback, 0, 8);
	tcase_add_loop_test(tcase, it_is_freed_while_it_connects, 0, 12);
	tcase_add_test(tcase, a_bufferevent_that_is_given_another_descriptor_is_that_ones);
	tcase_add_loop_test(tcase,
		what_is_written_while_it_has_another_descriptor_waits_for_its_own, 0, 2);
	tcase_add_test(tcase,
		a_bufferevent_that_is_given_another_descriptor_has_its_own_limits_again);
	tcase_add_loop_test(tcase, a_descriptor_of_the_same_number_is_another_ones, 0, 2);
	tcase_add_test(tcase, a_descriptor_that_the_user_closes_ends_the_connection);
	tcase_add_test(tcase, a_base_that_is_closed_ends_them);
	tcase_add_test(tcase, an_error_that_nobody_read_before_its_base_was_closed_is_an_end);
	tcase_add_test(tcase, a_base_that_is_shut_down_closes_them_in_order);
	tcase_add_loop_test(
		tcase, what_is_written_after_its_base_was_shut_down_is_a_broken_pipe, 0, 30);
	tcase_add_test(tcase,
		with_room_wanted_a_base_that_is_closed_is_an_end_and_a_broken_pipe);
	tcase_add_loop_test(
		tcase, a_base_that_is_shut_down_sends_what_a_full_window_held_up, 0, 2);
	tcase_add_loop_test(tcase,
		a_base_that_is_shut_down_while_it_connects_loses_nothing_in_silence, 0, 12);
	tcase_add_test(tcase,
		a_base_that_is_shut_down_does_not_wait_for_who_waits_for_a_peer_that_is_gone);
	tcase_add_test(tcase, without_memory_an_error_is_told_and_nothing_is_made_up);
	tcase_add_test(tcase, without_memory_what_cannot_connect_has_not_written);
}
