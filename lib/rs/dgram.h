/*
 * Datagrams. An rsocket for them has a socket of UDP: for its name, for the messages by which two
 * find each other's queue pairs, and for all that does not go by one: to a host that has told none,
 * what is longer than the path takes, and where there is no device. For each address of this
 * machine that it sends from it has a UD queue pair.
 *
 * All of it is guarded by the rsocket's lock. What comes from others is only believed as far as
 * one can believe UDP: it says where messages for its sender go, and no more. By a queue pair, who
 * it is from is what the device says, where that can tell.
 */
#ifndef EVR_RS_DGRAM_H
#define EVR_RS_DGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "rs/addr.h"
#include "rs/iov.h"
#include "rs/rs.h"
#include "util/list.h"

enum {
	EVR_RS_DESTS_MAX = 1024, /* whom it knows at most, of each rank */
	EVR_RS_DEST_LISTS = 256,
	EVR_RS_AGAIN_US = 1000000, /* what failed is tried again after that */
};

/* An address handle: of who is reached by it, and of each message that is on its way. */
struct evr_rs_ah {
	struct ibv_ah *ah;
	unsigned int refs;
};

/* A message that came, and was not taken yet. */
struct evr_rs_packet {
	TAILQ_ENTRY(evr_rs_packet) link;
	struct evr_rs_ud *ud; /* whose receive it is; NULL: it has memory of its own */
	union evr_rs_addr from;
	const uint8_t *data;
	size_t len;
};

/* A queue pair, for one address of this machine; or that there is none. */
struct evr_rs_ud {
	TAILQ_ENTRY(evr_rs_ud) link;
	struct evr_rs *rs;
	union evr_rs_addr addr; /* without a port */
	uint64_t again_us;	/* when there may be one, if id is NULL */
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_mr *mr;
	uint8_t *memory; /* the receives, then what is sent, then excess */
	struct evr_rs_packet *packets;
	struct evr_rs_ah **sent; /* by what each place is sent */
	uint32_t *places;	 /* those that are free */
	uint32_t rq_size, sq_size, free;
	uint32_t mtu, inline_max;
	bool recv_armed, send_armed, broken;
	bool is_roce; /* what is received tells the address that it came from */
	unsigned int recv_unacked, send_unacked;
};

/*
 * How much is known of another one, who is forgotten only for others of the same rank: whoever
 * sends us messages from many addresses that are not its own takes nobody's place to whom we sent,
 * and where we answer all of them, nobody's who has shown that it hears us.
 */
enum evr_rs_rank {
	EVR_RS_HEARD,	/* by UDP, which may be forged */
	EVR_RS_SENT_TO, /* by a call */
	EVR_RS_PROVEN,	/* that too, and it has sent to our queue pair, as only UDP told it */
	EVR_RS_RANKS,
};

/* Another one, who was sent to or heard of. */
struct evr_rs_dest {
	TAILQ_ENTRY(evr_rs_dest) used; /* the one that was used last is first */
	TAILQ_ENTRY(evr_rs_dest) link;
	union evr_rs_addr addr;
	enum evr_rs_rank rank;
	struct evr_rs_ud *ud;  /* of the address that it is sent to from; NULL: not known */
	struct rdma_cm_id *id; /* that looks for the path, while it does */
	struct evr_rs_ah *ah;  /* NULL: by UDP */
	uint32_t qpn;	       /* that it told, or 0 */
	uint32_t mtu;	       /* of the path */
	uint64_t heard_us;     /* when it last showed that it is there */
	uint64_t asked_us;     /* when it was last sent to by UDP */
	uint64_t again_us;     /* when to look for the path again */
};

TAILQ_HEAD(evr_rs_dests, evr_rs_dest);

struct evr_rs_dgram {
	int udp_fd;
	int epoll_fd;  /* all that there may be news at */
	uint16_t port; /* 0: it has no address yet */
	bool udp_full; /* the socket of UDP takes no more */
	bool no_recv, no_send;
	int error;	   /* of UDP, which is told once */
	uint64_t look_us;  /* when to look at more than the queues, at the latest */
	uint64_t quiet_us; /* until when to look whenever they are empty */
	bool is_connected;
	union evr_rs_addr peer;
	TAILQ_HEAD(, evr_rs_ud) uds;
	struct {
		struct evr_rs_dests dests;
		unsigned int num;
	} known[EVR_RS_RANKS];
	struct evr_rs_dests by_addr[EVR_RS_DEST_LISTS];
	unsigned int num_resolving;
	uint64_t ways_us; /* when to look for ways again */
	TAILQ_HEAD(, evr_rs_packet) received;
	unsigned int num_by_udp; /* of them */
};

/* dgram: its parts. Opening: it has an address from then on. */
int evr_rs_dgram_new(struct evr_rs *rs);
int evr_rs_dgram_open(struct evr_rs *rs);
void evr_rs_dgram_close_fds(struct evr_rs_dgram *dgram);
void evr_rs_dgram_end(struct evr_rs *rs);
void evr_rs_dgram_fini(struct evr_rs *rs);
/* What there is news at; watching it twice is no error. */
int evr_rs_dgram_watch(struct evr_rs *rs, int fd, void *of);
void evr_rs_dgram_unwatch(struct evr_rs *rs, int fd);

