/* The callbacks of its input and its output: libevent's own reads and writes, and the user's. */
#include "ev/stream/bufferevent.h"

#include <event2/buffer.h>
#include <event2/event.h>

#include "ev/stream/registry.h"

enum { VECS = 32 }; /* of the output buffer, looked at at once */

static void tell(struct bufferevent *bev, short what, int err, int options)
{
	EVUTIL_SET_SOCKET_ERROR(err);
	bufferevent_trigger_event(bev, what, options);
}

/* Takes the last byte off. Without memory some of those before it may go, too: the last ones. */
static void strip(struct evr_bev *behind, struct evbuffer *input)
{
	struct evbuffer *before = behind->spare;

	/* Another callback has seen it first, and took it for data. */
	if (!evbuffer_get_length(input))
		return;
	evbuffer_drain(before, evbuffer_get_length(before));
	evbuffer_remove_buffer(input, before, evbuffer_get_length(input) - 1);
	evbuffer_drain(input, 1);
	evbuffer_prepend_buffer(input, before);
}

/* libevent calls the read callback for that byte, and then what is told here. */
static void tell_read_error(
	struct evr_bev *behind, struct bufferevent *bev, struct evbuffer *input)
{
	strip(behind, input);
	evr_bev_end_bell(behind);
	bufferevent_disable(bev, EV_READ);
	tell(bev, BEV_EVENT_ERROR | BEV_EVENT_READING, behind->error.err,
		BEV_TRIG_DEFER_CALLBACKS);
}

static size_t room_in(struct bufferevent *bev, const struct evbuffer *input)
{
	size_t low, high, len = evbuffer_get_length(input);
	ev_ssize_t most = bufferevent_get_max_to_read(bev);
	size_t room = most > 0 ? (size_t)most : 0;

	bufferevent_getwatermark(bev, EV_READ, &low, &high);
	if (!high)
		return room;
	high = high > len ? high - len : 0;
	return high < room ? high : room;
}

static void feed(struct evr_bev *behind, struct bufferevent *bev, struct evbuffer *input)
{
	size_t fed = evr_pipe_feed(&behind->pipe, input, room_in(bev, input));

	if (fed && bufferevent_get_token_bucket_cfg(bev))
		bufferevent_decrement_read_limit(bev, (ev_ssize_t)fed);
	evr_pipe_pump(&behind->pipe);
	evr_bev_ring_if_due(behind);
}

static size_t may_write(struct bufferevent *bev)
{
	ev_ssize_t most = EV_SSIZE_MAX;

	if (!(bufferevent_get_enabled(bev) & EV_WRITE))
		return 0;
	if (bufferevent_get_token_bucket_cfg(bev))
		most = bufferevent_get_write_limit(bev);
	return most > 0 ? (size_t)most : 0;
}

static void drain(struct bufferevent *bev, struct evbuffer *output, size_t len)
{
	evbuffer_unfreeze(output, 1);
	evbuffer_drain(output, len);
	evbuffer_freeze(output, 1);
	if (bufferevent_get_token_bucket_cfg(bev))
		bufferevent_decrement_write_limit(bev, (ev_ssize_t)len);
}

/* What does not go now, or not at all, libevent writes through the pair. */
static void flush(struct evr_bev *behind, struct bufferevent *bev, struct evbuffer *output)
{
	struct evbuffer_iovec vecs[VECS];
	ssize_t sent = 1;
	size_t most;

	while (sent > 0 && (most = may_write(bev))) {
		int n = evbuffer_peek(output, -1, NULL, vecs, VECS);

		if (n <= 0)
			break;
		sent = evr_pipe_send(&behind->pipe, vecs, n < VECS ? n : VECS, most);
		if (sent > 0)
			drain(bev, output, (size_t)sent);
	}
}

static void tell_connected(
	struct evr_bev *behind, struct bufferevent *bev, struct evbuffer *output)
{
	unsigned char byte;

	evr_bell_take(&behind->bell, &byte, 1);
	behind->awaits = false;
	/* What libevent wrote along with it is ahead of what is written from now on. */
	evr_bev_take(behind);
	behind->busy = false;
	if (!behind->failed) {
		evr_bev_ring_if_due(behind);
		tell(bev, BEV_EVENT_CONNECTED, 0, 0);
		return;
	}
	evr_bev_end_bell(behind);
	/* So that libevent does not say that all was written. */
	evbuffer_add_buffer(output, behind->spare);
	bufferevent_disable(bev, EV_READ | EV_WRITE);
	tell(bev, BEV_EVENT_ERROR, behind->error.err, 0);
}

