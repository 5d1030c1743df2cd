/* What carries one stream: its queue pair, its completion queue, its memory. */
#ifndef EVR_RS_TRANSPORT_H
#define EVR_RS_TRANSPORT_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/stream.h"
#include "rs/settings.h"

/* Whatever was asked for. */
enum { EVR_RS_POSTED_INLINE = 512 };

struct evr_rs_transport {
	struct rdma_cm_id *id; /* whose the queue pair is; NULL: there is none */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *shown; /* that the peer writes to */
	struct ibv_mr *own;
	uint8_t *rx;	  /* the receive ring, and behind it the target with its table */
	uint8_t *tx;	  /* the send ring */
	uint8_t *control; /* behind it: of the stream, */
	uint8_t *inbox;	  /* and iWARP's messages */
	size_t rx_len, tx_len;
	struct evr_sendq_work *works;
	struct evr_iomap_entry *iomap;
	struct evr_iomap_slot *slots;
	bool iwarp;
	bool broken; /* something could not be posted: what is missing will not complete */
	bool lost;   /* what completes can be neither told nor taken any more */
	bool gone;   /* the peer has no queue pair any more: the same */
	bool armed;  /* an event of the completion channel is to come, or there */
	unsigned int unacked;
};

/*
 * Makes the queue pair of an id that has a device, with all receives posted, and prepares the
 * stream on it. 0 or -errno; then nothing is left of it.
 */
int evr_rs_transport_init(struct evr_rs_transport *transport, struct rdma_cm_id *id,
	const struct evr_rs_options *options, struct evr_stream *stream);
/*
 * What a peer waits that meets an empty receive queue: the CM leaves it at the longest there is. A
 * device that does not take it now goes on with that.
 */
void evr_rs_transport_connected(struct evr_rs_transport *transport);
/* Places for mappings that the peer can be told of. */
int evr_rs_transport_map(struct evr_rs_transport *transport, struct evr_stream *stream);
/* What the device must let go of; what was received stays. */
void evr_rs_transport_stop(struct evr_rs_transport *transport);
void evr_rs_transport_fini(struct evr_rs_transport *transport);

/* Receives that were used are posted again: those that were gathered, at once. 0 or -errno. */
enum { EVR_RS_BATCH = 16 };
struct evr_rs_receives {
	struct ibv_recv_wr wrs[EVR_RS_BATCH];
	struct ibv_sge sges[EVR_RS_BATCH];
	int num;
};
void evr_rs_receives_add(
	struct evr_rs_receives *receives, struct evr_rs_transport *transport, uint64_t wr_id);
int evr_rs_receives_post(struct evr_rs_receives *receives, struct evr_rs_transport *transport);

/* Posts a work of the stream; own: where bytes are that are neither in the ring nor in the work. */
int evr_rs_transport_post(struct evr_rs_transport *transport, const struct evr_stream_work *work,
	const void *own, uint32_t lkey);

/* What a verb returned that says an errno: 0 or -errno. */
int evr_rs_verbs_result(int ret);

/* What an arrival on iWARP says. */
const uint8_t *evr_rs_transport_message(const struct evr_rs_transport *transport, uint64_t wr_id);

#endif
