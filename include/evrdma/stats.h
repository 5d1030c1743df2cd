/*
 * What the library counts. Counters only grow, as long as their object lives; those called "now"
 * go up and down. All are taken on the thread of the object's base, and each structure grows at its
 * end only: a program that is older than the library gets what it knows, a newer one finds zeroes.
 */
#ifndef EVRDMA_STATS_H
#define EVRDMA_STATS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct evrdma_base;
struct evrdma_conn;
struct evrdma_dgram;
struct evrdma_listener;
struct evrdma_pool;

/* What went through a connection or an endpoint, or through all of a base, past ones included. */
struct evrdma_traffic_stats {
	size_t size;                /* set by the call */
	uint64_t sends;             /* sends taken; replies that wait for an address too */
	uint64_t writes;            /* RDMA writes taken; those that keepalive makes too */
	uint64_t reads;             /* RDMA reads taken; the same */
	uint64_t atomics;           /* atomics taken */
	uint64_t bytes_sent;        /* bytes of those sends */
	uint64_t bytes_written;     /* of those writes */
	uint64_t bytes_read;        /* of those reads */
	uint64_t work_done;         /* of all four, what is complete */
	uint64_t work_failed;       /* what failed */
	uint64_t work_cancelled;    /* what ended with ECANCELED */
	uint64_t messages_received; /* messages that came, immediate data after a write included */
	uint64_t bytes_received;    /* bytes of those messages, without a datagram's header */
	uint64_t receive_errors;    /* receives that failed, but those that were cancelled */
	uint64_t send_chains;       /* calls that gave work to the device */
	uint64_t receive_chains;    /* calls that gave buffers to the device; of an SRQ: in the
	                               base's only */
	uint64_t eagains;           /* submits refused because the queue was full */
	uint64_t writables;         /* WRITABLE events told */
	uint64_t rnr_errors;        /* connections broken because the peer had no buffer */
	uint64_t retry_errors;      /* connections broken because the peer did not acknowledge */
	uint64_t receive_queue_empty; /* times that all buffers posted here were used before the
	                                 library had told of them: if the peer sent more, it had
	                                 to wait, or its datagrams are lost. Of an SRQ: in the
	                                 base's only */
	uint64_t receives_waiting;  /* now: receives that came while reading was disabled, and wait
	                               to be told */
};

struct evrdma_base_stats {
	size_t size;                    /* set by the call */
	uint64_t connections;           /* now: objects, in whatever state */
	uint64_t connections_connected; /* established by a connect */
	uint64_t connections_accepted;  /* established by an accept */
	uint64_t connections_failed;    /* that ended in ERROR, established or not */
	uint64_t endpoints;             /* now: datagram endpoints */
	uint64_t requests_pending;      /* now: requests that nobody has answered */
	uint64_t requests_accepted;     /* requests that a connection or an endpoint took over */
	uint64_t requests_rejected;     /* by the program */
	uint64_t requests_refused;      /* by the library: a limit, no memory, the time is up, or
	                                   their listener or base was closed */
	uint64_t completions;           /* completions taken */
	uint64_t polls;                 /* looks into a completion queue */
	uint64_t arms;                  /* requests to be told of a completion */
	uint64_t cq_events;             /* times that the completion channel told of one */
	uint64_t cm_events;             /* events of the CM */
	uint64_t turns;                 /* turns of the loop that the base took part in */
	uint64_t tasks;                 /* steps of connection work */
	uint64_t turns_over_budget;     /* turns in which steps were left for the next one */
	uint64_t longest_turn_us;       /* the longest turn, in microseconds, callbacks included */
	uint64_t registrations;         /* memory registered */
	uint64_t registrations_now;     /* now: what of it is */
	uint64_t bytes_pinned;          /* now: bytes of it, once for each protection domain */
	uint64_t bytes_pinned_max;      /* the most that were at once */
	uint64_t quota_errors;          /* registrations refused by max_pinned_bytes */
	uint64_t address_handles;       /* now: in the caches of endpoints, used or not */
	uint64_t ids_lingering;         /* now: ids of closed connections whose peers have not
	                                   answered */
};

