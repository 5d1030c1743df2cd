#include "config.h"

#include "rs/uring.h"

#include <check.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES = 8 };

struct uring {
	int fd;
	struct io_uring_params params;
	uint8_t *sq, *cq;
	struct io_uring_sqe *sqes;
};

static int setup(struct io_uring_params *params)
{
	return (int)syscall(SYS_io_uring_setup, ENTRIES, params);
}

static void enter(const struct uring *ring, unsigned int submit, unsigned int wait)
{
	long ret = syscall(SYS_io_uring_enter, ring->fd, submit, wait,
		wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0);

	ck_assert_int_ge(ret, 0);
}

bool uring_exists(void)
{
	struct io_uring_params params = { 0 };
	int fd = setup(&params);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static size_t sq_len(const struct uring *ring)
{
	return ring->params.sq_off.array + ring->params.sq_entries * sizeof(uint32_t);
}

static size_t cq_len(const struct uring *ring)
{
	return ring->params.cq_off.cqes + ring->params.cq_entries * sizeof(struct io_uring_cqe);
}

static void *map(const struct uring *ring, size_t len, off_t at)
{
	void *memory =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, at);

	ck_assert_ptr_ne(memory, MAP_FAILED);
	return memory;
}

struct uring *uring_new(void)
{
	struct uring *ring = calloc(1, sizeof(*ring));

	ring->fd = setup(&ring->params);
	ck_assert_int_ge(ring->fd, 0);
	ring->sq = map(ring, sq_len(ring), IORING_OFF_SQ_RING);
	ring->cq = map(ring, cq_len(ring), IORING_OFF_CQ_RING);
	ring->sqes = map(ring, ENTRIES * sizeof(*ring->sqes), IORING_OFF_SQES);
	return ring;
}

void uring_free(struct uring *ring)
{
	munmap(ring->sqes, ENTRIES * sizeof(*ring->sqes));
	munmap(ring->cq, cq_len(ring));
	munmap(ring->sq, sq_len(ring));
	close(ring->fd);
	free(ring);
}

static _Atomic uint32_t *word(uint8_t *in, uint32_t offset)
{
	return (_Atomic uint32_t *)(void *)(in + offset);
}

void uring_poll(struct uring *ring, int fd, uint32_t events, uint64_t of)
{
	_Atomic uint32_t *tail = word(ring->sq, ring->params.sq_off.tail);
	uint32_t at = *tail & (ring->params.sq_entries - 1);

	ring->sqes[at] = (struct io_uring_sqe){
		.opcode = IORING_OP_POLL_ADD,
		.fd = fd,
		.poll32_events = events,
		.user_data = of,
	};
	*word(ring->sq, ring->params.sq_off.array + at * (uint32_t)sizeof(uint32_t)) = at;
	atomic_fetch_add(tail, 1);
	enter(ring, 1, 0);
}

bool uring_has(const struct uring *ring)
{
	return *word(ring->cq, ring->params.cq_off.head) !=
	       *word(ring->cq, ring->params.cq_off.tail);
}

int uring_wait(struct uring *ring, uint64_t *of)
{
	_Atomic uint32_t *head = word(ring->cq, ring->params.cq_off.head);
	struct io_uring_cqe *cqes = (void *)(ring->cq + ring->params.cq_off.cqes);
	struct io_uring_cqe cqe;

	while (!uring_has(ring))
		enter(ring, 0, 1);
	cqe = cqes[*head & (ring->params.cq_entries - 1)];
	atomic_fetch_add(head, 1);
	ck_assert_int_ge(cqe.res, 0);
	if (of)
		*of = cqe.user_data;
	return cqe.res;
}
