#include "fuzz/fuzz.h"

#include "fake/fake.h"

#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool tracing;

static void print_line(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
static void print_line(const char *format, va_list args)
{
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void fuzz_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(format, args);
	va_end(args);
	abort();
}

void fuzz_trace(const char *format, ...)
{
	va_list args;

	if (!tracing)
		return;
	va_start(args, format);
	print_line(format, args);
	va_end(args);
}

/* There is one thread: nobody would ever wake it. The linker leads the library's waits here. */
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	fuzz_fail("a call waits for ever for an event to be acknowledged");
}

void fuzz_begin(void)
{
	fake_install();
}

/* The library closes with its next call what it kept open for the program until it is removed. */
static void remove_devices(void)
{
	int kind;

	for (kind = 0; kind < FAKE_KINDS; kind++)
		fake_device_remove((enum fake_kind)kind);
	rdma_free_devices(rdma_get_devices(NULL));
}

void fuzz_end(void)
{
	const char *left;

	if (fake_live(FAKE_CONTEXT))
		remove_devices();
	left = fake_expect_clean();
	if (left)
		fuzz_fail("%s", left);
	fake_reset();
}

/* What the library finds out once in a process must not depend on the order of the inputs. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	tracing = getenv("FUZZ_TRACE") != NULL;
	fuzz_begin();
	rdma_destroy_event_channel(fuzz_channel());
	fuzz_end();
	return 0;
}

struct rdma_event_channel *fuzz_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (channel)
		fuzz_check(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
	return channel;
}

struct ibv_qp_init_attr fuzz_qp_attr(int qp_type)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = (enum ibv_qp_type)qp_type,
	};
}
