#include "ev/core/part.h"

#include <stdlib.h>

#include "ev/core/base.h"

void evr_part_add(
	struct evr_part *part, struct evrdma_base *base, const struct evr_part_class *cls)
{
	part->cls = cls;
	part->base = base;
	TAILQ_INSERT_TAIL(&base->parts, part, link);
	if (cls->tell)
		base->teller = part;
}

struct evr_part *evr_part_find(const struct evrdma_base *base, const struct evr_part_class *cls)
{
	struct evr_part *part = TAILQ_FIRST(&base->parts);

	while (part->cls != cls)
		part = TAILQ_NEXT(part, link);
	return part;
}

bool evr_parts_have_more(const struct evrdma_base *base)
{
	return base->teller && base->teller->cls->has_more(base->teller);
}

void evr_parts_tell(struct evrdma_base *base)
{
	if (base->teller)
		base->teller->cls->tell(base->teller);
}

bool evr_parts_have_guest(const struct evrdma_base *base, bool (*is)(struct evr_obj *obj))
{
	const struct evr_part *part;

	TAILQ_FOREACH (part, &base->parts, link)
		if (part->cls->any_guest && part->cls->any_guest(part, is))
			return true;
	return false;
}

bool evr_parts_shed(struct evrdma_base *base, uint64_t deadline_us)
{
	struct evr_part *part;

	TAILQ_FOREACH (part, &base->parts, link)
		if (part->cls->shed && part->cls->shed(part, deadline_us))
			return true;
	return false;
}

void evr_parts_device_goes(struct evrdma_base *base, const struct ibv_context *verbs)
{
	struct evr_part *part;

	TAILQ_FOREACH (part, &base->parts, link)
		if (part->cls->device_goes)
			part->cls->device_goes(part, verbs);
}

void evr_parts_dump(const struct evrdma_base *base, const struct evr_dump *to)
{
	const struct evr_part *part;

	TAILQ_FOREACH (part, &base->parts, link)
		if (part->cls->dump)
			part->cls->dump(part, to);
}

void evr_parts_stop(struct evrdma_base *base)
{
	struct evr_part *part;

	base->teller = NULL;
	while ((part = TAILQ_LAST(&base->parts, evr_part_list))) {
		part->cls->stop(part);
		TAILQ_REMOVE(&base->parts, part, link);
		free(part);
	}
}
