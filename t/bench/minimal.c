/*
 * What a program with nothing in it that is not needed makes of a ping on libevent and verbs: one
 * queue pair, one completion channel in the loop, sends of which each eighth is signalled. The
 * measure that evrdma-perf's is held against.
 *
 *	minimal PORT ADDRESS           the server, which ends with its client
 *	minimal PORT ADDRESS COUNT     the client; prints the microseconds of a round
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "bench.h"

enum { BYTES = 64, DEPTH = 32, SIGNALLED = 8 };

static struct rdma_cm_id *id;
static struct event_base *loop;
static struct ibv_mr *mr;
static char memory[DEPTH + 1][BYTES];
static long left, sent;
static int is_client, broken;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void post_recv(uint64_t slot)
{
	if (rdma_post_recv(id, (void *)(uintptr_t)slot, memory[slot], BYTES, mr))
		die("rdma_post_recv");
}

/* The queue has room: a reply tells that what was sent before is through. */
static void post_send(void)
{
	struct ibv_wc wc;
	int flags = ++sent % SIGNALLED ? 0 : IBV_SEND_SIGNALED;

	if (sent % SIGNALLED == 1 && sent > SIGNALLED)
		ibv_poll_cq(id->send_cq, 1, &wc);
	if (rdma_post_send(id, NULL, memory[DEPTH], BYTES, mr, flags))
		die("rdma_post_send");
}

static void message_came(uint64_t slot)
{
	post_recv(slot);
	left--;
	if (!is_client || left)
		post_send();
	if (!left)
		event_base_loopbreak(loop);
}

static void drain(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(id->recv_cq, 1, &wc) > 0) {
		if (wc.status == IBV_WC_SUCCESS)
			message_came(wc.wr_id);
		else
			broken = 1;
	}
	if (broken)
		event_base_loopbreak(loop);
}

static void woken(evutil_socket_t fd, short what, void *arg)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(id->recv_cq_channel, &cq, &context))
		die("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		die("ibv_req_notify_cq");
	drain();
}

static struct rdma_cm_id *make(const char *port, const char *addr, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *found;
	struct ibv_qp_init_attr attr = { .cap = { DEPTH, DEPTH, 1, 1, 0 } };
	struct rdma_cm_id *made;

	if (rdma_getaddrinfo(addr, port, &hints, &found))
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&made, found, NULL, &attr))
		die("rdma_create_ep");
	rdma_freeaddrinfo(found);
	return made;
}

static void get_ready(void)
{
	mr = rdma_reg_msgs(id, memory, sizeof(memory));
	if (!mr)
		die("rdma_reg_msgs");
	for (uint64_t slot = 0; slot < DEPTH; slot++)
		post_recv(slot);
	if (ibv_req_notify_cq(id->recv_cq, 0))
		die("ibv_req_notify_cq");
}

static void connect_to(const char *port, const char *addr)
{
	id = make(port, addr, 0);
	get_ready();
	if (rdma_connect(id, NULL))
		die("rdma_connect");
}

static void accept_on(const char *port, const char *addr)
{
	struct rdma_cm_id *listener = make(port, addr, RAI_PASSIVE);

	if (rdma_listen(listener, 1) || rdma_get_request(listener, &id))
		die("rdma_get_request");
	get_ready();
	if (rdma_accept(id, NULL))
		die("rdma_accept");
	rdma_destroy_ep(listener);
}

static void run(void)
{
	struct event *event;

	loop = event_base_new();
	event = event_new(loop, id->recv_cq_channel->fd, EV_READ | EV_PERSIST, woken, NULL);
	event_add(event, NULL);
	if (is_client)
		post_send();
	drain();
	if (left && !broken)
		event_base_dispatch(loop);
	event_free(event);
	event_base_free(loop);
}

int main(int argc, char **argv)
{
	double begin;

	if (argc < 3)
		return fprintf(stderr, "usage: minimal PORT ADDRESS [COUNT]\n"), 1;
	is_client = argc > 3;
	left = is_client ? atol(argv[3]) : -1;
	if (is_client)
		connect_to(argv[1], argv[2]);
	else
		accept_on(argv[1], argv[2]);
	begin = bench_now_us();
	run();
	if (is_client && left)
		return fprintf(stderr, "minimal: %ld rounds are missing\n", left), 1;
	if (is_client)
		printf("%.2f\n", (bench_now_us() - begin) / (double)atol(argv[3]));
	return 0; /* what is left goes with the process: the other side does not listen to the CM */
}
