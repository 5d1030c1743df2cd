/*
 * A peer of rsockets that is none: plain verbs and CM, which say whatever they are told to. One
 * connection at a time, as the side that asks or as the side that is asked.
 */
#ifndef RS_HOSTILE_H
#define RS_HOSTILE_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/conndata.h"
#include "proto/imm.h"

enum { HOSTILE_CREDITS = 16, HOSTILE_RING = 8192, HOSTILE_MEMORY = 32768, HOSTILE_DATA_MAX = 56 };

struct hostile {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct evr_conndata theirs;
	uint8_t *memory; /* what it sends from, and behind that its target and its ring */
	bool iwarp;
	unsigned int received, sent, posted;
};

/* Where all of it happens; chosen before the suite runs. */
struct hostile_place {
	const char *ip;
	/* What waits for a peer is given up, where that takes no time of its own; or NULL. */
	unsigned int (*give_up)(void);
	/* A turn of the loop that the victim is on; NULL where there is none. */
	void (*turn)(void);
};
extern struct hostile_place hostile_place;

/* While the victim goes on. */
void hostile_rest(unsigned int ms);

void hostile_open(struct hostile *hostile);
/* Whatever there is of it, without a word. */
void hostile_close(struct hostile *hostile);

/* What it says of itself when it tells the truth. */
struct evr_conndata hostile_conndata(const struct hostile *hostile);
size_t hostile_encode(const struct hostile *hostile, uint8_t data[HOSTILE_DATA_MAX]);

/* Asks: the address and the route, then the request. */
void hostile_resolve(struct hostile *hostile, uint16_t port);
void hostile_request(struct hostile *hostile, const void *data, size_t len);
/* Is asked, on a port of its own; a request comes before it is answered. */
uint16_t hostile_listen(struct hostile *hostile);
void hostile_take_request(struct hostile *hostile);
void hostile_accept(struct hostile *hostile, const void *data, size_t len);

/* The next event, whose private data is kept; it fails when none comes. */
enum rdma_cm_event_type hostile_await(struct hostile *hostile);
/* Until the event comes, whatever else does. */
void hostile_await_type(struct hostile *hostile, enum rdma_cm_event_type type);
/* Until it has received so many messages in all. */
void hostile_await_messages(struct hostile *hostile, unsigned int num);
/* Until what it posted has ended, well or not. */
void hostile_await_sent(struct hostile *hostile);

/* Posts. What cannot be posted, since the connection is gone already, is no failure. */
struct hostile_write {
	uint64_t addr;
	uint32_t rkey, len;
	bool announced;
	uint32_t imm;
};
void hostile_say(struct hostile *hostile, uint32_t imm);
void hostile_write(struct hostile *hostile, const struct hostile_write *write);
void hostile_read(struct hostile *hostile, uint64_t addr, uint32_t rkey, uint32_t len);
void hostile_send(struct hostile *hostile, uint32_t len);

#endif