/* What there is of it for the calls of all rsockets. */
int evr_rs_dgram_bind(struct evr_rs *rs, const struct sockaddr *addr, socklen_t len);
int evr_rs_dgram_connect(struct evr_rs *rs, const struct sockaddr *addr, socklen_t len);
int evr_rs_dgram_shutdown(struct evr_rs *rs, int how);
int evr_rs_dgram_name(struct evr_rs *rs, struct sockaddr *addr, socklen_t *len, bool peer);
int evr_rs_dgram_events(const struct evr_rs *rs);
/* Everything that was sent has left. */
bool evr_rs_dgram_has_left(struct evr_rs *rs);
/* 0, or the error of UDP, once. */
int evr_rs_dgram_take_error(struct evr_rs *rs);

/* dgram_look: whether there was anything new: what the queues show, and now and then the rest. */
bool evr_rs_dgram_progress(struct evr_rs *rs);
bool evr_rs_dgram_look(struct evr_rs *rs);
void evr_rs_dgram_arm(struct evr_rs *rs);
/* For a while news may be where only a call sees it. */
void evr_rs_dgram_expect(struct evr_rs *rs);
void evr_rs_dgram_event(struct evr_rs *rs, const struct evr_rs_event *event);

/* dgram_ud: the one of an address, which may have no queue pair. NULL: no memory. */
struct evr_rs_ud *evr_rs_ud_get(struct evr_rs *rs, const union evr_rs_addr *addr);
void evr_rs_ud_stop(struct evr_rs_ud *ud);
void evr_rs_ud_free(struct evr_rs_ud *ud);
/* Where len bytes with their header can be put, and sending them. NULL: there is no place. */
uint8_t *evr_rs_ud_place(struct evr_rs_ud *ud);
int evr_rs_ud_send(struct evr_rs_ud *ud, size_t len, struct evr_rs_ah *ah, uint32_t qpn);
/* Whether anything came, or left. */
bool evr_rs_ud_poll_recv(struct evr_rs_ud *ud);
bool evr_rs_ud_poll_send(struct evr_rs_ud *ud);
/*
 * What has left matters only while there is no place, and at the end. Who arms the queue for it
 * looks once more: what came before raises no event.
 */
bool evr_rs_ud_waits_for_sends(const struct evr_rs_ud *ud);
void evr_rs_ud_arm(struct evr_rs_ud *ud);
/* Whether there was one: its queue is not armed then, which is news for who armed it before. */
bool evr_rs_ud_take_event(struct evr_rs_ud *ud);
int evr_rs_ud_post(struct evr_rs_ud *ud, struct evr_rs_packet *packet);

/* dgram_packet: what came, with what the device says of it; false: it is none, or is not for it. */
bool evr_rs_packet_read(const struct evr_rs_ud *ud, struct evr_rs_packet *packet,
	const uint8_t *bytes, const struct ibv_wc *wc);

/* dgram_ah: by a path that is resolved. */
struct evr_rs_ah *evr_rs_ah_new(const struct rdma_cm_id *id, struct ibv_pd *pd);
void evr_rs_ah_put(struct evr_rs_ah *ah);

/* dgram_dest: finding, and making: NULL: no memory. */
struct evr_rs_dest *evr_rs_dest_find(struct evr_rs *rs, const union evr_rs_addr *addr);
struct evr_rs_dest *evr_rs_dest_get(struct evr_rs *rs, const union evr_rs_addr *addr);
/* It is about to be used, and of this rank at least: what it is sent to from. */
void evr_rs_dest_use(struct evr_rs *rs, struct evr_rs_dest *dest, enum evr_rs_rank rank);
/* A message from its queue pair has come to ours. */
void evr_rs_dest_heard(struct evr_rs *rs, struct evr_rs_dest *dest);
/* It has told its queue pair. */
void evr_rs_dest_told(struct evr_rs *rs, struct evr_rs_dest *dest, uint32_t qpn);
void evr_rs_dest_event(
	struct evr_rs *rs, struct evr_rs_dest *dest, const struct evr_rs_event *event);
/* A queue pair has ended. */
void evr_rs_dests_leave(struct evr_rs *rs, const struct evr_rs_ud *ud);
void evr_rs_dests_end(struct evr_rs *rs);

/* dgram_udp: a socket of UDP, or -errno. */
int evr_rs_udp_open(int domain, int flags);
/* By it. iov may be NULL. How many bytes of it went, or -errno. */
ssize_t evr_rs_udp_send(
	struct evr_rs *rs, struct evr_rs_dest *dest, enum evr_dgram_op op, struct evr_rs_iov *iov);
bool evr_rs_udp_read(struct evr_rs *rs);
/* It takes more again, or does not. */
void evr_rs_udp_set_full(struct evr_rs *rs, bool full);

/* dgram_send, dgram_recv: the calls. */
ssize_t evr_rs_dgram_send(struct evr_rs *rs, struct evr_rs_iov *from, int flags,
	const struct sockaddr *to, socklen_t to_len);
/* Where to tell who a message is from, and whether it was longer than there was room for. */
struct evr_rs_sender {
	struct sockaddr *addr;
	socklen_t room, len;
	int flags;
};
ssize_t evr_rs_dgram_recv(
	struct evr_rs *rs, struct evr_rs_iov *to, int flags, struct evr_rs_sender *sender);
/* Whether a message from there is for it: of its domain, and of its peer if it has one. */
bool evr_rs_dgram_takes(const struct evr_rs *rs, const union evr_rs_addr *from);
void evr_rs_packet_drop(struct evr_rs *rs, struct evr_rs_packet *packet);

/* dgram_option */
int evr_rs_dgram_set(struct evr_rs *rs, int level, int name, const void *value, socklen_t len);
int evr_rs_dgram_get(struct evr_rs *rs, int level, int name, void *value, socklen_t *len);

#endif
