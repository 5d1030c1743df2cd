#include "ev/core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ev/core/lock.h"

static evrdma_log_cb log_cb;
static void *log_arg;

void evrdma_set_log_cb(evrdma_log_cb cb, void *arg)
{
	log_cb = cb;
	log_arg = arg;
}

void evr_log(enum evrdma_log_level level, const char *format, ...)
{
	char text[256];
	int err = errno;
	va_list args;

	evr_lock_expect_none();
	if (!log_cb)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_cb(level, text, log_arg);
	errno = err;
}

void evr_log_failure(const char *what, int err)
{
	if (err)
		evr_log(EVRDMA_LOG_WARN, "%s: %s", what, strerror(err));
}
