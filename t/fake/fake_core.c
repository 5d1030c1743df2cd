/* The lock, the tables, the bells, the counts. */
#include "config.h"
#include "fake/fake_core.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static atomic_int patience_ms;
static atomic_uint waits;
static unsigned live[FAKE_OBJECTS];
static char problem[200];

static const char *const object_names[FAKE_OBJECTS] = {
	[FAKE_FILE] = "CM files",
	[FAKE_ID] = "ids",
	[FAKE_MEMBERSHIP] = "multicast memberships",
	[FAKE_CONTEXT] = "contexts",
	[FAKE_PD] = "PDs",
	[FAKE_MR] = "MRs",
	[FAKE_AH] = "AHs",
	[FAKE_CHANNEL] = "completion channels",
	[FAKE_CQ] = "CQs",
	[FAKE_SRQ] = "SRQs",
	[FAKE_XRCD] = "XRC domains",
	[FAKE_QP] = "QPs",
	[FAKE_ATTACHMENT] = "multicast attachments",
};

/* How often this thread has it. The mutex is nobody's: a child of fork() can let go of it. */
static _Thread_local unsigned depth;

static _Thread_local void (*meanwhile)(void);

void fake_meanwhile(void (*hook)(void))
{
	meanwhile = hook;
}

/* What the hook calls itself does not call it again. */
static void let_others_act(void)
{
	void (*hook)(void) = meanwhile;

	if (!hook)
		return;
	meanwhile = NULL;
	hook();
	meanwhile = hook;
}

int fake_lock(void)
{
	if (!depth)
		let_others_act();
	if (depth++)
		return 0;
	fake_is_called();
	fake_hide();
	pthread_mutex_lock(&lock);
	return 0;
}

void fake_unlock(int *guard)
{
	if (--depth)
		return;
	pthread_mutex_unlock(&lock);
	fake_show();
}

/* First of all, so that those come before it at a fork who hold theirs when they call. */
static void before_fork(void)
{
	fake_lock();
}

static void after_fork(void)
{
	fake_unlock(NULL);
}

__attribute__((constructor(101))) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

void *fake_alloc(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		fake_die("out of memory");
	return memory;
}

enum { CHUNK = 256 };

struct fake_chunk {
	unsigned used;
	void *slots[CHUNK];
};

static struct fake_chunk *chunk_of(const struct fake_table *table, uint32_t number)
{
	return number / CHUNK < table->size ? table->chunks[number / CHUNK] : NULL;
}

static void grow(struct fake_table *table)
{
	uint32_t size = table->size ? table->size * 2 : 16;
	struct fake_chunk **chunks = fake_alloc(size * sizeof(*chunks));

	if (table->size)
		memcpy(chunks, table->chunks, table->size * sizeof(*chunks));
	free(table->chunks);
	table->chunks = chunks;
	table->size = size;
}

/* Numbers begin at 1, and none is given twice. */
uint32_t fake_table_add(struct fake_table *table, void *object)
{
	uint32_t number = ++table->last;

	if (number / CHUNK == table->size)
		grow(table);
	if (!chunk_of(table, number))
		table->chunks[number / CHUNK] = fake_alloc(sizeof(struct fake_chunk));
	chunk_of(table, number)->slots[number % CHUNK] = object;
	chunk_of(table, number)->used++;
	return number;
}

void *fake_table_find(const struct fake_table *table, uint32_t number)
{
	const struct fake_chunk *chunk = chunk_of(table, number);

	return chunk ? chunk->slots[number % CHUNK] : NULL;
}

void fake_table_remove(struct fake_table *table, uint32_t number)
{
	struct fake_chunk *chunk = chunk_of(table, number);

	chunk->slots[number % CHUNK] = NULL;
	if (--chunk->used)
		return;
	free(chunk);
	table->chunks[number / CHUNK] = NULL;
}

void fake_table_free(struct fake_table *table)
{
	uint32_t i;

	for (i = 0; i < table->size; i++)
		free(table->chunks[i]);
	free(table->chunks);
	memset(table, 0, sizeof(*table));
}

int fake_bell_open(struct fake_bell *bell, int flags)
{
	int how = (flags & O_NONBLOCK ? EFD_NONBLOCK : 0) | (flags & O_CLOEXEC ? EFD_CLOEXEC : 0);

	bell->on = false;
	bell->fd = eventfd(0, how);
	return bell->fd < 0 ? -errno : 0;
}

void fake_bell_set(struct fake_bell *bell, bool on)
{
	uint64_t value = 1;
	ssize_t got;

	if (bell->on == on)
		return;
	bell->on = on;
	if (on)
		got = write(bell->fd, &value, sizeof(value));
	else
		got = read(bell->fd, &value, sizeof(value));
	if (got != sizeof(value))
		fake_die("descriptor %d was closed or read behind the fake's back", bell->fd);
}

int fake_bell_empty(const struct fake_bell *bell)
{
	int flags = fcntl(bell->fd, F_GETFL);

	if (flags >= 0 && (flags & O_NONBLOCK))
		return -EAGAIN;
	fake_count_wait();
	return -EDEADLK;
}

void fake_count_wait(void)
{
	atomic_fetch_add(&waits, 1);
}

unsigned fake_waits(void)
{
	return atomic_load(&waits);
}

void fake_wait_for_others(int timeout_ms)
{
	atomic_store(&patience_ms, timeout_ms);
}

bool fake_bell_wait(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	int timeout_ms = atomic_load(&patience_ms);

	return timeout_ms && poll(&ready, 1, timeout_ms) == 1;
}

void fake_bell_close(struct fake_bell *bell)
{
	close(bell->fd);
	bell->fd = -1;
}

void fake_born(enum fake_object object)
{
	live[object]++;
}

void fake_died(enum fake_object object)
{
	live[object]--;
}

unsigned fake_live(enum fake_object object)
{
	FAKE_GUARD();

	return live[object];
}

void fake_misuse(const char *format, ...)
{
	va_list args;

	if (problem[0])
		return;
	va_start(args, format);
	vsnprintf(problem, sizeof(problem), format, args);
	va_end(args);
}

const char *fake_problem(void)
{
	FAKE_GUARD();

	return problem[0] ? problem : NULL;
}

void fake_die(const char *format, ...)
{
	va_list args;

	fputs("fake: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

const char *fake_expect_clean(void)
{
	static char text[600];
	size_t used = 0;
	int i;

	FAKE_GUARD();
	for (i = 0; i < FAKE_OBJECTS; i++) {
		unsigned left = live[i] - (i == FAKE_CONTEXT ? fake_devices_open() : 0);

		if (left)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u %s",
				used ? ", " : "left: ", left, object_names[i]);
	}
	if (problem[0])
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s", used ? "; " : "", problem);
	return used ? text : NULL;
}

void fake_reset(void)
{
	FAKE_GUARD();
	fake_happens_last();
	fake_cm_reset();
	fake_verbs_reset();
	fake_fault_reset();
	memset(live, 0, sizeof(live));
	problem[0] = '\0';
	fake_wait_for_others(0);
	atomic_store(&waits, 0);
	fake_devices_reset();
}
