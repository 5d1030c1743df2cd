/*
 * What 11-kv-server.c and 12-kv-client.c have in common: where a value is, and what goes over the
 * wire. All numbers are big endian, in the table too, for it is read from afar.
 *
 * Keys are numbers. The remainder by KV_CLASSES says how much room a key's value has, 64 bytes to
 * 64 KiB, so that whoever knows the key knows where its slot is and how much to read.
 */
#ifndef KEY_VALUE_H
#define KEY_VALUE_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	KV_CLASSES = 11,
	KV_PLACES = 8, /* keys of each class */
	KV_KEYS = KV_CLASSES * KV_PLACES,
	KV_LEAST_ROOM = 64,
	KV_MOST_ROOM = KV_LEAST_ROOM << (KV_CLASSES - 1),
	KV_PUTS = 8 /* of one connection that wait for their answer: so many buffers it has */
};

/* In front of each value. A reader for whom the sum is wrong has met a put halfway. */
struct kv_head {
	uint64_t version; /* counts the puts */
	uint64_t sum;     /* of the version, the length and the value */
	uint32_t len;
	uint32_t key;
};

/* A put by RDMA, with len bytes of value behind it. By TCP a put, or without a value a get. */
struct kv_request {
	uint32_t tag; /* the client's; comes back with the answer */
	uint32_t key;
	uint32_t len;
};

/* The answer has the kv_head behind it, and by TCP, to a get, the value behind that. */
struct kv_answer {
	uint32_t tag;
	uint32_t len; /* of what is behind it */
};

static inline size_t kv_room(uint32_t key)
{
	return (size_t)KV_LEAST_ROOM << key % KV_CLASSES;
}

static inline size_t kv_slot_bytes(uint32_t key)
{
	return sizeof(struct kv_head) + kv_room(key);
}

/* The slots of a class are side by side, behind those of the smaller ones. */
static inline size_t kv_offset(uint32_t key)
{
	size_t offset = key / KV_CLASSES * kv_slot_bytes(key);
	uint32_t class;

	for (class = 0; class < key % KV_CLASSES; class++)
		offset += KV_PLACES * kv_slot_bytes(class);
	return offset;
}

/* FNV-1a, of what the head says and the value behind it, whose length was looked at. */
static inline uint64_t kv_sum(const struct kv_head *head)
{
	const unsigned char *value = (const unsigned char *)(head + 1);
	uint32_t i, len = be32toh(head->len);
	uint64_t sum = 0xcbf29ce484222325u ^ be64toh(head->version) ^ (uint64_t)len << 32;

	for (i = 0; i < len; i++)
		sum = (sum ^ value[i]) * 0x100000001b3u;
	return sum;
}

/* Whether all that was read of a key's slot is of one put. */
static inline int kv_is_whole(const struct kv_head *head, uint32_t key)
{
	return be32toh(head->len) <= kv_room(key) && be32toh(head->key) == key &&
		be64toh(head->sum) == kv_sum(head);
}

#endif
