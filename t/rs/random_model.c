/* What each call of a schedule may give. */
#define _GNU_SOURCE
#include "rs/random.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- what is wrong --------------------------------------------------------------------------- */

static void describe_end(const struct random_end *end)
{
	printf("# end %u, fd %d:%s%s%s%s%s%s; out: %llu sent, %llu taken%s%s\n", end->number,
		end->fd, end->nonblock ? " nonblocking" : "", end->closed ? " closed" : "",
		end->shut_all ? " shut down" : "", end->gone ? " gone" : "",
		end->sending ? " sending" : "", end->receiving ? " receiving" : "",
		(unsigned long long)end->out.sent, (unsigned long long)end->out.taken,
		end->out.shut ? ", shut" : "", end->out.reset ? ", reset" : "");
}

static void describe_user(const struct random_user *user)
{
	printf("# user of end %u: %s%s%s%s, %u more to do\n", user->end->number,
		user->over ? "has ended after " : "in ", user->call,
		user->wants & FOR_BYTES ? ", for bytes" : "",
		user->wants & FOR_ROOM ? ", for room" : "", user->left);
}

void random_wrong(const struct random_schedule *s, const struct random_end *end, const char *what)
{
	unsigned i;

	printf("# seed %llu: end %u: %s\n", (unsigned long long)s->seed, end->number, what);
	for (i = 0; i < s->num_ends; i++)
		describe_end(&s->ends[i]);
	for (i = 0; i < s->num_users; i++)
		describe_user(&s->users[i]);
	fflush(stdout);
	ck_abort_msg("seed %llu: end %u: %s", (unsigned long long)s->seed, end->number, what);
}

static void wrong_error(
	const struct random_schedule *s, const struct random_end *end, const char *call, int error)
{
	char text[100];

	snprintf(text, sizeof(text), "%s gives %s for no reason", call, strerrorname_np(error));
	random_wrong(s, end, text);
}

/* --- bytes ----------------------------------------------------------------------------------- */

static uint8_t byte_at(const struct random_end *from, uint64_t at)
{
	return (uint8_t)(at * 31 + at / 251 + from->number * 7);
}

void random_fill(const struct random_end *from, uint8_t *bytes, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = byte_at(from, from->out.sent + i);
}

bool random_is_over(const struct random_end *end)
{
	return end->closed || end->shut_all || end->gone || end->peer->closed ||
	       end->peer->shut_all;
}

bool random_may_hang_up(const struct random_end *end)
{
	bool shut = end->closed ? end->was_shut : end->out.shut;

	return end->shut_all || end->gone || end->peer->closed || end->peer->shut_all ||
	       (shut && end->peer->out.shut);
}

bool random_has(const struct random_end *end, uint64_t bytes)
{
	const struct random_flow *in = &end->peer->out;

	return in->shut || random_is_over(end) || in->sent >= in->taken + bytes;
}

/* A call that began while it was blocking may have come when it was not any more. */
static bool has_waited(const struct random_end *end, bool may_wait, unsigned modes)
{
	return may_wait && modes == end->modes;
}

/* --- receiving ------------------------------------------------------------------------------- */

static void check_bytes(const struct random_schedule *s, struct random_end *end,
	const uint8_t *bytes, const struct random_receipt *receipt)
{
	struct random_flow *in = &end->peer->out;
	uint64_t len = (uint64_t)receipt->got, i;

	if (in->taken + len > in->offered)
		random_wrong(s, end, "more is received than was sent");
	for (i = 0; i < len; i++)
		if (bytes[i] != byte_at(end->peer, in->taken + i))
			random_wrong(s, end, "another byte than was sent");
	if (!receipt->peek)
		in->taken += len;
	if (receipt->all && has_waited(end, receipt->may_wait, receipt->modes) &&
		len < receipt->len && !in->shut && !random_is_over(end))
		random_wrong(s, end, "MSG_WAITALL gives less, before the end");
}

/* Who sends is told of a reset, too, and the lock is not held between that and random_sent(). */
static void check_end(const struct random_schedule *s, struct random_end *end)
{
	const struct random_flow *in = &end->peer->out;
	bool told = end->told || (in->reset && end->sending);

	if (end->shut_all || end->gone)
		return;
	if (in->reset && !told)
		random_wrong(s, end, "an end, and nobody was told of the reset");
	if (!in->shut && !told)
		random_wrong(s, end, "an end that nobody made");
	if (!told && in->taken < in->sent)
		random_wrong(s, end, "an end before the last byte");
	end->ended = true;
}

/* Who only looked may come with it after one who was told. */
static void check_reset(const struct random_schedule *s, struct random_end *end,
	const struct random_receipt *receipt)
{
	if (!end->peer->closed)
		random_wrong(s, end, "a reset by nobody");
	if (receipt->peek ? receipt->told : end->told)
		random_wrong(s, end, "a reset that was told before");
	if (!receipt->peek)
		end->told = end->ended = true;
}

static void check_no_bytes(const struct random_schedule *s, struct random_end *end,
	const struct random_receipt *receipt)
{
	if (end->gone && receipt->error != EAGAIN)
		return;
	switch (receipt->error) {
	case EAGAIN:
		if (has_waited(end, receipt->may_wait, receipt->modes))
			random_wrong(s, end, "EAGAIN from a blocking call");
		if (receipt->ready)
			random_wrong(s, end, "EAGAIN while there are bytes");
		break;
	case EBADF:
		if (!end->closed)
			random_wrong(s, end, "EBADF, and it is open");
		break;
	case ECONNRESET:
		check_reset(s, end, receipt);
		break;
	default:
		wrong_error(s, end, "receiving", receipt->error);
	}
}

void random_received(const struct random_schedule *s, struct random_end *end, const uint8_t *bytes,
	const struct random_receipt *receipt)
{
	if (receipt->got > 0)
		check_bytes(s, end, bytes, receipt);
	else if (!receipt->got)
		check_end(s, end);
	else
		check_no_bytes(s, end, receipt);
}

/* --- sending --------------------------------------------------------------------------------- */

static void check_not_sent(
	const struct random_schedule *s, struct random_end *end, bool may_wait, int error)
{
	bool over = end->out.shut || random_is_over(end);
	/* Who shuts down last disconnects. */
	bool reset =
		end->peer->closed || end->peer->shut_all || (end->out.shut && end->peer->out.shut);

	if (error == EAGAIN && may_wait)
		random_wrong(s, end, "EAGAIN from a blocking rsend()");
	if (end->gone && error != EAGAIN)
		return;
	if (error == ECONNRESET && end->peer->out.reset) {
		if (end->told)
			random_wrong(s, end, "a reset that was told before");
		end->told = true;
	}
	if (error == EAGAIN || (error == EBADF && end->closed) || (error == EPIPE && over) ||
		(error == ECONNRESET && reset))
		return;
	wrong_error(s, end, "sending", error);
}

void random_sent(
	const struct random_schedule *s, struct random_end *end, const struct random_sending *sent)
{
	bool waited = has_waited(end, sent->may_wait, sent->modes);

	if (sent->sent <= 0) {
		check_not_sent(s, end, waited, sent->sent ? sent->error : 0);
	} else {
		end->out.sent += (uint64_t)sent->sent;
		if (waited && (size_t)sent->sent < sent->len && !end->out.shut &&
			!random_is_over(end))
			random_wrong(s, end, "a blocking rsend() sends less");
	}
	end->out.offered = end->out.sent;
}