static void on_written(struct evr_bev *behind, struct bufferevent *bev, struct evbuffer *output)
{
	int err = evr_bev_write_error(behind);

	evr_bev_take(behind);
	if (!err && !behind->stuck)
		flush(behind, bev, output);
	if (!err)
		return;
	bufferevent_disable(bev, EV_WRITE);
	tell(bev, BEV_EVENT_ERROR | BEV_EVENT_WRITING, err, BEV_TRIG_DEFER_CALLBACKS);
}

/* A number is another's when it was closed; who has it may also be another bufferevent. */
static bool has_bell(struct bufferevent *bev, const struct evr_bev *behind)
{
	return bufferevent_getfd(bev) == behind->bell.theirs && evr_bell_is_theirs(&behind->bell);
}

/* What is behind it, if it still has our descriptor. */
struct evr_bev *evr_bev_find(struct bufferevent *bev)
{
	struct evr_bev *behind = evr_registry_find(bev);

	return behind && has_bell(bev, behind) ? behind : NULL;
}

/* What other threads add meanwhile waits for the lock of the buffer, which is held here. */
static void note_output(struct evr_bev *behind, const struct evbuffer *output)
{
	evr_bev_set_unsent(behind, evbuffer_get_length(output) > 0);
	if (behind->leaving)
		evr_obj_work(&behind->obj);
}

static void has_written(struct evr_bev *behind)
{
	evr_bev_set_unsent(behind, true);
}

/* It has another descriptor, and is as libevent makes one; but for what the user has set. */
static void restore_output(struct bufferevent *bev, struct evbuffer *output)
{
	evbuffer_set_flags(output, EVBUFFER_FLAG_DRAINS_TO_FD);
	if (bufferevent_get_max_single_write(bev) == EVR_BEV_MAX_SINGLE_WRITE)
		bufferevent_set_max_single_write(bev, 0);
}

static void restore_input(struct bufferevent *bev)
{
	if (bufferevent_get_max_single_read(bev) == EVR_BEV_MAX_SINGLE_READ)
		bufferevent_set_max_single_read(bev, 0);
}

static void on_output(
	struct evbuffer *output, const struct evbuffer_cb_info *info, void *arg)
{
	struct bufferevent *bev = arg;
	struct evr_bev *behind = evr_registry_find(bev);
	bool ours;

	/* What we do ourselves from within a callback. */
	if (behind && behind->busy)
		return;
	ours = behind && has_bell(bev, behind);
	/* Another is in place of our descriptor, which may come back: nothing has gone through. */
	if (behind && !ours && !info->n_deleted) {
		evr_registry_visit(bev, has_written);
		return;
	}
	if (!ours) {
		evr_registry_remove(bev, behind);
		evbuffer_remove_cb(output, on_output, bev);
		restore_output(bev, output);
		return;
	}
	behind->busy = true;
	if (info->n_deleted && behind->awaits)
		tell_connected(behind, bev, output);
	else if (info->n_deleted)
		on_written(behind, bev, output);
	else if (info->n_added && !behind->awaits && !behind->stuck)
		flush(behind, bev, output);
	behind->busy = false;
	note_output(behind, output);
}

static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg)
{
	struct bufferevent *bev = arg;
	struct evr_bev *behind = evr_registry_find(bev);

	/* What is taken out of it tells nothing. */
	if (!info->n_added || (behind && behind->busy))
		return;
	if (!behind || !has_bell(bev, behind)) {
		evr_registry_remove(bev, behind);
		evbuffer_remove_cb(input, on_input, bev);
		restore_input(bev);
		return;
	}
	if (!behind->rung)
		return;
	/* Added by the user, who may put back what it took: the byte is still on its way. */
	if (!evr_bell_is_heard(&behind->bell))
		return;
	behind->busy = true;
	behind->rung = false;
	if (behind->rung_error)
		tell_read_error(behind, bev, input);
	else
		feed(behind, bev, input);
	behind->busy = false;
}

/* Only what libevent itself does in the loop is sent: other threads add what they write. */
static void on_output_of_threads(
	struct evbuffer *output, const struct evbuffer_cb_info *info, void *arg)
{
	if (info->n_deleted)
		on_output(output, info, arg);
	else
		evr_registry_visit(arg, has_written);
}

bool evr_bev_add_callbacks(const struct evr_bev *behind, struct bufferevent *bev)
{
	bool threads = behind->bev_options & BEV_OPT_THREADSAFE;

	return evbuffer_add_cb(bufferevent_get_input(bev), on_input, bev) &&
	       evbuffer_add_cb(bufferevent_get_output(bev),
		       threads ? on_output_of_threads : on_output, bev);
}
