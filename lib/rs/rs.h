/*
 * What the files of rsockets share.
 *
 * One rsocket is held by the table, under its number, until rclose(), by each call that works on
 * it, and by the helper while it watches it. All of it is guarded by its lock, which nobody holds
 * while sleeping. rclose() marks it closed, and wakes those who sleep, who leave. Its verbs and CM
 * objects end when all is said, under the lock, by whoever sees to that: it is EVR_RS_CLOSED then,
 * and nobody touches them any more. The memory ends with the last reference.
 *
 * A connection that is being accepted belongs to its listener, is in no table, and is guarded by
 * the listener's lock, until raccept() returns it.
 */
#ifndef EVR_RS_RS_H
#define EVR_RS_RS_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/stream.h"
#include "rs/settings.h"
#include "rs/transport.h"
#include "util/list.h"

enum evr_rs_state {
	EVR_RS_NEW, /* or bound */
	EVR_RS_LISTENING,
	EVR_RS_RESOLVING_ADDR,
	EVR_RS_RESOLVING_ROUTE,
	EVR_RS_CONNECTING, /* the request is on its way */
	EVR_RS_REQUESTED,  /* a listener's: the request waits to be answered */
	EVR_RS_ACCEPTING,  /* a listener's: the reply is on its way */
	EVR_RS_CONNECTED,  /* what goes on from here is the stream's affair */
	EVR_RS_OPEN,	   /* a datagram socket that has an address */
	EVR_RS_FAILED,	   /* to connect */
	EVR_RS_CLOSED,
};

struct evr_rs_mapping;
struct evr_rs_dgram;
struct evr_rs_route;

/* Who sleeps on an rsocket: others wake it by its descriptor. */
struct evr_rs_sleeper {
	TAILQ_ENTRY(evr_rs_sleeper) link;
	int fd;
	bool polls; /* in rpoll(), where it looks at all of it when it wakes up */
};

TAILQ_HEAD(evr_rs_list, evr_rs);

/* What the peer of a connection that is being accepted asked for. */
struct evr_rs_request {
	struct evr_conndata peer;
	uint8_t responder_resources, initiator_depth;
	uint64_t until_us; /* how long it keeps its place for certain, once it is answered */
};

/* What a listener has of its own. */
struct evr_rs_listener {
	struct evr_rs_list requested; /* EVR_RS_REQUESTED: nothing of theirs is made yet */
	struct evr_rs_list accepting;
	struct evr_rs_list accepted;
	unsigned int waiting; /* how many are requested */
	unsigned int backlog; /* how many may be accepting and accepted */
	unsigned int taken;   /* how many are */
	int want;	      /* 0 or -errno: of what a peer was refused for; to be told once */
	bool has_timer;	      /* for those who wait until a place is free */
	int timer_fd;
};

