#include "stream.h"
#include "common.h"
#include "drive.h"
#include "watch.h"

#include <errno.h>
#include <string.h>

int run_is_client(const struct stream *test)
{
	return test->options.server != NULL;
}

static int is_greeting(const struct run *run)
{
	return run->turn < 2;
}

int run_is_sending(const struct stream *test)
{
	return test->run.turn % 2 == !run_is_client(test);
}

static long message_bytes(const struct run *run)
{
	return is_greeting(run) ? HELLO_BYTES : run->what.size_bytes;
}

static uint8_t *message_data(struct stream *test)
{
	return is_greeting(&test->run) ? test->run.hello : test->data;
}

/* The greetings are counted with the data where they go the same way. */
static int counts(const struct stream *test)
{
	return test->options.verify && !test->ops->move;
}

void run_start(struct stream *test)
{
	struct run *run = &test->run;

	run->turn = run->message = run->offset = 0;
	run->tried = run->waited = run->differs = 0;
}

int run_is_first_try(struct run *run)
{
	int first = !run->tried;

	run->tried = 1;
	return first;
}

/* Who differs from a client that greets says so itself, even when it verifies. */
static void prepare(struct stream *test)
{
	struct run *run = &test->run;

	if (is_greeting(run) && (!counts(test) || run->differs))
		hello_make(run->hello, &run->what, run_is_client(test), test->options.verify);
	else if (counts(test))
		counting_fill(&test->sent, message_data(test), (size_t)message_bytes(run));
}

static int check_greeting(struct stream *test)
{
	struct run *run = &test->run;
	int from_client = !run_is_client(test);

	run->differs = hello_check(test->options.name, run->hello, &run->what, from_client,
			       test->options.verify) != 0;
	return run->differs && !from_client ? DRIVE_FAILED : 0;
}

int run_fail_data(const struct stream *test)
{
	return tool_complain(test->options.name, "data verification failed byte %llu",
		(unsigned long long)test->received.bytes);
}

static int verify(struct stream *test)
{
	size_t len = (size_t)message_bytes(&test->run);
	size_t right;

	if (!counts(test) || test->run.differs)
		return 0;
	right = counting_check(&test->received, message_data(test), len);
	if (right == len)
		return 0;
	return run_fail_data(test);
}

int run_next(struct stream *test)
{
	struct run *run = &test->run;

	run->offset = run->tried = 0;
	if (!is_greeting(run) && ++run->message < run->what.transfers)
		return 0;
	if (run_is_sending(test) && run->differs)
		return DRIVE_FAILED;
	run->message = 0;
	if (++run->turn == 2)
		run->since = series_now();
	return 0;
}

static int end_message(struct stream *test)
{
	if (!run_is_sending(test) && is_greeting(&test->run) && check_greeting(test))
		return DRIVE_FAILED;
	if (!run_is_sending(test) && verify(test))
		return DRIVE_FAILED;
	return run_next(test);
}

static int wait_for(const struct stream *test)
{
	return run_is_sending(test) ? DRIVE_WRITE : DRIVE_READ;
}

static ssize_t call(struct stream *test, uint8_t *data, size_t len_bytes)
{
	if (run_is_sending(test))
		return sock_send(&test->sock, data, len_bytes, 0);
	return sock_recv(&test->sock, data, len_bytes, 0);
}

static int moved(struct stream *test, ssize_t len)
{
	struct run *run = &test->run;

	if (len == -EAGAIN || len == -EWOULDBLOCK)
		return wait_for(test);
	if (len == -EINTR)
		return 0;
	if (len < 0)
		return stream_fail(test, run_is_sending(test) ? "rsend" : "rrecv", (int)len);
	if (len == 0)
		return tool_complain(test->options.name,
			"the other side ended the connection in the middle of a run; see what it "
			"says, and give both the same options");
	watch_progress();
	run->waited = 0;
	run->offset += len;
	return run->offset == message_bytes(run) ? end_message(test) : 0;
}

static int move(struct stream *test)
{
	struct run *run = &test->run;

	if (test->options.async && !run->waited) {
		run->waited = 1;
		return wait_for(test);
	}
	if (run_is_sending(test) && run_is_first_try(run))
		prepare(test);
	return moved(test, call(test, message_data(test) + run->offset,
				   (size_t)(message_bytes(run) - run->offset)));
}

int run_step(struct stream *test)
{
	struct run *run = &test->run;
	long turns = 2 + 2 * run->what.iterations;
	int ret = 0;

	while (!ret && run->turn < turns)
		ret = is_greeting(run) || !test->ops->move ? move(test) : test->ops->move(test);
	if (!ret)
		series_print(&run->what, series_now() - run->since);
	return ret;
}
