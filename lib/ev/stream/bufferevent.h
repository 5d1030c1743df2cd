/*
 * A bufferevent whose bytes travel over RDMA.
 *
 * It is libevent's own socket bufferevent, on one end of a local pair (bell.h): libevent keeps the
 * timeouts, the watermarks, the limits and the callbacks. What is here stands behind it:
 *
 *   CONNECTING --the connection is there--> UP --it has ended--> OVER
 *     |  accepting: no bufferevent before UP      |
 *     `----------- it failed ---------------------'
 *
 * In. When something has arrived its first byte goes through the pair: the doorbell. libevent reads
 * it when it reads at all (watermarks, EV_READ and limits hold it up, and with it the peer), and
 * within that read our callback on the input buffer adds what follows, as far as there is room.
 *
 * Out. Our callback on the output buffer sends what was added, and drains it, when EV_WRITE is
 * enabled. Otherwise, and when the peer's window is full, libevent writes a byte or two through the
 * pair, until that is not writable: its timeout counts then. When there is room again those bytes
 * are taken and sent, libevent writes the next, and our callback sends the rest.
 *
 * Connecting. The pair is filled, and the output buffer has a byte ahead of all others. When the
 * connection is there, or is not to be, the pair is emptied; libevent writes that byte, and within
 * that our callback tells CONNECTED or ERROR.
 *
 * The end. The peer's end is an end of what we send through the pair. An error is told from within
 * a callback too: of input, by a byte that is taken off again; of output, once the pair is emptied.
 *
 * Who holds it. The bufferevent is the user's, and nobody tells us when it is freed: it is looked
 * at only within the two callbacks, which run in no other but a living one. They find us by its
 * address (registry.h). We see that the user is gone when the pair's far end is closed: we read an
 * end there, and its number is not that socket any more; the same end with the socket still there
 * is a shutdown(2) for writing. Another in its place may be there for a while only: nothing is done
 * until libevent has read or written there. Where the near end is not read (the window is full;
 * connecting; after that shutdown) the number is looked at from time to time. Then what was written
 * goes out, the stream is closed, and the connection disconnected, in linger_timeout_ms. When the
 * base is shut down it is the same with what the output buffer still has; who reads is told of an
 * end then.
 *
 * It is an object of its base (obj.h), so it ends with that at the latest; it is freed after the
 * last callback of its connection. The last of its own: cb of evrdma_bufferevent_accept().
 */
#ifndef EVR_EV_BUFFEREVENT_H
#define EVR_EV_BUFFEREVENT_H

#include <event2/bufferevent.h>
#include <event2/event_struct.h>
#include <limits.h>
#include <stdbool.h>

#include "ev/core/obj.h"
#include "ev/core/timer.h"
#include "ev/stream/bell.h"
#include "ev/stream/pipe.h"

#include <evrdma/bufferevent.h>

/* Checked, and the library's own. */
struct evr_bev_options {
	struct evr_pipe_options pipe;
	int bev_options;
	int linger_timeout_ms;
};

enum { EVR_BEV_TAKEN_BYTES = 512 };

/* Of the pair; what goes past it has no limit but what the user sets. */
enum { EVR_BEV_MAX_SINGLE_READ = INT_MAX, EVR_BEV_MAX_SINGLE_WRITE = 1 };

enum evr_bev_state { EVR_BEV_CONNECTING, EVR_BEV_UP, EVR_BEV_OVER };

struct evr_bev {
	struct evr_obj obj;
	struct evr_pipe pipe;
	enum evr_bev_state state;
	int bev_options;
	int linger_timeout_ms;
	evrdma_bufferevent_accept_cb accept_cb; /* NULL: it connects, or cb was called */
	void *accept_arg;

	struct bufferevent *bev; /* NULL: not made yet, or not the user's any more */
	struct evr_bell bell;
	struct event bell_event;
	struct evr_timer look_timer; /* while bell_event is off */
	struct evr_timer linger_timer;
	bool unsent;	/* the output buffer is not empty; atomic, and apart from the others */
	ssize_t filled; /* bytes that fill the pair */
	bool awaits;	/* the byte ahead is still to come */
	bool busy;	/* in a callback of ours */
	bool rung;	/* a byte waits at the far end, */
	bool rung_error; /* which stands for the error */
	bool ended;	/* they have read all, and an end, or will */
	bool stuck;	/* what they wrote stays in the pair */
	bool half_closed; /* by shutdown(2) */
	bool leaving;	/* the user is gone, or the base is shut down */
	bool said_all;	/* the last word is on its way */
	bool disconnecting;
	bool failed;
	struct evrdma_error error;
	unsigned char taken[EVR_BEV_TAKEN_BYTES]; /* out of the pair, and not sent */
	size_t taken_at, taken_end;
	struct evbuffer *spare; /* memory for what must be told without any */
};

/* Makes options of the user's. 0 or -EINVAL. */
int evr_bev_load(struct evr_bev_options *options,
	const struct evrdma_bev_options *users, int bev_options);
/* NULL with errno. */
struct evr_bev *evr_bev_new(
	struct evrdma_base *base, const struct evr_bev_options *options);
/* As evrdma_bufferevent_accept(). */
int evr_bev_accept(struct evrdma_request *request, const struct evr_bev_options *options,
	evrdma_bufferevent_accept_cb cb, void *arg);

/* --- bufferevent_new.c ---------------------------------------------------------------------- */

/* Makes the bufferevent. 0 or -errno; then there is neither that nor a descriptor. */
int evr_bev_make(struct evr_bev *behind);

/* --- bufferevent_buffers.c ------------------------------------------------------------------ */

bool evr_bev_add_callbacks(const struct evr_bev *behind, struct bufferevent *bev);
/* What is behind it, if it still has our descriptor. */
struct evr_bev *evr_bev_find(struct bufferevent *bev);

/* --- bufferevent_pair.c --------------------------------------------------------------------- */

void evr_bev_assign_timers(struct evr_bev *behind);
void evr_bev_assign_bell(struct evr_bev *behind);
/* What comes through the pair is of interest. */
void evr_bev_watch(struct evr_bev *behind);
/* It is not, or cannot be seen: the number is looked at later. */
void evr_bev_look_again(struct evr_bev *behind);
/* The bufferevent is not the user's any more. */
void evr_bev_forget(struct evr_bev *behind);
/* Sends what they wrote through the pair, as far as it goes. */
void evr_bev_take(struct evr_bev *behind);
/* Why nothing can be sent any more, an errno; 0: it can. */
int evr_bev_write_error(const struct evr_bev *behind);
/* What they are to read next: data, then the error, or an end. */
void evr_bev_ring_if_due(struct evr_bev *behind);
/* They read an end, after what was sent. */
void evr_bev_end_bell(struct evr_bev *behind);
/* Whether the output buffer has something. Any thread. */
void evr_bev_set_unsent(struct evr_bev *behind, bool unsent);
/* The stream is closed once all that was written has been sent. */
void evr_bev_leave(struct evr_bev *behind);
/* Something may have changed for one that leaves. */
void evr_bev_go_on_leaving(struct evr_bev *behind);

#endif