struct evr_rs {
	pthread_mutex_t lock;
	atomic_uint refs;
	int fd;	      /* the number: the user's end of a pair */
	int other_fd; /* the other end */
	int domain;
	struct evr_rs_dgram *dgram; /* what a datagram socket has; NULL: it is a stream */
	enum evr_rs_state state;
	int error; /* 0 or -errno: why it is EVR_RS_FAILED */
	bool told; /* the user knows the error */
	bool unsaid; /* rconnect() did not wait, and is still to say that it is connected */
	int why;   /* 0 or -errno: what the CM said ended the connection */
	int deaf;  /* 0 or -errno: why what comes cannot be read, or watched */
	bool unanswered; /* on iWARP: the request is with the peer */
	bool apart;	 /* nobody's: see linger.c */
	bool held;	 /* on iWARP: the peer, which connected, has to speak first */
	bool refused;	 /* the device took no work; why, was looked for */
	bool nonblock;
	bool in_repoll; /* it was put there: its number shows what there is from then on */
	struct evr_rs_options options;
	struct evr_rs_route *route; /* to connect by, in place of what is looked up; or NULL */
	uint64_t look_us;		    /* when to ask it again while connected */
	uint8_t turns;			    /* without having asked */
	struct rdma_event_channel *channel; /* NULL while it is a listener's */
	struct rdma_cm_id *id;
	struct sockaddr_storage bound; /* to what the user bound it */
	bool named;		       /* and was told the port that it got */
	struct sockaddr_storage peer;  /* to connect to, or who asked to be accepted */
	unsigned int attempts;	       /* to resolve it */
	unsigned int ports;	       /* that it was tried from */
	struct evr_rs_transport transport;
	struct evr_stream stream;
	struct evr_rs_listener listener;
	struct evr_rs_request request;
	TAILQ_HEAD(, evr_rs_mapping) mappings;
	/* What the number shows, and who looks after it: helper.h. */
	struct {
		bool readable, full, rdhup, hangup;
	} shown;
	bool watched, cq_watched, cq_muted;
	bool by_rpoll, late;
	bool touched;	     /* since the helper saw it last, */
	uint64_t rpolled_us; /* and when that saw it */
	struct {
		bool on;
		int fd; /* a timer */
		uint32_t count;
	} keepalive;
	bool ends_apart;      /* with its last reference, in a thread of end.c's */
	bool closed;	      /* its number: to others it is EBADF, whatever is still said */
	atomic_bool closing;  /* the helper sees to what is left to do, */
	uint64_t deadline_us; /* until then */
	TAILQ_ENTRY(evr_rs) helper_link;
	TAILQ_ENTRY(evr_rs) end_link;
	TAILQ_ENTRY(evr_rs) link; /* of a listener's lists */
	TAILQ_HEAD(, evr_rs_sleeper) sleepers;
};

/*
 * socket: a new one has nothing yet, and one reference. Its parts: the number, which may be
 * SOCK_CLOEXEC; a channel that never waits; an id on a channel of its own, bound as it was before.
 */
int evr_rs_new(const struct evr_rs_options *options, int domain, struct evr_rs **rs);
int evr_rs_open_pair(struct evr_rs *rs, int flags);
int evr_rs_open_channel(struct rdma_event_channel **channel);
int evr_rs_open_id(struct evr_rs *rs);
/*
 * What the number has shown of an end cannot be undone: another pair takes its place. 0 or -errno,
 * and it is as it was.
 */
int evr_rs_renew_pair(struct evr_rs *rs);
/* Begins again, after one whose port was taken: so many are tried. */
enum { EVR_RS_PORTS = 10 };
int evr_rs_reopen(struct evr_rs *rs);
/*
 * name: 0 for an address that one of its domain can have, or -EINVAL, -EAFNOSUPPORT. The user has
 * given it a port.
 */
int evr_rs_check_name(const struct evr_rs *rs, const struct sockaddr *addr, socklen_t len);
bool evr_rs_has_port(const struct evr_rs *rs);
/* Puts it into the table, which holds it from now on; when that fails it has ended. */
int evr_rs_publish(struct evr_rs *rs);
void evr_rs_put(struct evr_rs *rs);
/* Ends all that it has, but for the memory and the number. */
void evr_rs_end(struct evr_rs *rs);

/*
 * end: hands the last reference to another thread, for what may take the kernel long to end. False:
 * there can be none. A child of fork() has nothing that its parent was about to end.
 */
bool evr_rs_end_apart(struct evr_rs *rs);
/* Waits a moment for what is being ended so, which may have a port still. Whether there was any. */
bool evr_rs_end_settles(void);
void evr_rs_end_before_fork(void);
void evr_rs_end_after_fork(void);
void evr_rs_end_begin_child(void);

/*
 * table: what a number stands for; who got it has to put it. Adding returns what stood there, whose
 * descriptor somebody closed without rclose(), or NULL.
 */
int evr_rs_table_add(int fd, struct evr_rs *rs, struct evr_rs **stale);
struct evr_rs *evr_rs_get(int fd);
/* Without waiting: NULL, too, while another thread is about to get it. */
struct evr_rs *evr_rs_try(int fd);
struct evr_rs *evr_rs_table_remove(int fd);
/* The first number from there on that stands for one, or -1. */
int evr_rs_table_next(int fd);
/* There is, or was, any. */
bool evr_rs_table_is_used(void);
/* In a child of fork(): none of them is there. */
void evr_rs_table_clear(void);

