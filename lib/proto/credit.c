#include "proto/credit.h"

#include <errno.h>

#include "proto/sendq.h"
#include "util/number.h"

/* From one number on the circle of 16 bits forward to another. */
static uint16_t distance(uint16_t from, uint16_t to)
{
	return (uint16_t)(to - from);
}

static uint16_t unused(const struct evr_credit_out *out)
{
	return distance(out->sent, out->limit);
}

void evr_credit_out_init(struct evr_credit_out *out, uint16_t size)
{
	*out = (struct evr_credit_out){ .size = size, .limit = size };
}

/*
 * Of a peer that has no receives besides, those for control messages are among its credits. The
 * rest is more than half, after which it gives some back.
 */
uint16_t evr_credit_out_left(const struct evr_credit_out *out)
{
	uint32_t spared = evr_smaller(EVR_SENDQ_CONTROL, out->size / 4u);

	return unused(out) > spared ? (uint16_t)(unused(out) - spared) : 0;
}

void evr_credit_out_take(struct evr_credit_out *out)
{
	out->sent++;
}

int evr_credit_out_limit(struct evr_credit_out *out, uint32_t limit)
{
	uint16_t left = distance(out->sent, (uint16_t)limit);

	if (left > out->size || left < unused(out))
		return -ERANGE;
	if (left == unused(out))
		return 0;
	out->limit = (uint16_t)limit;
	return 1;
}

void evr_credit_in_init(struct evr_credit_in *in, uint16_t size)
{
	*in = (struct evr_credit_in){ .size = size, .limit = size };
}

int evr_credit_in_take(struct evr_credit_in *in)
{
	if (in->received == in->limit)
		return -ENOBUFS;
	in->received++;
	return 0;
}

bool evr_credit_in_is_due(const struct evr_credit_in *in)
{
	uint16_t used = (uint16_t)(in->size - distance(in->received, in->limit));

	return used && used >= in->size / 2;
}

uint16_t evr_credit_in_give(struct evr_credit_in *in)
{
	in->limit = (uint16_t)(in->received + in->size);
	return in->limit;
}
