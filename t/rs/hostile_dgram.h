/*
 * A peer of datagram rsockets that is none: a socket of UDP and a queue pair for datagrams, which
 * say whatever they are told to.
 */
#ifndef RS_HOSTILE_DGRAM_H
#define RS_HOSTILE_DGRAM_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

enum { HOSTILE_DGRAM_MOST = 4096 };

struct hostile_dgram {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint8_t *memory;
	size_t mtu; /* the most that its queue pair takes */
	int udp;
	struct sockaddr_in own, victim;
	uint32_t qpn; /* the victim's */
};

/* Where all of it happens; chosen before the suite runs. */
extern const char *hostile_dgram_ip;

struct sockaddr_in hostile_dgram_addr(const char *ip, uint16_t port);

void hostile_dgram_open(struct hostile_dgram *hostile, const struct sockaddr_in *victim);
void hostile_dgram_close(struct hostile_dgram *hostile);

/* Data by UDP that tells its queue pair, as an honest one does it. */
void hostile_dgram_ask(struct hostile_dgram *hostile);
/* The answer, which tells the victim's. */
void hostile_dgram_take_answer(struct hostile_dgram *hostile);

void hostile_dgram_say_by_udp(struct hostile_dgram *hostile, const void *bytes, size_t len);
/* From another address of this machine, and a port that is free. */
void hostile_dgram_say_from(
	struct hostile_dgram *hostile, const char *ip, const void *bytes, size_t len);
/* How the queue pair says it, apart from what. */
struct hostile_dgram_way {
	uint32_t qkey_change; /* bits that are wrong in it */
	bool imm, odd_route;
};
void hostile_dgram_say_by_qp(struct hostile_dgram *hostile, const struct hostile_dgram_way *way,
	const void *bytes, size_t len);

#endif
