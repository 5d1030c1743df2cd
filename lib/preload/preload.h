/*
 * What the files of the preload module share.
 *
 * A stream socket of the program begins as TCP's, which takes its options and its address.
 * connect() and listen() decide: where RDMA leads there, the number becomes that of an rsocket,
 * else nothing stands between it and the kernel any more.
 *
 * The program's number is never the rsocket's own, but a duplicate of it: what the program does to
 * its number does not touch the other, and the calls of the libraries below are not taken for the
 * program's. The rsocket is always nonblocking, so that its descriptor shows what poll(2) should
 * say; whether the program's calls wait is told by O_NONBLOCK of the descriptor, which all
 * duplicates share, and of which the rsocket does not know.
 */
#ifndef EVR_PRELOAD_PRELOAD_H
#define EVR_PRELOAD_PRELOAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "util/list.h"

enum evr_pre_state {
	EVR_PRE_UNDECIDED,
	EVR_PRE_CONNECTING, /* the number shows nothing; TCP's socket is kept beside it */
	EVR_PRE_STREAM,
	EVR_PRE_LISTENER, /* of both: the number is an epoll descriptor that watches the two */
	EVR_PRE_CARRIED,  /* the number is an end of a pair, and the rsocket the broker's */
	EVR_PRE_SHARED,	  /* a listener of which the number tells descriptors: broker.h */
	EVR_PRE_DGRAM,	  /* of datagrams: an rsocket from its making */
	EVR_PRE_PLAIN,	  /* TCP's, for good; or it has ended */
};

/* An option that was set, for the rsocket to come. */
struct evr_pre_option {
	TAILQ_ENTRY(evr_pre_option) link;
	int level, name;
	socklen_t len;
	char value[];
};

/* What watches a number whose descriptor may be exchanged. */
struct evr_pre_watch {
	TAILQ_ENTRY(evr_pre_watch) link;
	int epoll_fd, fd;
	struct epoll_event event;
	bool spent; /* it fired, and was to do so once */
};

TAILQ_HEAD(evr_pre_list, evr_pre);

/* One socket of the program, under each of its numbers. */
struct evr_pre {
	atomic_uint refs;     /* one for each number, and for each call */
	pthread_mutex_t lock; /* of what becomes of it, and of the lists */
	_Atomic(enum evr_pre_state) state;
	int domain;
	atomic_int rs; /* -1: there is none, or it is the parent process' */
	int tcp;       /* while it is kept, else -1 */
	int epoll_fd;  /* of a listener, else -1 */
	atomic_bool rs_has_ended; /* a listener's: it stays, for those who call it */
	atomic_bool tcp_is_next;  /* a listener's: what it took last came by RDMA */
	struct sockaddr_storage to; /* what it connects to, or a peer that is carried */
	struct sockaddr_storage own; /* of one that is carried */
	socklen_t to_len;
	atomic_int recv_ms, send_ms; /* SO_RCVTIMEO, SO_SNDTIMEO; 0: for ever */
	int bell;	    /* rung when an attempt has ended; else -1 */
	atomic_int error;   /* of a connect that failed, until it is told */
	atomic_bool is_new; /* a connection of which connect() has not said that it is there */
	struct {	    /* attempt.h */
		bool is_listed, is_ready;
		int fd;
		uint64_t deadline_us, round;
		TAILQ_ENTRY(evr_pre) link;
	} attempt;
	bool is_gone; /* table.c */
	TAILQ_ENTRY(evr_pre) gone;
	TAILQ_HEAD(, evr_pre_option) options;
	TAILQ_HEAD(, evr_pre_watch) watches;
};

/* object: with one reference. NULL: there is no memory. */
struct evr_pre *evr_pre_new(int domain);
void evr_pre_put(struct evr_pre *pre);

/* In a child of fork(): what is by RDMA stays its parent's. */
void evr_pre_leave_to_parent(struct evr_pre *pre);

/* listen: of the two kinds of connections it takes TCP's only. */
void evr_pre_listen_without_rdma(struct evr_pre *pre);

/*
 * table: what a number stands for, or NULL; who got it has to put it. Each entry has a reference.
 * Adding takes the caller's, and fails with -ENOMEM or -EMFILE; an entry whose number was closed
 * behind the module's back is dropped. A child of vfork() may not add any.
 */
