#include "watch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static struct {
	char line[512];
	long timeout_s;
	volatile sig_atomic_t paused;
	volatile sig_atomic_t moved;
	volatile sig_atomic_t still_s;
} watch = { .paused = 1 };

static void look(int number)
{
	if (watch.paused || watch.moved)
		watch.still_s = 0;
	else
		watch.still_s++;
	watch.moved = 0;
	if (watch.still_s < watch.timeout_s)
		return;
	if (write(STDERR_FILENO, watch.line, strlen(watch.line)) < 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_FAILURE);
}

void watch_start(const char *name, long timeout_s, const char *text)
{
	const struct itimerval each_second = { { 1, 0 }, { 1, 0 } };
	struct sigaction action = { .sa_handler = look, .sa_flags = SA_RESTART };

	snprintf(watch.line, sizeof(watch.line), "%s: nothing moved for %ld seconds; %s\n", name,
		timeout_s, text);
	watch.timeout_s = timeout_s;
	watch.still_s = 0;
	watch.paused = 0;
	sigaction(SIGALRM, &action, NULL);
	if (timeout_s)
		setitimer(ITIMER_REAL, &each_second, NULL);
}

void watch_progress(void)
{
	watch.moved = 1;
}

void watch_pause(void)
{
	watch.paused = 1;
}

void watch_resume(void)
{
	watch.still_s = 0;
	watch.paused = 0;
}
