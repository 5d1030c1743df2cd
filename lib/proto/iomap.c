#include "proto/iomap.h"

#include "proto/bytes.h"
#include "util/number.h"

#include <errno.h>
#include <string.h>

enum { SGE_AT = 8 };

void evr_iomap_put(const struct evr_iomap_entry *entry, uint8_t *bytes, bool big_endian)
{
	evr_put64(bytes, entry->offset, big_endian);
	evr_sge_put(&entry->sge, bytes + SGE_AT, big_endian);
}

static bool is_sound(const struct evr_iomap_entry *entry)
{
	if (!entry->sge.len)
		return true;
	return !evr_sge_check(&entry->sge) && entry->offset <= UINT64_MAX - entry->sge.len;
}

/* --- what the peer maps ---------------------------------------------------------------------- */

void evr_iomap_in_init(struct evr_iomap_in *in, volatile const struct evr_iomap_entry *memory,
	struct evr_iomap_entry *entries, uint32_t size)
{
	*in = (struct evr_iomap_in){ .memory = memory, .entries = entries, .size = size };
	if (size)
		memset(entries, 0, size * sizeof(*entries));
}

/* Once: the peer may write it again while we look. */
static struct evr_iomap_entry read_entry(volatile const struct evr_iomap_entry *entry)
{
	return (struct evr_iomap_entry){
		.offset = entry->offset,
		.sge = { .addr = entry->sge.addr, .rkey = entry->sge.rkey, .len = entry->sge.len },
	};
}

int evr_iomap_in_take(struct evr_iomap_in *in, uint32_t index)
{
	struct evr_iomap_entry entry;

	if (index >= in->size)
		return -ENXIO;
	entry = read_entry(&in->memory[index]);
	if (!is_sound(&entry))
		return -EBADMSG;
	in->entries[index] = entry;
	return 0;
}

static bool has(const struct evr_iomap_entry *entry, uint64_t offset)
{
	return offset >= entry->offset && offset - entry->offset < entry->sge.len;
}

int evr_iomap_in_find(
	const struct evr_iomap_in *in, uint64_t offset, uint32_t len, struct evr_sge *place)
{
	const struct evr_iomap_entry *entry = in->entries;
	uint32_t i;

	for (i = 0; i < in->size && !has(entry, offset); i++)
		entry++;
	if (i == in->size)
		return -ENXIO;
	*place = entry->sge;
	place->addr += offset - entry->offset;
	place->len = evr_smaller(len, entry->sge.len - (uint32_t)(offset - entry->offset));
	return 0;
}

/* --- what we map ----------------------------------------------------------------------------- */

void evr_iomap_out_init(struct evr_iomap_out *out, struct evr_iomap_slot *slots, uint32_t size)
{
	*out = (struct evr_iomap_out){ .slots = slots, .size = size };
	if (size)
		memset(slots, 0, size * sizeof(*slots));
}

int evr_iomap_out_map(struct evr_iomap_out *out, const struct evr_iomap_entry *entry)
{
	uint32_t i = 0;

	if (!is_sound(entry))
		return -EINVAL;
	while (i < out->size && out->slots[i].used)
		i++;
	if (i == out->size)
		return -ENOSPC;
	out->slots[i] =
		(struct evr_iomap_slot){ .entry = *entry, .turn = out->turn++, .used = true };
	out->waiting++;
	return (int)i;
}

int evr_iomap_out_unmap(struct evr_iomap_out *out, uint32_t index)
{
	if (index >= out->size || !out->slots[index].used)
		return -EINVAL;
	if (!out->slots[index].told)
		out->waiting--;
	out->slots[index].used = false;
	return 0;
}

static bool waits(const struct evr_iomap_slot *slot)
{
	return slot->used && !slot->told;
}

/* In order, though the turns come round. */
static bool is_older(const struct evr_iomap_slot *slot, const struct evr_iomap_slot *oldest)
{
	return !oldest || slot->turn - oldest->turn > UINT32_MAX / 2;
}

int evr_iomap_out_next(struct evr_iomap_out *out, struct evr_iomap_entry *entry)
{
	struct evr_iomap_slot *slot, *oldest = NULL;

	for (slot = out->slots; out->waiting && slot < out->slots + out->size; slot++)
		if (waits(slot) && is_older(slot, oldest))
			oldest = slot;
	if (!oldest)
		return -ENOENT;
	oldest->told = true;
	out->waiting--;
	*entry = oldest->entry;
	return (int)(oldest - out->slots);
}