struct evr_pre *evr_pre_get(int fd);
bool evr_pre_may_add(void);
int evr_pre_add(int fd, struct evr_pre *pre);
/* A number that the kernel has just given, and nothing is added for: it is only the kernel's. */
int evr_pre_fresh(int fd);
/* close(2) of a number, in one step with the table. */
int evr_pre_close(int fd);
/* fcntl(2) with F_DUPFD and its like, in one step with the table. */
int evr_pre_copy(int fd, int cmd, void *lowest);
/* dup3(2) to a number, in one step with the table. */
int evr_pre_replace(int from, int fd, int flags);
/*
 * All its numbers become duplicates of another descriptor, it is in another state, and what watches
 * them goes on.
 */
void evr_pre_move(struct evr_pre *pre, int to, enum evr_pre_state state);
/* It is the kernel's alone from now on, under all its numbers. */
void evr_pre_forget(struct evr_pre *pre);
/* close_range(2), closefrom(3). */
int evr_pre_close_range(unsigned int first, unsigned int last, int flags);
void evr_pre_close_from(unsigned int first);

/*
 * epoll: what watched its numbers. Nobody watches that one any more; all stop, and go on; none
 * needs to be remembered.
 */
void evr_pre_unwatch(int fd);
void evr_pre_watches_stop(struct evr_pre *pre);
void evr_pre_watches_go_on(struct evr_pre *pre);
void evr_pre_watches_forget(struct evr_pre *pre);

/*
 * How most calls begin. NULL: the number is the kernel's affair, at least so far. Otherwise it has
 * an rsocket, whose connection may still be on its way.
 */
struct evr_pre *evr_pre_enter(int fd);
/*
 * For calls that move bytes: those of one that is carried are the kernel's. They wait for a
 * connection that is on its way, unless flags say no; errno says why one does not move any yet.
 */
struct evr_pre *evr_pre_enter_io(int fd, int flags);
bool evr_pre_moves_bytes(const struct evr_pre *pre);
ssize_t evr_pre_leave(struct evr_pre *pre, ssize_t ret);

/* A nonblocking rsocket with the options of the socket, or -1; type: stream or dgram. */
int evr_pre_open(struct evr_pre *pre, int domain, int type);
/*
 * What is just being brought to its end comes to it: whoever has seen what a number shows then is
 * to find the state that belongs to it.
 */
void evr_pre_settle(struct evr_pre *pre);
/* connect: waits for the end of an attempt. 0, or -EAGAIN (after the time), -EINTR, -EMFILE. */
int evr_pre_await(struct evr_pre *pre, int fd);
/* Ends an attempt, whose lock is held, for shutdown(2). 0 or -errno. */
int evr_pre_abandon(struct evr_pre *pre, int how);

/* wait: whether calls are to wait. */
bool evr_pre_waits(const struct evr_pre *pre, int flags);
bool evr_pre_is_nonblocking(int fd);
/* Until it has one of the events. 0, or -1 with EAGAIN (after the time) or EINTR. */
int evr_pre_wait(struct evr_pre *pre, short events);
/* The same of a descriptor. */
int evr_pre_wait_fd(int fd, short events, int timeout_ms);
/* A signal that was caught ends calls that wait, and is not one of those that start them anew. */
bool evr_pre_is_interrupted(void);

/*
 * name: as much of it as there is room for; an IPv6 socket says IPv4 addresses its own way, and so
 * does the name then.
 */
void evr_pre_say_name(const struct evr_pre *pre, struct sockaddr_storage *name,
	struct sockaddr *addr, socklen_t *len);

/* stream: all that the calls of one direction come to. */
ssize_t evr_pre_recv(struct evr_pre *pre, struct msghdr *msg, int flags);
ssize_t evr_pre_send(struct evr_pre *pre, const struct msghdr *msg, int flags);

/* dgram: the same for datagrams: one message each. */
ssize_t evr_pre_dgram_recv(struct evr_pre *pre, struct msghdr *msg, int flags);
ssize_t evr_pre_dgram_send(struct evr_pre *pre, const struct msghdr *msg, int flags);

/* option: remembers what was set, and gives it to an rsocket. */
void evr_pre_remember(struct evr_pre *pre, int level, int name, const void *value, socklen_t len);
void evr_pre_apply_options(struct evr_pre *pre, int rs);
/* The timeouts that TCP's socket has. */
void evr_pre_take_timeouts(struct evr_pre *pre, int tcp);
/* The same for another socket of the kernel's. */
void evr_pre_give_timeouts(int from, int to);

/* What is left of a type of socket(2) without its flags. */
static inline int evr_pre_kind_of(int type)
{
	return type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* rules: whether sockets of that kind are taken, for this program. */
bool evr_pre_is_wanted(int domain, int type, int protocol);

#endif
