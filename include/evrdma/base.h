/*
 * evrdma_base: one rdma_event_channel on one event_base.
 *
 * A base and everything made from it belong to one thread, the one that runs its event_base.
 * Every call below is made on that thread, but for those that say "any thread". Several bases
 * may share one event_base.
 *
 * The event_base outlives the base: close or shut down the base, run the loop until its closed
 * callback has come, then free the event_base, and not in that callback. There is no way to close a
 * base whose event_base is gone.
 *
 * A base does not pass to a child of fork(): the kernel takes no command of the CM from there, and
 * what a child reads the parent misses. All descriptors are close-on-exec, so a child may exec or
 * exit. One that goes on without exec makes no call of this library on what it got from its parent,
 * and does not run the event_base again; to free that it calls event_reinit() first, without which
 * it would take the parent's descriptors out of the parent's loop. A daemon forks first, then makes
 * its bases.
 *
 * So with privileges: after setuid() and its like the kernel refuses every command on channels that
 * were opened before. Connections that are up pass data on; whatever is new, or a disconnect, ends
 * in EACCES, and so does every object as soon as the CM has an event for the channel, which
 * cannot be read any more; but an evrdma_id with nothing under way, listening or not, is told of
 * nothing. Drop privileges first, then make the bases.
 *
 * Callbacks run from the loop, never inside the call that asked for the work. Every object may be
 * closed in every callback, its own included.
 */
#ifndef EVRDMA_BASE_H
#define EVRDMA_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;
struct ibv_async_event;
struct ibv_context;
struct rdma_event_channel;
struct rdma_cm_event;
struct evrdma_base;

/* Flags of a base. */
#define EVRDMA_BASE_OPT_NO_ASYNC_EVENTS 0x1u /* the program reads the asynchronous events of the
                                                devices itself: evrdma_async_event() */

/*
 * How a base behaves. Fill it with evrdma_base_options_init(), then change what is to differ.
 * The structure grows at its end only.
 */
