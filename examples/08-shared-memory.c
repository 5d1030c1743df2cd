/*
 * A cache in memory that clients read past the server's processors, from all threads of the server:
 * registered once, with one key, however many threads there are.
 *
 *   08-shared-memory ADDRESS:PORT THREADS MEGABYTES    the server, until it is interrupted
 *   08-shared-memory ADDRESS:PORT PAGE                 a client: reads a page each second
 *
 * The server tells each client where the memory is. On Linux `rdma resource show mr` has it.
 */
#include <evrdma/evrdma.h>
#include <event2/event.h>
#include <event2/util.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { MOST_THREADS = 64, PAGE_BYTES = 4096, SHUTDOWN_MS = 2000 };

static struct evrdma_conn_options options;
static struct event *signal_event;

/* --- the server, on a worker's thread ------------------------------------------------------- */

static struct worker {
	pthread_t thread;
	struct event_base *loop;
	struct evrdma_base *base;
} workers[MOST_THREADS];

static int count, next;
static struct evrdma_buf *cache;

/* The first thread that comes here registers it, and all get the same key. */
static int send_cache(struct evrdma_conn *conn)
{
	unsigned char packed[EVRDMA_REMOTE_PACKED_BYTES];
	struct evrdma_work work = {
		.op = EVRDMA_OP_SEND, .inline_data = packed, .inline_len = sizeof(packed)
	};
	struct evrdma_remote remote;
	int ret = evrdma_conn_expose(conn, cache, &remote);

	if (ret)
		return ret;
	evrdma_remote_pack(&remote, packed);
	return evrdma_conn_submit(conn, &work, NULL, NULL);
}

static void on_served(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	if (event == EVRDMA_CONN_CLOSED)
		return;
	if (event != EVRDMA_CONN_CONNECTED || send_cache(conn))
		evrdma_conn_close(conn);
}

static void serve(struct evrdma_request *request, void *arg)
{
	struct worker *worker = arg;
	struct evrdma_conn *conn = evrdma_conn_new(worker->base, &options);

	if (!conn || evrdma_conn_accept(conn, request)) {
		evrdma_request_reject(request, NULL, 0);
		evrdma_conn_close(conn);
	} else {
		evrdma_conn_setcb(conn, NULL, on_served, NULL);
	}
}

static void end(struct evrdma_base *base, void *arg)
{
	evrdma_base_shutdown(base, SHUTDOWN_MS, NULL, NULL);
}

static void *run(void *loop)
{
	event_base_dispatch(loop);
	event_base_free(loop);
	return NULL;
}

static int start(struct worker *worker)
{
	worker->loop = event_base_new();
	worker->base = evrdma_base_new(worker->loop, NULL);
	if (!worker->base)
		return -1;
	return pthread_create(&worker->thread, NULL, run, worker->loop);
}

/* --- on the thread that accepts ------------------------------------------------------------- */

static void on_request(struct evrdma_listener *listener, struct evrdma_request *request, void *arg)
{
	struct worker *worker = &workers[next++ % count];

	if (evrdma_request_move(request, worker->base, serve, worker))
		evrdma_request_reject(request, NULL, 0);
}

/* No request is moved any more, so the workers may end. A client has none. */
static void on_closed(struct evrdma_base *base, void *arg)
{
	int i;

	event_del(signal_event);
	for (i = 0; i < count; i++)
		evrdma_base_run_in_loop(workers[i].base, end, NULL);
}

static void unmap(void *memory, size_t size, void *arg)
{
	munmap(memory, size);
}

