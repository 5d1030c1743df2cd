/* Counting calls by name, and making chosen ones fail. */
#include "fake/fake_core.h"

#include <stdlib.h>
#include <string.h>

struct fake_call {
	TAILQ_ENTRY(fake_call) link;
	char name[32];
	unsigned count;
	unsigned fails_after; /* so many more; 0: none fails */
	int err;
};

static TAILQ_HEAD(, fake_call) calls = TAILQ_HEAD_INITIALIZER(calls);

static struct {
	enum fake_layer layers;
	unsigned left;
	bool lasting; /* the later ones too */
	int err;
	void (*hook)(void *arg);
	void *arg;
	const char *failed;
} nth;

static void (*each_call)(void);

static struct fake_call *call_of(const char *name)
{
	struct fake_call *call;

	TAILQ_FOREACH (call, &calls, link)
		if (!strcmp(call->name, name))
			return call;
	call = fake_alloc(sizeof(*call));
	strncpy(call->name, name, sizeof(call->name) - 1);
	TAILQ_INSERT_TAIL(&calls, call, link);
	return call;
}

int fake_fault_release(enum fake_layer layer, const char *name)
{
	struct fake_call *call = call_of(name);
	bool fails = call->fails_after && !--call->fails_after;

	call->count++;
	if (each_call)
		each_call();
	return fails ? call->err : 0;
}

int fake_fault(enum fake_layer layer, const char *name)
{
	int err = fake_fault_release(layer, name);

	if (err || !nth.left || !(nth.layers & layer))
		return err;
	if (nth.left > 1) {
		nth.left--;
		return 0;
	}
	nth.left = nth.lasting;
	if (!nth.failed)
		nth.failed = name;
	if (nth.hook)
		nth.hook(nth.arg);
	return nth.err;
}

void fake_fail_nth(enum fake_layer layers, unsigned n, int err)
{
	FAKE_GUARD();
	nth.layers = layers;
	nth.left = n;
	nth.lasting = false;
	nth.err = err;
	nth.hook = NULL;
	nth.failed = NULL;
}

void fake_fail_from(enum fake_layer layers, unsigned n, int err)
{
	FAKE_GUARD();
	fake_fail_nth(layers, n, err);
	nth.lasting = true;
}

void fake_at_nth(enum fake_layer layers, unsigned n, void (*hook)(void *arg), void *arg)
{
	FAKE_GUARD();
	fake_fail_nth(layers, n, 0);
	nth.hook = hook;
	nth.arg = arg;
}

void fake_each_call(void (*hook)(void))
{
	FAKE_GUARD();
	each_call = hook;
}

const char *fake_failed(void)
{
	FAKE_GUARD();

	return nth.failed;
}

void fake_fail_later(const char *name, unsigned n, int err)
{
	struct fake_call *call;

	FAKE_GUARD();
	call = call_of(name);
	call->fails_after = n;
	call->err = err;
}

void fake_fail_next(const char *name, int err)
{
	fake_fail_later(name, 1, err);
}

unsigned fake_calls(const char *name)
{
	FAKE_GUARD();

	return call_of(name)->count;
}

void fake_fault_reset(void)
{
	struct fake_call *call;

	while ((call = TAILQ_FIRST(&calls))) {
		TAILQ_REMOVE(&calls, call, link);
		free(call);
	}
	memset(&nth, 0, sizeof(nth));
	each_call = NULL;
	fake_meanwhile(NULL);
}
