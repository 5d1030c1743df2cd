#include "proto/sendq.h"

enum { SILENT_PART = 4 };

void evr_sendq_init(struct evr_sendq *queue, struct evr_sendq_work *works, uint16_t size,
	uint32_t ring, bool all)
{
	*queue = (struct evr_sendq){
		.works = works,
		.size = size,
		.data_free = (uint16_t)(size - EVR_SENDQ_CONTROL),
		.control_free = EVR_SENDQ_CONTROL,
		.silent_max = (uint16_t)(all ? 0 : (size - EVR_SENDQ_CONTROL) / SILENT_PART),
		.silent_ring_max = ring / SILENT_PART,
	};
}

bool evr_sendq_has(const struct evr_sendq *queue, bool control, uint8_t places)
{
	return (control ? queue->control_free : queue->data_free) >= places;
}

static uint16_t *places_of(struct evr_sendq *queue, const struct evr_sendq_work *work)
{
	return work->control ? &queue->control_free : &queue->data_free;
}

static bool wants_signal(const struct evr_sendq *queue, const struct evr_sendq_work *work)
{
	return work->control || work->mapping || queue->silent + work->places > queue->silent_max ||
	       queue->silent_ring + work->ring > queue->silent_ring_max;
}

static void count_silence(struct evr_sendq *queue, const struct evr_sendq_work *work, bool signaled)
{
	queue->silent = (uint16_t)(signaled ? 0 : queue->silent + work->places);
	queue->silent_ring = signaled ? 0 : queue->silent_ring + work->ring;
}

uint32_t evr_sendq_push(struct evr_sendq *queue, const struct evr_sendq_work *work, bool *signaled)
{
	uint32_t at = (uint32_t)queue->oldest + queue->count;

	*signaled = *signaled || wants_signal(queue, work);
	count_silence(queue, work, *signaled);
	queue->works[at < queue->size ? at : at - queue->size] = *work;
	queue->count++;
	*places_of(queue, work) -= work->places;
	queue->control_count += work->control ? work->places : 0;
	queue->handed_bytes += work->bytes;
	queue->mapping |= work->mapping;
	return queue->next++;
}

static void pop(struct evr_sendq *queue)
{
	const struct evr_sendq_work *work = &queue->works[queue->oldest];

	*places_of(queue, work) += work->places;
	queue->done_bytes += work->bytes;
	queue->done_ring += work->ring;
	if (work->mapping)
		queue->mapping = false;
	queue->oldest = (uint16_t)(queue->oldest + 1 == queue->size ? 0 : queue->oldest + 1);
	queue->count--;
}

void evr_sendq_complete(struct evr_sendq *queue, uint32_t number)
{
	uint32_t oldest = queue->next - queue->count, after = number - oldest;

	if (after >= queue->count)
		return;
	while (queue->next - queue->count != number + 1)
		pop(queue);
}

uint32_t evr_sendq_reap_ring(struct evr_sendq *queue)
{
	uint32_t done = queue->done_ring;

	queue->done_ring = 0;
	return done;
}
