/* What an rsocket is made of: how large its queues and buffers are. */
#ifndef EVR_RS_SETTINGS_H
#define EVR_RS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct evr_rs_options {
	uint16_t sq_size, rq_size;
	uint32_t inline_size;
	uint32_t iomap_size;
	uint32_t rx_size, tx_size; /* bytes */
	bool reuseaddr, v6only, oobinline, broadcast, nodelay;
	bool keepalive;
	int keepidle_s, keepintvl_s, keepcnt, maxseg;
	bool linger;
	int linger_s;
	int64_t recv_limit_us, send_limit_us; /* 0: none; less: it does not wait */
	uint8_t tos;
};

enum {
	/* A peer is shown a half at a time: room for what it sends at first in each. */
	EVR_RS_RX_SIZE_MIN = 4096,
	EVR_RS_TX_SIZE_MIN = 4096,
	EVR_RS_INLINE_MAX = 0xfffe,
};

/* Those of /etc/rdma/rsocket, or our own; read once. */
const struct evr_rs_options *evr_rs_defaults(void);
/* How long a wait does without sleeping, at first. */
uint32_t evr_rs_polling_time_us(void);

/* Within what the protocol takes. */
uint16_t evr_rs_queue_size(int64_t wanted);
uint32_t evr_rs_tx_size(int64_t wanted);
uint32_t evr_rs_rx_size(int64_t wanted);
uint32_t evr_rs_iomap_size(int64_t wanted);

#endif
