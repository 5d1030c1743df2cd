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

/* Named ports are in this hundred. */
enum { FIELDS_PORT = 7800, FIELDS_WAIT_MS = 2000 };

/* show */
void fields_show_ids(void);
void fields_show_event(const struct rdma_cm_event *event);

/* step: each ends the program when it fails, and shows all ids afterwards where that says much. */
void fields_must(int ret, const char *what);
/* The device's address, or any address of its family, at the n-th of our ports; 0: none. */
struct sockaddr *fields_addr(int any, int n);
void fields_open(const char *ip);
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
