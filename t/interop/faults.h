/*
 * Bufferevents over RDMA to peers that are processes of their own, on the two devices of
 * bufferevent_faults.sh, with a wire between them. Written as a user would, from the public pages.
 */
#ifndef EVR_INTEROP_FAULTS_H
#define EVR_INTEROP_FAULTS_H

#include <check.h>
#include <evrdma/evrdma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bufferevent;
struct event_base;

enum {
	US_PER_MS = 1000,
	MS_PER_S = 1000,
	LIMIT_S = 100000, /* of time that mostly is skipped: it ends what hangs */
};

/* --- peers ----------------------------------------------------------------------------------- */

struct peer {
	pid_t pid;
	uint16_t port;
};

enum service {
	PEER_ECHO,
	PEER_DEAF, /* reads nothing */
};

enum { FAULT_WINDOW = 16384 }; /* recv_bytes and send_bytes */

#define FAULT_PEER_IP "10.77.0.2"

/* To be started before this process has anything of RDMA. */
void peer_start(struct peer *peer, uint16_t port, enum service service);
void peer_end(struct peer *peer);
/* The bytes of a stream, by its number and where they are. */
void pattern_make(uint8_t *bytes, size_t len, unsigned number, size_t at);
bool pattern_is(const uint8_t *bytes, size_t len, unsigned number, size_t at);

/* Both sides' base, and how much they have room for. */
struct evrdma_base *faults_base(struct event_base *loop);
void faults_set_window(struct evrdma_bev_options *options);

/* --- streams to them ------------------------------------------------------------------------- */

/* The callback in which it is freed, where that is not the last. */
enum when { AT_END, AT_READ, AT_WRITTEN, AT_CONNECTED, AT_TIMEOUT, AT_NONE };

struct stream {
	struct bufferevent *bev; /* NULL when freed */
	unsigned number;
	enum when free_at;
	size_t sent, got;
	bool wrong;		       /* what came is not what was sent */
	unsigned connected, ended, timeouts;
	unsigned late;		       /* callbacks after it was freed, or after its end */
	short what;		       /* of the last event */
	int error;
	char text[EVRDMA_ERROR_TEXT_MAX]; /* of that error */
};

enum { STREAMS = 100 };

/* One of everything a test has. */
struct faults {
	struct event_base *loop;
	struct evrdma_base *base;
	struct evrdma_bev_options options;
	struct evrdma_conn_options conn_options;
	struct peer peers[2];
	struct stream streams[STREAMS];
	unsigned n; /* of them are in use */
	uint64_t objects_first;
	size_t heap_first;
	int files_first;
};

extern struct faults faults;

void faults_start(enum service first, enum service second);
/* All are freed; what there is, here and at the peers that live, is what there was at first. */
void faults_settle(void);
/* So it is with the memory when the base is gone. */
void faults_finish(void);

uint64_t faults_now_ms(void);
void faults_run_until(bool (*condition)(void));
void faults_run_for(unsigned s);

/* The next so many streams are connected to the peer, and are there. */
void streams_connect(const struct peer *peer, unsigned n);
void stream_open(struct stream *stream, const struct peer *peer);
/* So much more is written to them. */
void streams_send(unsigned first, unsigned n, size_t len);
void stream_send(struct stream *stream, size_t len);
void stream_free(struct stream *stream);
void streams_free(unsigned first, unsigned n);

/* Until each of these is connected, has its bytes back, was told of its end; or was freed. */
void streams_await(unsigned first, unsigned n);
void streams_await_bytes(unsigned first, unsigned n);
void streams_await_ends(unsigned first, unsigned n);
/* Each of these was told of its end once, as an error; 0 is no error but the peer's end. */
void assert_ended(unsigned first, unsigned n, int error);
/* Each of these got its bytes back, and was told of no end. */
void assert_goes_on(unsigned first, unsigned n);

#endif