/* fork: from now on it is safe beside other threads. Then: what getpid(2) says, without asking. */
int evr_rs_watch_forks(void);
pid_t evr_rs_pid(void);

/*
 * call: how a call begins and ends. Finds and locks; NULL: errno is EBADF. Unlocks and puts; 0 or
 * more is returned, -errno becomes -1 and errno.
 */
struct evr_rs *evr_rs_enter(int fd);
ssize_t evr_rs_leave(struct evr_rs *rs, ssize_t ret);
ssize_t evr_rs_result(ssize_t ret);

/*
 * name: as much as there is room for; the length is that of the whole. 0, -EFAULT, or -EINVAL for
 * less room than none.
 */
int evr_rs_copy_name(const struct sockaddr *name, struct sockaddr *addr, socklen_t *addrlen);

/*
 * event: reads what the CM has to say, without waiting, and not for ever if there is always more.
 * Whether there was anything.
 */
bool evr_rs_read_events(struct evr_rs *rs);
/* Nobody can say what comes: so that is what its user is told. */
void evr_rs_deafen(struct evr_rs *rs, int error);
/* What of an event is needed, for it is acknowledged first. */
struct evr_rs_event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id;
	uint8_t responder_resources, initiator_depth;
	uint8_t data[EVR_CONNDATA_IB_PREFIX + EVR_CONNDATA_LEN];
	size_t len;
};
/* 0 or -errno of what failed. */
int evr_rs_event_error(const struct evr_rs_event *event);
/* One that is connected, whether its user has accepted it or not yet. */
void evr_rs_connected_event(struct evr_rs *rs, const struct evr_rs_event *event);

/* connect: where it has come to with an event, or with an error. */
void evr_rs_connect_event(struct evr_rs *rs, const struct evr_rs_event *event);
void evr_rs_connect_fail(struct evr_rs *rs, int error);
/* What both sides ask for. */
struct rdma_conn_param evr_rs_conn_param(const struct evr_rs *rs, const void *data, size_t len);
size_t evr_rs_describe(const struct evr_rs *rs, size_t prefix, uint8_t *data, size_t size);
bool evr_rs_is_connecting(const struct evr_rs *rs);

/* listen */
void evr_rs_listener_event(struct evr_rs *listener, const struct evr_rs_event *event);
/* A connection that is being accepted, of the listener. */
void evr_rs_child_event(
	struct evr_rs *listener, struct evr_rs *child, const struct evr_rs_event *event);
void evr_rs_listener_end(struct evr_rs *listener);

/*
 * backlog: those that wait get places, as far as there are any; or those of who has not answered in
 * time, all events being read. The timer has rung: returns whether events were read.
 * The timer goes, before the number of its listener does. One gives up its place, and goes on; or
 * ends with it.
 */
void evr_rs_backlog_fill(struct evr_rs *listener);
void evr_rs_backlog_expire(struct evr_rs *listener);
bool evr_rs_backlog_due(struct evr_rs *listener);
void evr_rs_backlog_stop(struct evr_rs *listener);
void evr_rs_backlog_leave(struct evr_rs *listener, struct evr_rs *child);
void evr_rs_backlog_drop(struct evr_rs *listener, struct evr_rs *child);
/* A peer is refused for -errno: raccept() has to tell, if that is a want of this process. */
void evr_rs_backlog_refuse(struct evr_rs *listener, struct rdma_cm_id *id, int error);

/* progress: posts what the stream hands out by itself. */
void evr_rs_pump(struct evr_rs *rs);
/* Takes what has completed, or what the CM tells while there is no connection. */
bool evr_rs_poll_cq(struct evr_rs *rs);
/* The queue cannot be polled, or its channel not be read: what was there is lost. */
void evr_rs_lose_cq(struct evr_rs *rs);
bool evr_rs_progress(struct evr_rs *rs);
/* The same of both, for who looks once: what has completed hides nothing. */
bool evr_rs_progress_in_all(struct evr_rs *rs);
/* The same without the CM, for who will sleep on its channel if there is nothing. */
bool evr_rs_take_arrivals(struct evr_rs *rs);
/* One who may go on for ever without sleeping begins again: now and then that asks the CM. */
void evr_rs_count_turn(struct evr_rs *rs);
/* Posts; own: where the bytes are that the work has of the caller's memory. */
void evr_rs_post(
	struct evr_rs *rs, const struct evr_stream_work *work, const void *own, uint32_t lkey);

