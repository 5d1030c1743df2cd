#include "config.h"

#include "rs/state.h"

#include <errno.h>
#include <stddef.h>

int error_of(ssize_t ret)
{
	return ret < 0 ? errno : 0;
}

int so_error(int fd)
{
	int error = -1;
	socklen_t len = sizeof(error);

	ck_assert_int_eq(call()->getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return error;
}

int bind_one(int fd)
{
	struct sockaddr_storage addr = place(0);

	return error_of(call()->bind(fd, (struct sockaddr *)&addr, place_len()));
}

/* --- no connection --------------------------------------------------------------------------- */

void be_new(struct pair *pair)
{
	ck_assert_int_eq(call()->close(pair->client), 0);
	pair->client = open_one();
}

void be_bound(struct pair *pair)
{
	be_new(pair);
	ck_assert_int_eq(bind_one(pair->client), 0);
}

void listens(struct pair *pair)
{
	be_bound(pair);
	ck_assert_int_eq(call()->listen(pair->client, 1), 0);
}

void listens_no_more(struct pair *pair)
{
	listens(pair);
	ck_assert_int_eq(call()->shutdown(pair->client, SHUT_RD), 0);
}

void connects(struct pair *pair)
{
	uint16_t port;

	end_pair(pair);
	*pair = (struct pair){ .listener = listen_on(&port, 0) };
	pair->server = connect_to(port);
	wait_for(pair->listener, POLLIN);
	pair->client = connect_to(port);
}

void was_refused(struct pair *pair)
{
	ck_assert_int_eq(call()->close(pair->client), 0);
	pair->client = connect_to(NOT_THERE);
	wait_for(pair->client, POLLERR);
}

void was_refused_and_told(struct pair *pair)
{
	was_refused(pair);
	ck_assert_int_eq(so_error(pair->client), ECONNREFUSED);
}

/* --- a connection ---------------------------------------------------------------------------- */

void be_connected(struct pair *pair)
{
	(void)pair;
}

void sends_no_more(struct pair *pair)
{
	ck_assert_int_eq(call()->shutdown(pair->client, SHUT_WR), 0);
	wait_for(pair->server, POLLRDHUP);
}

void reads_no_more(struct pair *pair)
{
	ck_assert_int_eq(call()->shutdown(pair->client, SHUT_RD), 0);
}

void does_neither(struct pair *pair)
{
	ck_assert_int_eq(call()->shutdown(pair->client, SHUT_RDWR), 0);
	wait_for(pair->server, POLLRDHUP);
}

void has_met_the_end(struct pair *pair)
{
	ck_assert_int_eq(call()->shutdown(pair->server, SHUT_WR), 0);
	wait_for(pair->client, POLLRDHUP);
}

void has_ended(struct pair *pair)
{
	sends_no_more(pair);
	has_met_the_end(pair);
	wait_for(pair->client, POLLHUP);
}

void peer_has_closed(struct pair *pair)
{
	ck_assert_int_eq(call()->close(pair->server), 0);
	pair->server = -1;
	wait_for(pair->client, POLLRDHUP);
}

void peer_has_closed_too(struct pair *pair)
{
	sends_no_more(pair);
	peer_has_closed(pair);
}

void was_reset(struct pair *pair)
{
	reset(pair->server);
	pair->server = -1;
	wait_for(pair->client, POLLHUP);
}

void was_reset_and_told(struct pair *pair)
{
	was_reset(pair);
	ck_assert_int_eq(so_error(pair->client), ECONNRESET);
}

void ended_and_was_reset(struct pair *pair)
{
	sends_no_more(pair);
	was_reset(pair);
}
