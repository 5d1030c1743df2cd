/* A base as the user gets it: with all its parts. */
#include <errno.h>
#include <string.h>

#include "ev/cm/channel.h"
#include "ev/core/base.h"
#include "ev/core/cause.h"
#include "ev/core/log.h"
#include "ev/device/devices.h"
#include "ev/memory/pool.h"
#include "ev/queue/srq.h"
#include "ev/stream/pipe.h"

#include <evrdma/error.h>

/* The last one goes first: the queues before their memory, and that before its devices. */
static int add_parts(struct evrdma_base *base)
{
	int ret = evr_channel_start(base);

	if (!ret)
		ret = evr_devices_start(base);
	if (!ret)
		ret = evr_pools_start(base);
	if (!ret)
		ret = evr_srqs_start(base);
	if (!ret)
		ret = evr_pipes_start(base);
	return ret;
}

static struct evrdma_base *make(struct event_base *event_base, struct rdma_event_channel *channel,
	bool own, const struct evrdma_base_options *options)
{
	struct evrdma_base *base;
	int ret = evr_base_make(event_base, options, &base);

	if (ret)
		goto fail;
	base->channel = channel;
	ret = add_parts(base);
	if (!ret) {
		evr_channel_of(base)->own = own;
		return base;
	}
	evr_base_unmake(base);
fail:
	errno = -ret;
	return NULL;
}

struct evrdma_base *evrdma_base_new_with_channel(struct event_base *event_base,
	struct rdma_event_channel *channel, const struct evrdma_base_options *options)
{
	return make(event_base, channel, false, options);
}

/* The caller gets an errno; what is known beyond it goes to the log. */
static struct rdma_event_channel *open_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	char text[96];
	const char *cause;

	if (channel)
		return channel;
	cause = evr_cause_text(errno, EVRDMA_STEP_NONE, text, sizeof(text));
	evr_log(EVRDMA_LOG_WARN, "opening an event channel: %s%s%s", strerror(errno),
		cause ? ": " : "", cause ? cause : "");
	return NULL;
}

struct evrdma_base *evrdma_base_new(
	struct event_base *event_base, const struct evrdma_base_options *options)
{
	struct rdma_event_channel *channel = open_channel();
	struct evrdma_base *base;
	int err;

	if (!channel)
		return NULL;
	base = make(event_base, channel, true, options);
	if (!base) {
		err = errno;
		rdma_destroy_event_channel(channel);
		errno = err;
	}
	return base;
}
