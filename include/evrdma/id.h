/*
 * evrdma_id: one rdma_cm_id in the loop. The thin layer: one call and one completion callback per
 * operation of rdma_cm(7), for programs that manage their QPs themselves.
 */
#ifndef EVRDMA_ID_H
#define EVRDMA_ID_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <evrdma/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rdma_cm_id;
struct rdma_cm_event;
struct rdma_conn_param;
struct evrdma_base;
struct evrdma_id;

/*
 * An event that answers no operation: CONNECT_REQUEST, DISCONNECTED, DEVICE_REMOVAL, ADDR_CHANGE,
 * TIMEWAIT_EXIT, MULTICAST_ERROR, UNREACHABLE. event was acknowledged already: it and its private
 * data are copies that live until the callback returns. A CONNECT_REQUEST brings a new id,
 * event->id, for evrdma_id_adopt() or rdma_destroy_id(). event is NULL when the id was closed: that
 * is the last callback, and the object is freed when it returns.
 */
typedef void (*evrdma_id_event_cb)(
	struct evrdma_id *id, const struct rdma_cm_event *event, void *arg);

/*
 * An operation is over, exactly once: error is NULL for success, and ECANCELED when the id was
 * closed first. event is what the kernel answered, or NULL; both live until the callback returns.
 */
typedef void (*evrdma_id_done_cb)(struct evrdma_id *id, const struct evrdma_error *error,
	const struct rdma_cm_event *event, void *arg);

/*
 * Makes an id in a port space (enum rdma_port_space) on the base. Costs one system call.
 * Returns NULL and sets errno: EINVAL (no such port space), ENOMEM, EPIPE (the base is being
 * closed), or why the base's event channel cannot be read any more. Since 0.1.
 *
 * When it cannot be read, what is under way ends with EVRDMA_STEP_CHANNEL. An id that only listens,
 * or has nothing under way, is told of nothing, as no event of the CM's says it: its next call that
 * an event would answer gives the error, and the log has it at once (EVRDMA_LOG_ERROR). An
 * evrdma_listener and an evrdma_conn are told.
 */
struct evrdma_id *evrdma_id_new(
	struct evrdma_base *base, int port_space, evrdma_id_event_cb cb, void *arg);

/*
 * Takes an id made elsewhere. One that is on another channel is moved to the base's, and must have
 * no event that was read but not acknowledged. The id and its QP are destroyed with the object; its
 * context field is left alone. Returns NULL and sets errno: EEXIST (somebody here has it), ENOMEM,
 * EPIPE, or the kernel's error; then the id is still the caller's. Since 0.1.
 */
struct evrdma_id *evrdma_id_adopt(
	struct evrdma_base *base, struct rdma_cm_id *cm_id, evrdma_id_event_cb cb, void *arg);

/*
 * Calls that answer at once: 0 or the kernel's error as -errno. What they do is what
 * rdma_bind_addr(), rdma_listen(), rdma_reject(), rdma_leave_multicast() and rdma_migrate_id() do.
 * But -EINVAL for a reject of what this side asked of its peer by connect or accept, as long as
 * that is not answered: the kernel would then hold the end of the id for a minute. Since 0.1.
 */
int evrdma_id_bind(struct evrdma_id *id, const struct sockaddr *addr);
int evrdma_id_listen(struct evrdma_id *id, int backlog);
int evrdma_id_reject(struct evrdma_id *id, const void *data, size_t len);
int evrdma_id_leave(struct evrdma_id *id, const struct sockaddr *addr);
int evrdma_id_migrate(struct evrdma_id *id, struct evrdma_base *base);

/*
 * Operations that end in cb. One of resolve_addr, resolve_route, connect, accept may be under way
 * at a time, beside one disconnect and one join. timeout_ms must be more than 0. param may be NULL
 * as for rdma_connect().
 * An accept of a datagram id is over when the kernel has taken it. A group is joined once, until it
 * is left; so is one whose join failed: -EADDRINUSE, as the kernel would end the wrong of the two.
 * A disconnect before the connect or accept was answered begins when it is, and ends with it when
 * that fails.
 * Return 0, or -errno when it did not begin: -EBUSY (one is under way; or a disconnect on iWARP
 * before the connect or accept was answered, where the kernel would wait), -EINVAL (also an accept
 * while a connect or accept is not answered, even if it timed out), -ENOMEM, the kernel's error.
 * Since 0.1.
 */
int evrdma_id_resolve_addr(struct evrdma_id *id, const struct sockaddr *src,
	const struct sockaddr *dst, int timeout_ms, evrdma_id_done_cb cb, void *arg);
int evrdma_id_resolve_route(struct evrdma_id *id, int timeout_ms, evrdma_id_done_cb cb, void *arg);
int evrdma_id_connect(struct evrdma_id *id, const struct rdma_conn_param *param, int timeout_ms,
	evrdma_id_done_cb cb, void *arg);
int evrdma_id_accept(struct evrdma_id *id, const struct rdma_conn_param *param, int timeout_ms,
	evrdma_id_done_cb cb, void *arg);
int evrdma_id_join(struct evrdma_id *id, const struct sockaddr *addr, uint32_t join_flags,
	evrdma_id_done_cb cb, void *arg);
int evrdma_id_disconnect(struct evrdma_id *id, evrdma_id_done_cb cb, void *arg);

/* The id underneath, NULL after close. It stays the object's. Since 0.1. */
struct rdma_cm_id *evrdma_id_get_cm_id(const struct evrdma_id *id);

/*
 * Closes: operations end with ECANCELED, the QP and the id are destroyed in a later turn, then the
 * event callback gets NULL. On iWARP that waits, in the loop, until a connect or accept that is
 * under way was answered (see evrdma_conn_close()). Legal in every callback; a second call changes
 * nothing. NULL is fine. Since 0.1.
 */
void evrdma_id_close(struct evrdma_id *id);

#ifdef __cplusplus
}
#endif

#endif
