/* What the files of the fields program share: who plays, the steps, and how it is shown. */
#ifndef INTEROP_FIELDS_H
#define INTEROP_FIELDS_H

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>

/* Whom a scenario has; what is NULL is not shown. */
struct fields_cast {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *client, *server, *joiner;
};

extern struct fields_cast cast;

/*
 * How many ports a scenario may name: each has its own, since a pair of ports is not to be had
 * again at once where a connection is one of TCP.
 */
enum { FIELDS_PORTS = 10, FIELDS_WAIT_MS = 2000 };

/* show */
void fields_show_ids(void);
void fields_show_event(const struct rdma_cm_event *event);

/* step: each ends the program when it fails, and shows all ids afterwards where that says much. */
void fields_must(int ret, const char *what);
/* The device's address, or any address of its family, at the n-th of our ports; 0: none. */
struct sockaddr *fields_addr(int any, int n);
/* Which of our ports it is, 0 if none. */
unsigned fields_port(in_port_t port);
/* Our ports begin at the one given. */
void fields_open(const char *ip, unsigned port);
void fields_close(void);
/* The next event, which has to be of the type. */
void fields_await(enum rdma_cm_event_type type);
/* The events of both sides, in whatever order they come. */
void fields_await_both(enum rdma_cm_event_type type);
void fields_make_qp(struct rdma_cm_id *id);
struct rdma_cm_id *fields_bound(enum rdma_port_space ps, struct sockaddr *addr, int context);
void fields_listen(enum rdma_port_space ps, int any);
void fields_resolve(enum rdma_port_space ps);
void fields_disconnect(void);

#endif
