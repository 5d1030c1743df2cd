/* Messages between ids: held back, let go, lost. */
#include "fake/fake_cm.h"

#include <errno.h>
#include <stdlib.h>

TAILQ_HEAD(fake_packets, fake_packet);

static struct fake_packets held = TAILQ_HEAD_INITIALIZER(held);
static bool holding[FAKE_MESSAGES];
static int answers[FAKE_MESSAGES];

static void (*const arrive[FAKE_MESSAGES])(const struct fake_packet *packet) = {
	[FAKE_ADDR] = fake_addr_arrive,
	[FAKE_ROUTE] = fake_route_arrive,
	[FAKE_REQ] = fake_req_arrive,
	[FAKE_REP] = fake_rep_arrive,
	[FAKE_RTU] = fake_rtu_arrive,
	[FAKE_REJ] = fake_rej_arrive,
	[FAKE_DREQ] = fake_dreq_arrive,
	[FAKE_DREP] = fake_drep_arrive,
	[FAKE_SIDR_REQ] = fake_sidr_req_arrive,
	[FAKE_SIDR_REP] = fake_sidr_rep_arrive,
	[FAKE_JOIN] = fake_join_arrive,
	[FAKE_SERVICE] = fake_service_arrive,
};

void fake_wire_send(const struct fake_packet *packet)
{
	struct fake_packet *copy;

	if (!holding[packet->kind] && !packet->silent) {
		arrive[packet->kind](packet);
		return;
	}
	copy = fake_alloc(sizeof(*copy));
	*copy = *packet;
	TAILQ_INSERT_TAIL(&held, copy, link);
}

/* Hands what is held now, and not what comes of it, to the function. */
static unsigned flush(
	enum fake_message kind, bool silent_too, void (*act)(const struct fake_packet *packet))
{
	struct fake_packets chosen = TAILQ_HEAD_INITIALIZER(chosen);
	struct fake_packet *packet, *next;
	unsigned n = 0;

	TAILQ_FOREACH_SAFE (packet, &held, link, next) {
		if (packet->kind != kind || (packet->silent && !silent_too))
			continue;
		TAILQ_REMOVE(&held, packet, link);
		TAILQ_INSERT_TAIL(&chosen, packet, link);
	}
	while ((packet = TAILQ_FIRST(&chosen))) {
		TAILQ_REMOVE(&chosen, packet, link);
		act(packet);
		free(packet);
		n++;
	}
	return n;
}

void fake_hold(enum fake_message kind)
{
	FAKE_GUARD();
	holding[kind] = true;
}

void fake_keep(enum fake_message kind)
{
	FAKE_GUARD();
	holding[kind] = false;
}

unsigned fake_release(enum fake_message kind)
{
	FAKE_GUARD();
	holding[kind] = false;
	return flush(kind, false, arrive[kind]);
}

/* What the kernel asks, and times out, by itself. */
static bool is_query(enum fake_message kind)
{
	return kind == FAKE_ADDR || kind == FAKE_ROUTE || kind == FAKE_JOIN || kind == FAKE_SERVICE;
}

static void lose(const struct fake_packet *packet)
{
	struct fake_packet late = *packet;

	late.status = -ETIMEDOUT;
	if (is_query(packet->kind))
		arrive[packet->kind](&late);
	else
		fake_conn_time_out(packet);
}

unsigned fake_time_out(enum fake_message kind)
{
	FAKE_GUARD();

	return flush(kind, true, lose);
}

unsigned fake_held(enum fake_message kind)
{
	struct fake_packet *packet;
	unsigned n = 0;

	FAKE_GUARD();
	TAILQ_FOREACH (packet, &held, link)
		n += packet->kind == kind;
	return n;
}

void fake_answer(enum fake_message kind, int status)
{
	FAKE_GUARD();
	answers[kind] = status;
}

int fake_wire_status(enum fake_message kind)
{
	int status = answers[kind];

	answers[kind] = 0;
	return status;
}

static void forget(const struct fake_packet *packet)
{
}

void fake_wire_reset(void)
{
	int kind;

	for (kind = 0; kind < FAKE_MESSAGES; kind++) {
		flush((enum fake_message)kind, true, forget);
		holding[kind] = false;
		answers[kind] = 0;
	}
}
