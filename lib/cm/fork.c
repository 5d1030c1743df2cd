/*
 * A child of fork() has the locks as they were: nobody else is within one of them when it begins,
 * so that it can work on ids of its own, and on its parent's once that has gone. They are taken in
 * the order in which calls take them.
 *
 * Who forks is asked in the reverse order of these registrations: those above, whose locks are held
 * when they call, have to register later, so this is done as early as can be.
 */
#include "cm/cm.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int error;

static void before(void)
{
	evr_cm_channel_hold(true);
	evr_cm_device_hold(true);
	evr_cm_devlist_hold(true);
	evr_cm_map_hold(true);
}

static void after(void)
{
	evr_cm_map_hold(false);
	evr_cm_devlist_hold(false);
	evr_cm_device_hold(false);
	evr_cm_channel_hold(false);
}

static void begin_child(void)
{
	evr_cm_device_begin_child();
	after();
}

static void watch(void)
{
	error = -pthread_atfork(before, after, begin_child);
}

int evr_cm_watch_forks(void)
{
	pthread_once(&once, watch);
	return error;
}

__attribute__((constructor)) static void begin(void)
{
	evr_cm_watch_forks();
}
