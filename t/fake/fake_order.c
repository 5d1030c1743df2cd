/*
 * What ThreadSanitizer sees of the fake. Its one lock would order everything that two threads ever
 * do, which no kernel does, and hide their races; so it sees neither the lock nor what is done
 * under it. Instead it is told what a kernel does order: the commands on one id, and the reading of
 * an event after these and after the call that raised it. It also sees the end of each object of
 * verbs, which nobody may use then; and a reset after each call there ever was.
 */
#include "fake/fake_core.h"

#include <stdlib.h>

#ifdef __SANITIZE_THREAD__

#include <sanitizer/tsan_interface.h>

/* The runtime exports them, no header does. */
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);

void fake_hide(void)
{
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
	AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

void fake_show(void)
{
	AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

void fake_happens_before(void *what)
{
	fake_show();
	__tsan_release(what);
	fake_hide();
}

void fake_happens_after(void *what)
{
	if (!what)
		return;
	fake_show();
	__tsan_acquire(what);
	fake_hide();
}

static char all_calls;

void fake_is_called(void)
{
	__tsan_release(&all_calls);
}

void fake_happens_last(void)
{
	fake_happens_after(&all_calls);
}

#else

void fake_hide(void)
{
}

void fake_show(void)
{
}

void fake_happens_before(void *what)
{
}

void fake_happens_after(void *what)
{
}

void fake_is_called(void)
{
}

void fake_happens_last(void)
{
}

#endif

void fake_free_in_sight(void *memory)
{
	fake_show();
	free(memory);
	fake_hide();
}