struct evrdma_base_options {
	size_t size;             /* set by evrdma_base_options_init() */
	unsigned turn_budget_us; /* 500: microseconds that each kind of work (creating and
	                            destroying QPs and ids, and registering memory for them; CM
	                            events; posting) may take of one turn of the loop, up to
	                            INT_MAX; at least one step is made in every turn, with 0 no
	                            more. And how long a turn with spin_us goes on */
	unsigned cq_budget;      /* 256: what one turn tells of completions, those of all queues
	                            together and the work that ends with a connection; 1 to
	                            INT_MAX */
	unsigned cq_entries;     /* 4096: entries of a shared CQ, at least 1; limited to what the
	                            device has, and no fewer than the first object on it needs.
	                            Over 16384 on siw for many QPs, see evrdma(7) */
	unsigned device_idle_ms; /* 1000: how long the base keeps what it has on an unused device;
	                            as long as a listener on an address of it listens, if not 0.
	                            As long too a completion queue that nobody has entries on
	                            any more, beside others */
	unsigned device_poll_ms; /* 0: off. Otherwise the list of devices is read so often, to learn
	                            who came and went: evrdma_base_set_device_cb() */
	int data_priority;       /* -1: as event_assign() left it. Otherwise the priority on the
	                            event_base, below event_base_get_npriorities(), of completions
	                            and of what each turn does: posting, connection work. Deadlines
	                            and calls from other threads are never behind it */
	int cm_priority;         /* -1: not behind data_priority. The same of CM events and
	                            asynchronous events */
	unsigned flags;          /* EVRDMA_BASE_OPT_* */
	uint64_t max_pinned_bytes; /* 0: no limit; bytes of memory registered at once, once for each
	                              protection domain. What is beyond fails with EDQUOT, as an
	                              error of the object that needs it or of the call. That of
	                              evrdma_buf_new_shared() counts for no base */
	int comp_vector;         /* -1: the bases of a process take turns. Otherwise the completion
	                            vector, modulo how many the device has, of all CQs of the base:
	                            whose interrupt, and with it whose processor, tells of them */
	unsigned spin_us;        /* 0: off. Otherwise, for so many microseconds after something
	                            completed on a CQ, at most 1000000, it is polled in each turn
	                            before the loop may sleep on it: less latency for more processor
	                            time. While messages come a turn goes on, until it has told
	                            cq_budget or taken turn_budget_us; with both large nothing else
	                            of the loop runs meanwhile. Whatever completes counts, also what
	                            is cancelled at an end, and the question of keepalive_ms: one
	                            that is shorter keeps it awake for ever. Events of a priority
	                            below data_priority wait so long */
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
 *   EINVAL        the options are larger than this library knows, and used; or one is out of
 *                 range
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

/* What happened to a device. */
enum evrdma_device_event {
	/* It is in the list of devices, and was not before. Only with device_poll_ms. */
	EVRDMA_DEVICE_ARRIVED,
	/* It is being removed. Comes once: from the CM when the base uses the device, or, with
	 * device_poll_ms, because it is in the list no more. Connections are told as well. */
	EVRDMA_DEVICE_REMOVED,
	/* It is broken beyond repair. Its removal may follow at once; if it does not within a
	 * second, each connection and datagram endpoint on it is told, with EIO. */
	EVRDMA_DEVICE_FATAL,
	/* A port can be used, or cannot. Connections stay, and may break for want of answers. */
	EVRDMA_DEVICE_PORT_UP,
	EVRDMA_DEVICE_PORT_DOWN,
	/* The addresses (GIDs, LID), partition keys or subnet manager of a port changed. */
	EVRDMA_DEVICE_PORT_CHANGED
};

/*
 * device is the name, which lives until the callback returns; port_num counts from 1, and is 0 when
 * it is about the device as a whole.
 */
typedef void (*evrdma_base_device_cb)(struct evrdma_base *base, enum evrdma_device_event event,
	const char *device, int port_num, void *arg);

/*
 * Sets the callback for what happens to devices; NULL, the default, drops it. What the devices
 * themselves report (FATAL and the ports) comes while the base uses the device: from its first
 * connection or endpoint there until device_idle_ms after the last. Since 0.1.
 */
void evrdma_base_set_device_cb(struct evrdma_base *base, evrdma_base_device_cb cb, void *arg);

/*
 * For programs that read the asynchronous events of a device themselves, all of whose bases have
 * EVRDMA_BASE_OPT_NO_ASYNC_EVENTS: hands in one that ibv_get_async_event() gave for verbs, before
 * ibv_ack_async_event() is called for it. It is told from the loops of those whom it concerns.
 * Otherwise one base reads them for all bases of the process. Any thread.
 * Returns 0, or -ENODEV when no base uses the device. Since 0.1.
 */
int evrdma_async_event(struct ibv_context *verbs, const struct ibv_async_event *event);

typedef void (*evrdma_base_cb)(struct evrdma_base *base, void *arg);

/*
 * Closes everything on the base, then the base. Each object gets its closed event, then cb (which
 * may be NULL) runs, last; then the base is freed, and with it its own channel. The answers of
 * peers are waited for: of a connection that is closed with the base for its drain_timeout_ms, from
 * evrdma_conn_disconnect() on where that was called; of one that was closed before, a second; of
 * more than 32 of those on a link that is down, until the kernel has given them up, in a minute or
 * more. The loop must run until then: evrdma_base_close(base, NULL, NULL);
 * event_base_dispatch(event_base);
 * Legal in any callback. A second call changes nothing. During evrdma_base_shutdown() it ends the
 * wait, and the callback is the one that was given there. Since 0.1.
 */
void evrdma_base_close(struct evrdma_base *base, evrdma_base_cb cb, void *arg);

/*
 * Closes in an orderly way. Listeners are closed, requests that nobody has answered are rejected,
 * and connections not yet established are closed, each with its closed event. Established ones are
 * disconnected, as by evrdma_conn_disconnect(), and endpoints closed when all their sends are over.
 * When that is done, after timeout_ms at most, the base is closed: see evrdma_base_close(), for cb
 * too; no connection waits for an answer any longer then. No listener, connection, endpoint, group,
 * peer or id is made meanwhile (EPIPE), as on a base that is being closed; pools, shared queues and
 * domains are, and go with the base. Calls with evrdma_base_run_in_loop() run on. Legal in any
 * callback. Returns 0, -EINVAL (timeout_ms is negative), or -EALREADY when the base is being shut
 * down or closed. Since 0.1.
 */
int evrdma_base_shutdown(
	struct evrdma_base *base, int timeout_ms, evrdma_base_cb cb, void *arg);

/*
 * Runs cb once on the base's thread, from the loop, soon. Any thread; libevent's own support for
 * threads (evthread_use_pthreads()) is not needed for it. What was asked for before the
 * base was closed runs before its closed callback; the caller makes sure that this callback, after
 * which the base is gone, does not come during the call. Returns 0, -EINVAL (no cb), -ENOMEM, or
 * -EPIPE when the base is being closed. Since 0.1.
 */
int evrdma_base_run_in_loop(struct evrdma_base *base, evrdma_base_cb cb, void *arg);

/* The event_base and the channel under the base. They stay the base's. Since 0.1. */
struct event_base *evrdma_base_get_event_base(const struct evrdma_base *base);
struct rdma_event_channel *evrdma_base_get_channel(const struct evrdma_base *base);

/* The version of these headers: as text, and as 0xMMmmpp00. */
#define EVRDMA_VERSION "0.1.0"
#define EVRDMA_VERSION_NUMBER 0x00010000

/*
 * The version of the library that runs, as EVRDMA_VERSION and EVRDMA_VERSION_NUMBER are.
 * Any thread. Since 0.1.
 */
const char *evrdma_version(void);
uint32_t evrdma_version_number(void);

#ifdef __cplusplus
}
#endif

#endif
