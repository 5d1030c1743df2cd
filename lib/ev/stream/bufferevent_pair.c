/* The pair: what goes through it, who watches it, and what follows when the user is gone. */
#include "ev/stream/bufferevent.h"

#include <errno.h>
#include <sys/socket.h>

#include "ev/core/base.h"
#include "ev/stream/registry.h"

enum { LOOK_MS = 1000, LOOK_CONNECTING_MS = 100 };

/* --- leaving -------------------------------------------------------------------------------- */

void evr_bev_set_unsent(struct evr_bev *behind, bool unsent)
{
	__atomic_store_n(&behind->unsent, unsent, __ATOMIC_RELAXED);
}

/* What the user wrote is not all on its way, and may still go. */
static bool has_unsent(const struct evr_bev *behind)
{
	if (evr_pipe_check(&behind->pipe))
		return false;
	return behind->stuck || (behind->bev && __atomic_load_n(&behind->unsent, __ATOMIC_RELAXED));
}

/* The last word is said and has arrived. */
static void disconnect_if_done(struct evr_bev *behind)
{
	struct evr_stream_status status = evr_stream_status(&behind->pipe.stream);

	if (!behind->said_all || behind->disconnecting || !status.finished || !status.drained)
		return;
	behind->disconnecting = true;
	if (evrdma_conn_disconnect(behind->pipe.conn))
		evr_obj_close(&behind->obj);
}

static void start_leaving(struct evr_bev *behind)
{
	if (behind->leaving)
		return;
	behind->leaving = true;
	evr_timer_start(&behind->linger_timer, behind->linger_timeout_ms);
	evr_pipe_shutdown(&behind->pipe, SHUT_RD);
}

void evr_bev_go_on_leaving(struct evr_bev *behind)
{
	if (!behind->leaving)
		return;
	if (!behind->said_all && !has_unsent(behind)) {
		behind->said_all = true;
		evr_pipe_shutdown(&behind->pipe, SHUT_WR);
	}
	disconnect_if_done(behind);
}

/* Once all that was written has been sent. */
void evr_bev_leave(struct evr_bev *behind)
{
	if (behind->state != EVR_BEV_UP) {
		evr_obj_close(&behind->obj);
		return;
	}
	start_leaving(behind);
	evr_bev_go_on_leaving(behind);
}

static void on_linger_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evr_bev *behind = arg;

	evr_obj_close(&behind->obj);
}

/* --- the bell ------------------------------------------------------------------------------- */

void evr_bev_look_again(struct evr_bev *behind)
{
	evr_timer_start(&behind->look_timer,
		behind->state == EVR_BEV_CONNECTING ? LOOK_CONNECTING_MS : LOOK_MS);
}

void evr_bev_watch(struct evr_bev *behind)
{
	evr_timer_stop(&behind->look_timer);
	if (event_add(&behind->bell_event, NULL))
		evr_bev_look_again(behind);
}

static void unwatch(struct evr_bev *behind)
{
	event_del(&behind->bell_event);
	evr_bev_look_again(behind);
}

void evr_bev_forget(struct evr_bev *behind)
{
	evr_registry_remove(behind->bev, behind);
	behind->bev = NULL;
	event_del(&behind->bell_event);
	evr_timer_stop(&behind->look_timer);
	evr_bell_close(&behind->bell);
}

/* They write no more. */
static void on_bell_end(struct evr_bev *behind)
{
	behind->stuck = false;
	if (!evr_bell_is_theirs(&behind->bell)) {
		evr_bev_forget(behind);
		evr_bev_leave(behind);
		return;
	}
	if (!behind->half_closed)
		evr_pipe_shutdown(&behind->pipe, SHUT_WR);
	behind->half_closed = true;
	unwatch(behind);
}

int evr_bev_write_error(const struct evr_bev *behind)
{
	return behind->failed ? behind->error.err : -evr_pipe_check(&behind->pipe);
}

