/*
 * One stream of rsocket protocol version 1, as rdma-core's librdmacm speaks it, without any I/O: it
 * is told what happened, and says what to post.
 *
 * Whoever uses it has the queue pair, the registered memory and the completions, and does this:
 *
 *   evr_stream_init(), then describe() into the private data of the connection request or its
 *   reply, then start() with what the peer said there. From then on, what arrives may be given in;
 *   what is handed out must be posted, at the earliest when the connection is established.
 *
 *   Each immediate that arrives: evr_stream_receive(), and the receive is posted again.
 *   Each completion of the send queue: evr_stream_complete().
 *   After each of these, and after each call of the user's: evr_stream_next() until it says no, all
 *   that it hands out is posted, and evr_stream_status() tells what changed.
 *
 * What the functions hand out is posted at once, all of it, in the order in which it came: it is
 * accounted for as posted. Completions of receives are best given in before those of sends that
 * came after them; with one completion queue this is so by itself.
 *
 * Whatever the peer sends is checked against what it was given. What does not fit ends the stream
 * with an error, and changes nothing else; what had arrived before can still be read.
 *
 * Nothing here allocates, waits, or locks. One stream is used by one thread at a time.
 */
#ifndef EVR_PROTO_STREAM_H
#define EVR_PROTO_STREAM_H

#include "proto/conndata.h"
#include "proto/credit.h"
#include "proto/imm.h"
#include "proto/iomap.h"
#include "proto/rxring.h"
#include "proto/sendq.h"
#include "proto/target.h"
#include "proto/txring.h"
#include "proto/wrid.h"

enum {
	/* Transfers from the send ring begin with this, and double up to that. */
	EVR_STREAM_FIRST_TRANSFER = 2048,
	EVR_STREAM_LAST_TRANSFER = 65536,
	/* Less room than this (or half of a smaller ring) in the send ring is not writable. */
	EVR_STREAM_LOW_WATER = 2048,
	/* Control messages that bring nothing new, one after the other. */
	EVR_STREAM_IDLE_MAX = 4,
	/* What of our own memory may be needed for payloads that do not go inline. */
	EVR_STREAM_CONTROL_LEN = 24,
	EVR_STREAM_CONTROL_PLACES = EVR_SENDQ_CONTROL + 1,
	EVR_STREAM_CONTROL_BYTES = EVR_STREAM_CONTROL_LEN * EVR_STREAM_CONTROL_PLACES,
};

/* How long the memory is that the peer writes its entries to; aligned to 8. */
static inline uint32_t evr_stream_target_len(uint32_t iomap_size)
{
	return EVR_TARGET_ENTRIES * EVR_SGE_LEN + iomap_size * EVR_IOMAP_ENTRY_LEN;
}

struct evr_stream_config {
	bool iwarp; /* no immediates: messages, which take two places of the send queue with data */
	bool signal_all;  /* every work is signalled */
	uint16_t sq_size; /* EVR_SENDQ_MIN to EVR_SENDQ_MAX */
	uint16_t rq_size; /* likewise; post EVR_SENDQ_CONTROL receives more where there is room */
	uint32_t inline_max; /* on iWARP at least EVR_IMM_MESSAGE_LEN */
	uint32_t tx_size;    /* of the send ring; 0 where all is sent from other memory */
	uint32_t rx_size;    /* of the receive ring, from 2 bytes on; an odd byte is not used */
	uint64_t rx_addr;
	uint32_t rx_rkey;
	/* Registered for remote writes, evr_stream_target_len(iomap_size) bytes. */
	void *target;
	uint32_t target_rkey;
	uint32_t iomap_size;	       /* a size that evr_iomap_scale() keeps, or 0 */
	struct evr_iomap_entry *iomap; /* iomap_size of them */
	struct evr_sendq_work *works;  /* sq_size of them */
};

/* What a work is for. */
enum evr_stream_kind {
	EVR_STREAM_DATA,
	EVR_STREAM_DIRECT, /* a write into a mapping */
	EVR_STREAM_SGL,	   /* an entry for the peer's target, and credits */
	EVR_STREAM_CREDIT, /* credits only */
	EVR_STREAM_IOMAP,  /* an entry for the peer's table */
	EVR_STREAM_KEEPALIVE,
	EVR_STREAM_SHUTDOWN,
	EVR_STREAM_DISCONNECT,
};