/*
 * wait: until there is something new, or the time is over. Begin with evr_rs_wait_until(), then
 * take what has arrived, look, and wait in turns: a wait may be none, only to look again. 0, or
 * -ETIMEDOUT, -EINTR, -EBADF (it was closed meanwhile), -EMFILE, -ENOMEM.
 */
struct evr_rs_wait {
	uint64_t deadline_us; /* UINT64_MAX: never */
	uint64_t spin_us;     /* until when not to sleep; 0: not known yet */
	bool closes;	      /* it goes on after the number was closed */
};
struct evr_rs_wait evr_rs_wait_until(uint64_t deadline_us);
int evr_rs_wait(struct evr_rs *rs, struct evr_rs_wait *wait);
/*
 * The same for a limit of the user's, SO_RCVTIMEO or SO_SNDTIMEO: 0 is for ever, less is not at
 * all. Then -EAGAIN is what is over.
 */
struct evr_rs_wait evr_rs_wait_for(int64_t limit_us);
int evr_rs_wait_again(struct evr_rs *rs, struct evr_rs_wait *wait);
/* The same in parts, for several at once. Arming: whether there was something new meanwhile. */
int evr_rs_sleeper_fd(void);
void evr_rs_sleeper_begin_child(void);
bool evr_rs_arm(struct evr_rs *rs);
void evr_rs_sleep_on(struct evr_rs *rs, struct evr_rs_sleeper *sleeper);
void evr_rs_sleep_off(struct evr_rs *rs, struct evr_rs_sleeper *sleeper);
enum { EVR_RS_SLEEP_FDS = 2 };
/* Where it is told of what arrives, or -1. */
int evr_rs_arrivals_fd(const struct evr_rs *rs);
/* Something may arrive. */
static inline bool evr_rs_is_going(const struct evr_rs *rs)
{
	return rs->state == EVR_RS_CONNECTED || rs->state == EVR_RS_OPEN;
}
/* What to poll for it; returns how many. */
int evr_rs_sleep_fds(const struct evr_rs *rs, struct pollfd fds[EVR_RS_SLEEP_FDS]);
/* An event of the completion channel. */
void evr_rs_take_cq_event(struct evr_rs *rs);
/* What was seen there. Wakes the others if it was anything: they may have waited for that. */
void evr_rs_slept(struct evr_rs *rs, const struct pollfd *fds, int num);
void evr_rs_drain_sleeper(int fd);
/* Wakes all who sleep on it. */
void evr_rs_wake(struct evr_rs *rs);

/* Its stream ends with this, unless it has ended; those that sleep on it learn of it. */
void evr_rs_fail(struct evr_rs *rs, int error);

/* iomap: of all that was shown to the peer, nothing is any more. */
void evr_rs_unmap_all(struct evr_rs *rs);

/* repoll: ends an instance; 0, or -EBADF for what is none. A child of fork() has its parent's. */
int evr_rs_repoll_close(int fd);
void evr_rs_repoll_begin_child(void);

/* poll: what poll(2) would say. */
short evr_rs_poll_events(const struct evr_rs *rs, short wanted);
enum { EVR_RS_RDHUP = 0x2000 }; /* POLLRDHUP */

/* It has failed, or both sides have said that they send no more: TCP has no connection then. */
static inline bool evr_rs_is_over(const struct evr_rs *rs)
{
	return rs->stream.error || (rs->stream.tx_ended && rs->stream.peer_shutdown);
}

/* close: all that was sent has arrived, or will not. A child of fork() is in no rclose(). */
bool evr_rs_has_arrived(struct evr_rs *rs);
/* The last of it, where the kernel keeps nobody: the helper, or an rclose() that does not wait. */
void evr_rs_close_unwaited(struct evr_rs *rs);
void evr_rs_close_begin_child(void);

#endif