/* False: not all of it goes now. */
static bool send_taken(struct evr_bev *behind)
{
	struct evbuffer_iovec vec = {
		.iov_base = behind->taken + behind->taken_at,
		.iov_len = behind->taken_end - behind->taken_at,
	};
	ssize_t n = vec.iov_len ? evr_pipe_send(&behind->pipe, &vec, 1, vec.iov_len) : 0;

	behind->taken_at += n < 0 ? vec.iov_len : (size_t)n;
	return behind->taken_at == behind->taken_end;
}

/* What nobody will get is taken all the same: they shall not wait. */
static bool may_take(struct evr_bev *behind)
{
	if (!send_taken(behind))
		return false;
	return evr_pipe_is_writable(&behind->pipe) || evr_bev_write_error(behind);
}

/* Sends what they wrote through the pair. */
void evr_bev_take(struct evr_bev *behind)
{
	ssize_t n = -EAGAIN;

	while (may_take(behind)) {
		n = evr_bell_take(&behind->bell, behind->taken, sizeof(behind->taken));
		if (n <= 0)
			break;
		behind->taken_at = evr_bev_write_error(behind) ? (size_t)n : 0;
		behind->taken_end = (size_t)n;
	}
	behind->stuck = !may_take(behind);
	if (!n)
		on_bell_end(behind);
	else if (behind->stuck)
		unwatch(behind);
	else
		evr_bev_watch(behind);
}

static void on_bell(evutil_socket_t fd, short what, void *arg)
{
	evr_bev_take(arg);
}

/* With what they wrote still in the pair it is not over yet. */
static void on_look_timer(evutil_socket_t fd, short what, void *arg)
{
	struct evr_bev *behind = arg;

	if (evr_bell_is_theirs(&behind->bell)) {
		evr_bev_look_again(behind);
		return;
	}
	if (behind->stuck) {
		start_leaving(behind);
		return;
	}
	evr_bev_forget(behind);
	evr_bev_leave(behind);
}

/* Who is told of an end writes no more: of one that we make not before all has gone. */
static bool is_over(const struct evr_bev *behind)
{
	if (behind->leaving && behind->state == EVR_BEV_UP)
		return behind->said_all;
	return behind->state == EVR_BEV_OVER || evr_stream_status(&behind->pipe.stream).eof;
}

void evr_bev_end_bell(struct evr_bev *behind)
{
	behind->ended = true;
	evr_bell_end(&behind->bell);
}

static void ring(struct evr_bev *behind, unsigned char byte)
{
	behind->rung = true;
	if (evr_bell_ring(&behind->bell, byte))
		evr_bev_end_bell(behind);
}

/* What they are to read next: data, then the error, or an end. */
void evr_bev_ring_if_due(struct evr_bev *behind)
{
	if (!behind->bev || behind->awaits || behind->rung || behind->ended)
		return;
	if (evr_pipe_readable(&behind->pipe)) {
		ring(behind, evr_pipe_read_byte(&behind->pipe));
		evr_pipe_pump(&behind->pipe);
	} else if (behind->failed && !behind->rung_error) {
		behind->rung_error = true;
		ring(behind, 0);
	} else if (is_over(behind)) {
		evr_bev_end_bell(behind);
	}
}

static void assign(struct event *event, struct evr_bev *behind, int fd, event_callback_fn cb)
{
	struct evrdma_base *base = behind->obj.base;

	event_assign(event, base->event_base, fd, EV_READ | EV_PERSIST, cb, behind);
	evr_base_set_priority(event, base->options.data_priority);
}

void evr_bev_assign_timers(struct evr_bev *behind)
{
	struct evrdma_base *base = behind->obj.base;

	evr_timer_assign(&behind->look_timer, base, on_look_timer, behind);
	evr_timer_assign(&behind->linger_timer, base, on_linger_timer, behind);
}

void evr_bev_assign_bell(struct evr_bev *behind)
{
	assign(&behind->bell_event, behind, behind->bell.ours, on_bell);
}
