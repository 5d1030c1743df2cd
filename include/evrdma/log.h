/* What no object's callback can carry: a callback for the whole process. */
#ifndef EVRDMA_LOG_H
#define EVRDMA_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

enum evrdma_log_level {
	EVRDMA_LOG_DEBUG, /* an event that came for nobody, a request that nobody answered */
	EVRDMA_LOG_MSG,   /* a limit that was reached, something done in another way */
	EVRDMA_LOG_WARN,  /* what failed, with nobody to be told of it */
	EVRDMA_LOG_ERROR  /* what leaves a base of no use */
};

/*
 * text is one line without a newline, and lives until the callback returns. It comes on whatever
 * thread it happens, for several threads at once when there are several, and in the middle of
 * calls: the callback makes no call of this library.
 */
typedef void (*evrdma_log_cb)(enum evrdma_log_level level, const char *text, void *arg);

/*
 * Sets the callback of the process; NULL, the default, drops what is logged: the library never
 * prints. Set it before there are threads that use the library, or while none does. Since 0.1.
 */
void evrdma_set_log_cb(evrdma_log_cb cb, void *arg);

#ifdef __cplusplus
}
#endif

#endif