/* The domain may be given up once the options are of no more use. */
static int make_cache(size_t bytes)
{
	char *memory = mmap(
		NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t page;

	if (memory == MAP_FAILED)
		return -1;
	for (page = 0; page < bytes / PAGE_BYTES; page++)
		snprintf(memory + page * PAGE_BYTES, PAGE_BYTES, "page %zu", page);
	options.inline_bytes = EVRDMA_REMOTE_PACKED_BYTES;
	options.domain = evrdma_domain_new_shared();
	cache = evrdma_buf_new_shared(
		options.domain, memory, bytes, EVRDMA_BUF_OPT_REMOTE_READ, unmap, NULL);
	if (!cache)
		munmap(memory, bytes);
	return cache ? 0 : -1;
}

static int serve_all(struct evrdma_base *base, struct sockaddr *addr, size_t bytes)
{
	struct evrdma_listener_options listening;
	int i;

	evrdma_listener_options_init(&listening);
	listening.relisten_ms = 1000; /* when the device was removed, until it is back */
	if (make_cache(bytes))
		return perror("no memory for the cache"), 1;
	for (i = 0; i < count; i++)
		if (start(&workers[i]))
			return fprintf(stderr, "cannot start a thread\n"), 1;
	if (!evrdma_listener_new(base, addr, &listening, on_request, NULL))
		return perror("cannot listen"), 1;
	event_base_dispatch(evrdma_base_get_event_base(base));
	for (i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	evrdma_domain_free(options.domain);
	evrdma_buf_unref(cache);
	return 0;
}

/* --- the client ----------------------------------------------------------------------------- */

static struct evrdma_remote page;
static struct evrdma_buf *copy;
static struct event *timer;

static void on_read(struct evrdma_conn *conn, const struct evrdma_error *error, void *arg)
{
	static const struct timeval second = { 1, 0 };

	if (error)
		return;
	printf("%s, by key %08x\n", (char *)evrdma_buf_data(copy), page.key);
	event_add(timer, &second);
}

static void read_page(evutil_socket_t fd, short what, void *conn)
{
	struct evrdma_seg seg = { .buf = copy, .len = PAGE_BYTES };
	struct evrdma_work work = {
		.op = EVRDMA_OP_READ, .segs = &seg, .seg_count = 1, .remote = page
	};

	if (evrdma_conn_submit(conn, &work, on_read, NULL))
		evrdma_conn_close(conn);
}

/* The server has said where. */
static void on_cache(struct evrdma_conn *conn, const struct evrdma_recv *recv, void *number)
{
	if (recv->len != EVRDMA_REMOTE_PACKED_BYTES)
		return;
	evrdma_remote_unpack(&page, recv->data);
	page = evrdma_remote_at(&page, strtoull(number, NULL, 10) * PAGE_BYTES);
	read_page(-1, 0, conn);
}

static void on_client(struct evrdma_conn *conn, enum evrdma_conn_event event,
	const struct evrdma_error *error, void *arg)
{
	char why[EVRDMA_ERROR_TEXT_MAX];

	if (event == EVRDMA_CONN_ERROR)
		fprintf(stderr, "%s\n", evrdma_error_text(error, why, sizeof(why)));
	if (event == EVRDMA_CONN_ERROR || event == EVRDMA_CONN_DISCONNECTED)
		evrdma_base_close(evrdma_conn_get_base(conn), on_closed, NULL);
	if (event == EVRDMA_CONN_CLOSED)
		event_free(timer);
}

static int read_one(struct evrdma_base *base, struct sockaddr *addr, char *number)
{
	struct evrdma_pool *pool = evrdma_pool_new(base, PAGE_BYTES, 0);
	struct evrdma_conn *conn;

	options.recv_pool = pool;
	copy = evrdma_pool_get(pool);
	conn = evrdma_conn_new(base, &options);
	if (!copy || !conn)
		return perror("no memory"), 1;
	timer = evtimer_new(evrdma_base_get_event_base(base), read_page, conn);
	evrdma_conn_setcb(conn, on_cache, on_client, number);
	evrdma_conn_connect(conn, NULL, addr);
	event_base_dispatch(evrdma_base_get_event_base(base));
	evrdma_buf_unref(copy);
	return 0;
}

/* --- both ----------------------------------------------------------------------------------- */

static void on_signal(evutil_socket_t fd, short what, void *base)
{
	evrdma_base_close(base, on_closed, NULL);
}

int main(int argc, char **argv)
{
	struct sockaddr_storage addr;
	struct sockaddr *sa = (struct sockaddr *)&addr;
	int ret, len = sizeof(addr);
	struct event_base *loop = event_base_new();
	struct evrdma_base *base = evrdma_base_new(loop, NULL);

	if (argc > 3)
		count = atoi(argv[2]);
	if (!base)
		return perror("evrdma_base_new"), 1;
	if (argc < 3 || count < 0 || count > MOST_THREADS || (argc > 3 && !count) ||
		evutil_parse_sockaddr_port(argv[1], sa, &len))
		return fprintf(stderr, "usage: 08-shared-memory ADDRESS:PORT THREADS MEGABYTES, "
				       "or ADDRESS:PORT PAGE\n"), 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	evrdma_conn_options_init(&options);
	signal_event = evsignal_new(loop, SIGINT, on_signal, base);
	event_add(signal_event, NULL);
	ret = count ? serve_all(base, sa, strtoull(argv[3], NULL, 10) << 20)
		    : read_one(base, sa, argv[2]);
	event_free(signal_event);
	event_base_free(loop);
	return ret;
}
