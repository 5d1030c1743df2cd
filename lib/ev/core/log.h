/* What is said to nobody in particular. Sparingly: errors belong to an object's callback. */
#ifndef EVR_EV_LOG_H
#define EVR_EV_LOG_H

#include <evrdma/log.h>

/* Keeps errno. */
void evr_log(enum evrdma_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Says that a call failed whose caller goes on: err is an errno, or 0 and nothing is said. */
void evr_log_failure(const char *what, int err);

#endif