/* How it is posted. */
enum evr_stream_op {
	EVR_STREAM_WRITE_IMM, /* RDMA write with immediate */
	EVR_STREAM_WRITE,     /* RDMA write without immediate */
	/* iWARP: RDMA write, its wr_id as evr_wrid_first() has it; then a SEND of the immediate. */
	EVR_STREAM_WRITE_SEND,
	EVR_STREAM_SEND, /* iWARP: the SEND of the immediate alone */
};

/* Where the len bytes are that are written. */
enum evr_stream_local {
	EVR_STREAM_NONE,    /* there are none */
	EVR_STREAM_RING,    /* to be copied to an offset of the send ring */
	EVR_STREAM_OWN,	    /* in the memory of the caller's that it asked to send */
	EVR_STREAM_CONTROL, /* in the work; to be copied to an offset of the control memory */
};

struct evr_stream_work {
	uint64_t wr_id;
	uint64_t addr; /* the peer's */
	uint64_t end;  /* of data and direct writes: see evr_stream_status.completed */
	enum evr_stream_kind kind;
	enum evr_stream_op op;
	enum evr_stream_local local;
	uint32_t rkey;
	uint32_t len;
	uint32_t offset;
	uint32_t imm;  /* as evr_imm() makes it */
	bool inlined;  /* to be posted inline, from where the bytes are: nothing has to be copied */
	bool signaled; /* its last, or only, work request */
	uint8_t control[EVR_STREAM_CONTROL_LEN];
};

/* What the user wants to send. */
struct evr_stream_want {
	uint32_t len;
	uint32_t transfer; /* 0 before the first piece of a call: it grows from piece to piece */
	bool own;	   /* from registered memory of the caller's, not the send ring */
	bool more;	   /* of own memory: more follows at once, and is signalled */
};

struct evr_stream_status {
	uint32_t readable;  /* bytes */
	uint32_t writable;  /* what the send ring and the peer's window take, about; or 0 */
	uint64_t window;    /* the same for memory of the caller's own */
	uint64_t completed; /* sums of the bytes handed out: up to a work's end, memory is free */
	bool eof;	    /* nothing is readable, nor will be */
	bool hangup;	    /* neither direction is open */
	bool finished; /* nothing more will be handed out: both sides know, or there is an error */
	bool drained;  /* nothing that was handed out is on its way */
	int error;     /* 0 or -errno: what ended it */
};

struct evr_stream {
	struct evr_stream_config config;
	struct evr_sge halves[2]; /* of the receive ring */
	struct evr_credit_out credit_out;
	struct evr_credit_in credit_in;
	struct evr_rxring rx;
	struct evr_txring tx;
	struct evr_target target;
	struct evr_iomap_in iomap_in;
	struct evr_iomap_out iomap_out;
	struct evr_sendq sendq;
	struct evr_conndata peer;
	uint8_t remote_entry; /* of the peer's copy of our target: which is written next */
	uint8_t idle;	      /* control messages in a row that brought nothing */
	bool started;
	bool tx_ended;	    /* the user sends no more */
	bool rx_open;	    /* the user wants to read */
	bool peer_shutdown; /* the peer sends no more */
	bool peer_gone;	    /* the peer has disconnected */
	bool said_shutdown;
	bool said_disconnect;
	bool keepalive;
	int error;
};

/* The user may send, and the peer listens. */
static inline bool evr_stream_is_tx_open(const struct evr_stream *stream)
{
	return stream->started && !stream->tx_ended && !stream->peer_gone;
}

/*
 * Prepares a stream. The memory that the configuration names stays the caller's, and must live as
 * long. 0; -EINVAL: a size is out of bounds or memory is missing; -ENOTSUP: iWARP without room for
 * a message inline.
 */
int evr_stream_init(struct evr_stream *stream, const struct evr_stream_config *config);
/* What the peer is told of it. */
void evr_stream_describe(const struct evr_stream *stream, struct evr_conndata *conn);
/*
 * Memory of its own for half 0 or 1 of the receive ring, of rx_size / 2 bytes: the peer is told of
 * it when it gets that half next. Not while the peer has the half, or bytes of it are readable.
 */
void evr_stream_set_half(
	struct evr_stream *stream, unsigned int half, uint64_t addr, uint32_t rkey);
/*
 * What the peer told, as evr_conndata_decode() has checked it. Who accepts starts before it does;
 * who connects, before it gives in what has arrived. 0; -EISCONN: it was started before.
 */