struct evrdma_listener_stats {
	size_t size;                   /* set by the call */
	uint64_t requests;             /* requests that came */
	uint64_t pending;              /* now: those that nobody has answered */
	uint64_t accepted;             /* those that a connection or an endpoint took over */
	uint64_t rejected;             /* by the program */
	uint64_t moved;                /* to another base */
	uint64_t connections;          /* now: what counts against max_connections */
	uint64_t refused_connections;  /* by the library, for max_connections */
	uint64_t refused_pending;      /* for max_pending */
	uint64_t refused_source;       /* for max_pending_per_source */
	uint64_t refused_no_memory;    /* for want of memory */
	uint64_t timed_out;            /* not answered in request_timeout_ms */
};

struct evrdma_pool_stats {
	size_t size;           /* set by the call */
	uint64_t bufs;         /* now: buffers that there is memory for */
	uint64_t bufs_out;     /* now: buffers that somebody holds, the library included */
	uint64_t bufs_out_max; /* the most that were at once: the high-water mark */
	uint64_t gets;         /* buffers taken out, by the program or the library */
	uint64_t get_errors;   /* times that there was none */
	uint64_t slabs;        /* now: pieces of memory that they are carved from */
	uint64_t slabs_huge;   /* now: those on huge pages */
	uint64_t bytes;        /* now: bytes of all slabs */
};

/*
 * Fill the structure with what is counted up to now. Cost no system call. Each is called by the
 * macro of its name below, which adds the size. Since 0.1.
 */
void evrdma_base_get_stats_sized(
	const struct evrdma_base *base, struct evrdma_base_stats *stats, size_t size);
void evrdma_base_get_traffic_stats_sized(
	const struct evrdma_base *base, struct evrdma_traffic_stats *stats, size_t size);
void evrdma_conn_get_stats_sized(
	const struct evrdma_conn *conn, struct evrdma_traffic_stats *stats, size_t size);
void evrdma_dgram_get_stats_sized(
	const struct evrdma_dgram *dgram, struct evrdma_traffic_stats *stats, size_t size);
void evrdma_listener_get_stats_sized(
	const struct evrdma_listener *listener, struct evrdma_listener_stats *stats, size_t size);
void evrdma_pool_get_stats_sized(
	const struct evrdma_pool *pool, struct evrdma_pool_stats *stats, size_t size);

#define evrdma_base_get_stats(base, stats)                                                         \
	evrdma_base_get_stats_sized((base), (stats), sizeof(*(stats)))
#define evrdma_base_get_traffic_stats(base, stats)                                                 \
	evrdma_base_get_traffic_stats_sized((base), (stats), sizeof(*(stats)))
#define evrdma_conn_get_stats(conn, stats)                                                         \
	evrdma_conn_get_stats_sized((conn), (stats), sizeof(*(stats)))
#define evrdma_dgram_get_stats(dgram, stats)                                                       \
	evrdma_dgram_get_stats_sized((dgram), (stats), sizeof(*(stats)))
#define evrdma_listener_get_stats(listener, stats)                                                 \
	evrdma_listener_get_stats_sized((listener), (stats), sizeof(*(stats)))
#define evrdma_pool_get_stats(pool, stats)                                                         \
	evrdma_pool_get_stats_sized((pool), (stats), sizeof(*(stats)))

/* text is one line without a newline, and lives until the callback returns. */
typedef void (*evrdma_dump_cb)(const char *text, void *arg);

/*
 * Tells all that is counted of the base and of everything on it as text, for people: a line for
 * each value that is not 0, "object: name value", where the names are those of the structures
 * above. A listener is told by its port, a connection by its two addresses. cb runs inside the
 * call, and makes no call of this library. Since 0.1.
 */
void evrdma_base_dump(const struct evrdma_base *base, evrdma_dump_cb cb, void *arg);

#ifdef __cplusplus
}
#endif

#endif
