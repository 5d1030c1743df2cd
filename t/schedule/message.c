/* Messages that can be told from each other, and from anything else. */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t magic = 0x5eed0fe5;

struct header {
	uint32_t magic, sender, serial, len;
};

static unsigned char byte_at(unsigned sender, unsigned serial, size_t i)
{
	return (unsigned char)(sender * 37 + serial * 11 + i * 3 + 1);
}

void message_fill(void *to, size_t len, unsigned sender, unsigned serial)
{
	const struct header header = { magic, sender, serial, (uint32_t)len };
	unsigned char *bytes = to;
	size_t i;

	memcpy(to, &header, sizeof(header));
	for (i = sizeof(header); i < len; i++)
		bytes[i] = byte_at(sender, serial, i);
}

bool message_check(const void *from, size_t len, unsigned *sender, unsigned *serial)
{
	const unsigned char *bytes = from;
	struct header header;
	size_t i;

	if (len < sizeof(header))
		return false;
	memcpy(&header, from, sizeof(header));
	if (header.magic != magic || header.len != len)
		return false;
	for (i = sizeof(header); i < len; i++)
		if (bytes[i] != byte_at(header.sender, header.serial, i))
			return false;
	*sender = header.sender;
	*serial = header.serial;
	return true;
}

size_t message_len(struct schedule *s, size_t most)
{
	return MESSAGE_HEADER + random_below(&s->random, (unsigned)(most - MESSAGE_HEADER + 1));
}

/* --- tickets --------------------------------------------------------------------------------- */

struct ticket *ticket_new(struct object *object, struct tickets *tickets)
{
	struct ticket *ticket = calloc(1, sizeof(*ticket));

	MUST(ticket, "out of memory");
	ticket->object = object;
	TAILQ_INSERT_TAIL(tickets, ticket, link);
	return ticket;
}

void ticket_drop(struct ticket *ticket, struct tickets *tickets)
{
	TAILQ_REMOVE(tickets, ticket, link);
	free(ticket);
}

void ticket_over(struct ticket *ticket, struct tickets *tickets)
{
	struct schedule *s = ticket->object->schedule;
	const struct ticket *before;

	MUST(!ticket->over, "work %u is over for the second time", ticket->serial);
	TAILQ_FOREACH (before, tickets, link) {
		if (before == ticket)
			break;
		MUST(before->is_reply || ticket->is_reply,
			"work %u is over before work %u, which was first", ticket->serial,
			before->serial);
	}
	ticket->over = true;
	TAILQ_REMOVE(tickets, ticket, link);
	TAILQ_INSERT_TAIL(&s->spent, ticket, link);
}