int evr_stream_start(struct evr_stream *stream, const struct evr_conndata *peer);
/* A stream that was started has a place for each mapping of ours, at most the peer's iomap_size. */
void evr_stream_set_mappings(
	struct evr_stream *stream, struct evr_iomap_slot *slots, uint32_t size);

/*
 * An immediate arrived. written is the length that the completion told, or, where the device does
 * not tell it (on iWARP), EVR_WRITTEN_UNKNOWN. Returns 0, or the error that ends the stream:
 * -EPROTO     an operation or control message that nobody knows, data after the peer's last word
 * -EMSGSIZE   data of length 0, or over the half of the ring that the peer has, or of another
 *             length than was written
 * -ENOBUFS    a message without credit
 * -ERANGE     a limit of messages that goes back, or beyond the peer's queue
 * -EBADMSG    an entry for our target or table that is empty, not free or out of bounds
 * -ENXIO      an entry that our table does not have
 * -EOVERFLOW  more than EVR_STREAM_IDLE_MAX control messages in a row without any news
 * -ENOTCONN   the stream was not started (it stays as it is)
 */
int evr_stream_receive(struct evr_stream *stream, uint32_t imm, uint32_t written);
/*
 * Work with this wr_id completed, and all before it. ok: with success. A failure ends the stream
 * with -EIO, except when both sides had said their last. Returns 0 or the stream's error.
 */
int evr_stream_complete(struct evr_stream *stream, uint64_t wr_id, bool ok);
/* Ends the stream with an error of the caller's (a negative errno), if nothing else has. */
void evr_stream_fail(struct evr_stream *stream, int error);

/*
 * The next piece of what the user wants to send, if it can go now: the work is handed out. Returns
 * how many bytes it takes, and counts them off want->len; 0: not now, since the peer's window or
 * the send queue or ring is full, or evr_stream_next() has mappings to go first; or
 * -EPIPE      it was shut down
 * -ECONNRESET it was not, and the peer has disconnected
 * -ENOTCONN   it was not started
 * or the error that ended the stream.
 */
int evr_stream_send(
	struct evr_stream *stream, struct evr_stream_want *want, struct evr_stream_work *work);
/* Why it can send nothing, whatever the length: 0, or one of these errors. */
int evr_stream_check_sending(const struct evr_stream *stream);
/*
 * The same for a direct write at an offset of the peer's mappings; it is of one mapping.
 * -ENXIO: nothing is mapped there.
 */
int evr_stream_direct(struct evr_stream *stream, uint64_t offset, struct evr_stream_want *want,
	struct evr_stream_work *work);
/* Hands out what is due by itself: entries, credits, mappings, keepalives, the last word. */
bool evr_stream_next(struct evr_stream *stream, struct evr_stream_work *work);

/* What can be read: where it is in the receive ring; returns how many bytes. */
uint32_t evr_stream_readable(const struct evr_stream *stream, struct evr_span spans[2]);
/* The user has read len bytes, at most what is readable. */
void evr_stream_consume(struct evr_stream *stream, uint32_t len);
/*
 * The same in two steps, where the bytes are read in place. What is lent is released in order; what
 * is consumed behind it goes back to the peer with the last of what was lent before it, or later.
 */
void evr_stream_lend(struct evr_stream *stream, uint32_t len);
void evr_stream_release(struct evr_stream *stream, uint32_t len);

/*
 * Shuts down directions: how is SHUT_RD, SHUT_WR or SHUT_RDWR of <sys/socket.h>. What was handed
 * out still goes; evr_stream_next() then has the word for the peer. What arrives after SHUT_RD is
 * thrown away. 0; -EINVAL: none of them.
 */
int evr_stream_shutdown(struct evr_stream *stream, int how);
/* A keepalive is due: evr_stream_next() has it. One that is still due is not doubled. */
void evr_stream_keepalive(struct evr_stream *stream);

/*
 * Shows memory to the peer. Returns the index of the mapping; evr_stream_next() tells the peer.
 * -ENOSPC: the peer's table is full; -EINVAL: no such memory or offset.
 */
int evr_stream_map(struct evr_stream *stream, const struct evr_iomap_entry *entry);
/* Forgets it. The peer is not told: the protocol has no word for it. 0 or -EINVAL. */
int evr_stream_unmap(struct evr_stream *stream, uint32_t index);

struct evr_stream_status evr_stream_status(const struct evr_stream *stream);

#endif
