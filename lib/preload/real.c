#include "config.h"

#include "preload/real.h"

#include <dlfcn.h>
#include <pthread.h>

static struct evr_pre_real real;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find(void)
{
#define X(name) *(void **)&real.name = dlsym(RTLD_NEXT, #name);
	EVR_PRE_REAL_CALLS(X)
#undef X
}

struct evr_pre_real *evr_pre_real(void)
{
	pthread_once(&once, find);
	return &real;
}
