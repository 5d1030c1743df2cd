/* What a schedule says of itself, and how it can be had again. */
#include "schedule/schedule.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool trace_on;

static char replay[300];
static uint64_t digest;

/* Of a sanitizer, where there is one. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void say_replay(void)
{
	/* Also from a signal handler: nothing here takes a lock. */
	ssize_t done = write(STDOUT_FILENO, replay, strlen(replay));

	(void)done;
}

static void on_signal(int number)
{
	static const char exact[] = "\nnot ok 1 - it crashed, or did not end\n";
	static const char real[] = "\n# wrong: it crashed, or did not end\n";
	const char *text = machine.exact ? exact : real;
	ssize_t done = write(STDOUT_FILENO, text, strlen(text));

	(void)done;
	say_replay();
	signal(number, SIG_DFL);
	raise(number);
}

void trace_begin(uint64_t seed, const char *program)
{
	static bool caught;

	snprintf(replay, sizeof(replay), "# seed %llu; to see it again: %s --seed %llu --trace\n",
		(unsigned long long)seed, program, (unsigned long long)seed);
	digest = 0xcbf29ce484222325u;
	if (caught)
		return;
	caught = true;
	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(say_replay);
	} else {
		signal(SIGSEGV, on_signal);
		signal(SIGBUS, on_signal);
	}
	signal(SIGABRT, on_signal);
	signal(SIGALRM, on_signal);
	signal(SIGPROF, on_signal);
}

void trace_mix(unsigned a, unsigned b, unsigned c)
{
	digest = (digest ^ a) * 0x100000001b3u;
	digest = (digest ^ b) * 0x100000001b3u;
	digest = (digest ^ c ^ clock_now_us()) * 0x100000001b3u;
}

void trace(struct schedule *s, const char *format, ...)
{
	uint64_t now = clock_now_us();
	va_list args;

	if (!trace_on)
		return;
	printf("# %8llu.%03llu ms %*s", (unsigned long long)now / 1000,
		(unsigned long long)now % 1000, (int)(2 * s->depth), "");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

uint64_t trace_digest(void)
{
	return digest;
}

_Noreturn void wrong(const char *format, ...)
{
	va_list args;

	printf(machine.exact ? "not ok 1 - " : "# wrong: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	say_replay();
	_exit(1);
}
