/*
 * evrdma_base: one rdma_event_channel on one event_base.
 *
 * A base and everything made from it belong to one thread, the one that runs its event_base.
 * Every call below is made on that thread, but for those that say "any thread". Several bases
 * may share one event_base.
 *
 * Callbacks run from the loop, never inside the call that asked for the work. Every object may be
 * closed in every callback, its own included.
 */
#ifndef EVRDMA_BASE_H
#define EVRDMA_BASE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;
struct rdma_event_channel;
struct rdma_cm_event;
struct evrdma_base;

/*
 * How a base behaves. Fill it with evrdma_base_options_init(), then change what is to differ.
 * The structure grows at its end only.
 */
struct evrdma_base_options {
	size_t size;             /* set by evrdma_base_options_init() */
	unsigned turn_budget_us; /* 500: microseconds that connection work (creating and destroying
	                            QPs and ids, CM events) may take of one turn of the loop; at
	                            least one step is made in every turn */
	unsigned cq_budget;      /* 256: completions taken from one CQ in one turn */
	unsigned cq_entries;     /* 4096: entries of a shared CQ; limited to what the device has */
	unsigned device_idle_ms; /* 1000: how long an unused device stays open */
};

void evrdma_base_options_init_sized(struct evrdma_base_options *options, size_t size);

/* Fills the options with their defaults. Any thread. Since 0.1. */
#define evrdma_base_options_init(options)                                                          \
	evrdma_base_options_init_sized((options), sizeof(*(options)))

/*
 * Makes a base with an event channel of its own. options may be NULL for the defaults and is not
 * kept. The caller keeps the event_base, which must outlive the base.
 *
 * While a base lives its channel's event is pending, so event_base_dispatch() does not return for
 * want of events: close the base, or leave the loop.
 *
 * The first call in a process finds the CM's character device and may take milliseconds.
 *
 * Returns NULL and sets errno:
 *   ENODEV        no RDMA device, or the kernel's rdma_ucm module is not there
 *   EACCES/EPERM  no permission on the character device
 *   EMFILE/ENFILE too many open files
 *   ENOMEM        out of memory
 *   EINVAL        the options are larger than this library knows, and used
 * Since 0.1.
 */
struct evrdma_base *evrdma_base_new(
	struct event_base *event_base, const struct evrdma_base_options *options);

/*
 * The same on an event channel of the caller's, with whatever ids are on it already. The channel
 * becomes non-blocking while the base lives, and must outlive it; nobody else may read it. Ids on
 * it that were not adopted with evrdma_id_adopt() report to evrdma_base_set_event_cb().
 * Since 0.1.
 */
struct evrdma_base *evrdma_base_new_with_channel(struct event_base *event_base,
	struct rdma_event_channel *channel, const struct evrdma_base_options *options);

/*
 * An event of an id that is on the channel but belongs to nobody here. The event was acknowledged
 * already: it and its private data are copies that live until the callback returns. A
 * CONNECT_REQUEST brings a new id, event->id, that is the callback's to keep or destroy.
 */
typedef void (*evrdma_base_event_cb)(
	struct evrdma_base *base, const struct rdma_cm_event *event, void *arg);

/*
 * Sets the callback for events of ids that were not adopted; NULL (the default) drops them, and
 * destroys the id of a CONNECT_REQUEST. Since 0.1.
 */
void evrdma_base_set_event_cb(struct evrdma_base *base, evrdma_base_event_cb cb, void *arg);

typedef void (*evrdma_base_cb)(struct evrdma_base *base, void *arg);

/*
 * Closes everything on the base, then the base. Each object gets its closed event, then cb (which
 * may be NULL) runs, last; then the base is freed, and with it its own channel. The loop must run
 * until then: evrdma_base_close(base, NULL, NULL); event_base_dispatch(event_base);
 * Legal in any callback. A second call changes nothing. Since 0.1.
 */
void evrdma_base_close(struct evrdma_base *base, evrdma_base_cb cb, void *arg);

/*
 * Runs cb once on the base's thread, from the loop, soon. Any thread. What was asked for before the
 * base was closed runs before its closed callback; the caller makes sure that the base is not
 * closed meanwhile. Returns 0, -ENOMEM, or -EPIPE when the base is being closed. Since 0.1.
 */
int evrdma_base_run_in_loop(struct evrdma_base *base, evrdma_base_cb cb, void *arg);

/* The event_base and the channel under the base. They stay the base's. Since 0.1. */
struct event_base *evrdma_base_get_event_base(const struct evrdma_base *base);
struct rdma_event_channel *evrdma_base_get_channel(const struct evrdma_base *base);

/* The version of the library that runs, "0.1.0". Any thread. Since 0.1. */
const char *evrdma_version(void);

#ifdef __cplusplus
}
#endif

#endif
