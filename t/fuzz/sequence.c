/* Any order of calls and events: see sequence.h for the form of the input. */
#include "fuzz/sequence.h"

#include "fake/fake.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static struct seq_fixture fixture;

static unsigned value_of(uint8_t c)
{
	if (isdigit(c))
		return (unsigned)(c - '0');
	return islower(c) ? (unsigned)(c - 'a') + 10 : 0;
}

static struct seq_step parse(const uint8_t *line, size_t len)
{
	struct seq_step step = { .letter = (char)line[0] };
	size_t i;

	step.who = len > 1 ? value_of(line[1]) : 0;
	step.slot = &fixture.slots[step.who % SEQ_IDS];
	for (i = 0; i < SEQ_ARGS && i + 2 < len; i++)
		step.arg[i] = value_of(line[i + 2]);
	return step;
}

static const struct seq_op *op_of(char letter)
{
	const struct seq_op *op = seq_op_of(letter);

	if (!op)
		op = seq_ep_op_of(letter);
	return op ? op : seq_kernel_op_of(letter);
}

/* Whatever the state is, a call works, or it says what is wrong. */
static void run_step(const struct seq_op *op, const struct seq_step *step)
{
	int ret;

	errno = 0;
	ret = op->run(&fixture, step);
	fuzz_trace("%-14s %u %u %u %u  %d %s", op->name, step->who, step->arg[0], step->arg[1],
		step->arg[2], ret, ret ? strerror(errno) : "");
	fuzz_check(ret == 0 || (ret == -1 && errno > 0));
	seq_check(&fixture);
}

static void run_program(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size, *line, *next;
	unsigned steps = 0;

	for (line = data; line < end && steps < SEQ_STEPS; line = next + 1) {
		struct seq_step step;
		const struct seq_op *op;

		next = memchr(line, '\n', (size_t)(end - line));
		if (!next)
			next = end;
		if (next == line)
			continue;
		step = parse(line, (size_t)(next - line));
		op = op_of(step.letter);
		if (!op)
			continue;
		run_step(op, &step);
		steps++;
	}
}

static void tear_down(void)
{
	unsigned i;

	seq_calm();
	rdma_free_devices(fixture.devices);
	while (fixture.num_events)
		seq_ack_oldest(&fixture);
	for (i = 0; i < SEQ_IDS; i++)
		fuzz_check(seq_destroy(&fixture, &fixture.slots[i]) == 0);
	for (i = 0; i < SEQ_CHANNELS; i++)
		rdma_destroy_event_channel(fixture.channels[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned i;

	fuzz_begin();
	memset(&fixture, 0, sizeof(fixture));
	for (i = 0; i < SEQ_CHANNELS; i++)
		fixture.channels[i] = fuzz_channel();
	seq_watch(&fixture);
	run_program(data, size);
	tear_down();
	fuzz_end();
	return 0;
}
