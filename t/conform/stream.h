/*
 * Two bufferevents over RDMA, of which one connects to the other's listener: a checked fixture of
 * its own, upon that of all tests. What they write is a pattern that the other side can check.
 */
#ifndef EVR_CONFORM_STREAM_H
#define EVR_CONFORM_STREAM_H

#include "conform/fixture.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>

enum { MILLION = 1 << 20, PATIENCE_MS = 60000 };

/* One side, and what happened to it. */
struct side {
	struct bufferevent *bev;
	unsigned connected, eof, reads, writes, read_timeouts, write_timeouts;
	unsigned read_errors, write_errors, errors;
	int err;
	size_t most; /* seen in the input buffer */
	size_t written, checked; /* of the pattern */
	struct evbuffer *kept;
	void (*on_read)(struct side *);
	void (*on_write)(struct side *);
	void (*on_event)(struct side *, short what);
};

struct bevs {
	struct fixture *f;
	struct side client, server;
	struct evrdma_bev_options options;
	struct evrdma_conn_options conn;
	struct evrdma_listener *listener;
	int bev_options;
};

/* Those of the test that runs. */
extern struct bevs bevs;

/* To be called for the case, after the testbed's own. */
void bevs_add_fixture(TCase *tcase);
/* The same, of a loop that waits for other threads, too. */
void bevs_add_fixture_on_machine_time(TCase *tcase);

void bevs_listen(void);
void bevs_connect(void);
/* Both, until CONNECTED. */
void bevs_start(void);
bool bevs_are_up(struct fixture *f);
void bevs_run_until(bool (*condition)(struct fixture *));
/* Begins to shut the client's base down. */
void bevs_shut_down(void);

/* Its callbacks count. */
void side_begin(struct side *side, struct bufferevent *bev);
void side_free(struct side *side);
uint8_t pattern_at(size_t i);
/* The next bytes of it. */
void side_write(struct side *side, size_t len);
void side_check_in(struct side *side, struct evbuffer *buffer);
/* Runs until so much of the pattern was checked. */
void side_await(struct side *side, size_t checked);
size_t side_output(const struct side *side);
size_t side_input(const struct side *side);

/* What the callbacks may do. */
void side_check(struct side *side);
void side_echo(struct side *side);
void side_keep(struct side *side);
void side_free_at_end(struct side *side, short what);

bool client_is_blocked(struct fixture *f);
bool client_has_eof(struct fixture *f);
bool client_has_written(struct fixture *f); /* after CONNECTED */
bool client_has_error(struct fixture *f);
bool server_has_eof(struct fixture *f);
bool server_has_error(struct fixture *f);

#endif
