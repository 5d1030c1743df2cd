#include "proto/target.h"

#include <errno.h>
#include <string.h>

static uint8_t other(uint8_t entry)
{
	return entry ^ 1;
}

static void clear(volatile struct evr_sge *entry)
{
	entry->addr = 0;
	entry->rkey = 0;
	entry->len = 0;
}

void evr_target_init(struct evr_target *target, volatile struct evr_sge *memory)
{
	*target = (struct evr_target){ .memory = memory, .expected = 1 };
	clear(&memory[0]);
	clear(&memory[1]);
}

void evr_target_start(struct evr_target *target, const struct evr_sge *first)
{
	target->entry[0] = *first;
	target->rkey = first->rkey;
	target->len = first->len;
}

/* Once: the peer may write it again while we look. */
static struct evr_sge read_entry(const volatile struct evr_sge *entry)
{
	return (struct evr_sge){ .addr = entry->addr, .rkey = entry->rkey, .len = entry->len };
}

static int take_entry(struct evr_target *target, struct evr_sge sge)
{
	if (target->entry[target->expected].len || evr_sge_check(&sge))
		return -EBADMSG;
	target->entry[target->expected] = sge;
	clear(&target->memory[target->expected]);
	target->expected = other(target->expected);
	return 1;
}

/* Of the whole, the first bytes that were written alone, or none. */
static bool is_part(uint32_t len, uint32_t whole)
{
	uint8_t some[sizeof(len)], all[sizeof(whole)];
	size_t i = 0;

	memcpy(some, &len, sizeof(some));
	memcpy(all, &whole, sizeof(all));
	while (i < sizeof(some) && some[i] == all[i])
		i++;
	while (i < sizeof(some) && !some[i])
		i++;
	return len != whole && i == sizeof(some);
}

/* A key can be 0 only if the peer's first one was. */
static bool is_whole(const struct evr_target *target, const struct evr_sge *sge)
{
	return sge->addr && !is_part(sge->len, target->len) && (sge->rkey || !target->rkey);
}

int evr_target_announce(struct evr_target *target, uint32_t written)
{
	struct evr_sge sge;

	if (!written)
		return 0;
	if (written != EVR_SGE_LEN && written != EVR_WRITTEN_UNKNOWN)
		return -EBADMSG;
	sge = read_entry(&target->memory[target->expected]);
	if (written == EVR_WRITTEN_UNKNOWN && !is_whole(target, &sge))
		return 0;
	return take_entry(target, sge);
}

uint32_t evr_target_left(const struct evr_target *target)
{
	return target->entry[target->current].len;
}

uint64_t evr_target_window(const struct evr_target *target)
{
	return (uint64_t)target->entry[0].len + target->entry[1].len;
}

struct evr_sge evr_target_take(struct evr_target *target, uint32_t len)
{
	struct evr_sge *entry = &target->entry[target->current];
	struct evr_sge taken = { .addr = entry->addr, .rkey = entry->rkey, .len = len };

	entry->addr += len;
	entry->len -= len;
	if (!entry->len)
		target->current = other(target->current);
	return taken;
}
