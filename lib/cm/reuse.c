/*
 * Opening a device is slow. One that a program has come back to several times, each time soon after
 * it left it, is not closed at once when it is left again, but by a call a moment later. It still
 * goes at once when it is removed, or with the last event channel.
 */
#include "cm/cm.h"

#include "util/clock.h"

enum { OFTEN = 2, SOON_US = 1000 * 1000, NUM_PAST = 8 };

/* What is kept of the devices that were closed last; with the open lock held. */
static struct past {
	struct evr_device_key key;
	uint64_t idle_since_us;
	unsigned returns;
} past[NUM_PAST];
static unsigned next_past;

static struct past *find_past(const struct evr_device_key *key)
{
	size_t i;

	for (i = 0; i < NUM_PAST; i++)
		if (past[i].idle_since_us && evr_device_key_equal(&past[i].key, key))
			return &past[i];
	return NULL;
}

void evr_cm_reuse_recall(struct evr_cm_device *dev)
{
	const struct past *then = find_past(&dev->key);

	if (!then)
		return;
	atomic_store(&dev->idle_since_us, then->idle_since_us);
	atomic_store(&dev->returns, then->returns);
}

void evr_cm_reuse_remember(const struct evr_cm_device *dev)
{
	struct past *then = find_past(&dev->key);

	if (!then)
		then = &past[next_past++ % NUM_PAST];
	*then = (struct past){
		.key = dev->key,
		.idle_since_us = atomic_load(&dev->idle_since_us),
		.returns = atomic_load(&dev->returns),
	};
}

static bool was_left_just_now(const struct evr_cm_device *dev)
{
	return evr_clock_now_us() - atomic_load(&dev->idle_since_us) < SOON_US;
}

void evr_cm_reuse_begin(struct evr_cm_device *dev)
{
	if (was_left_just_now(dev))
		atomic_fetch_add(&dev->returns, 1);
	else
		atomic_store(&dev->returns, 0);
}

void evr_cm_reuse_end(struct evr_cm_device *dev)
{
	atomic_store(&dev->idle_since_us, evr_clock_now_us());
}

bool evr_cm_reuse_expected(const struct evr_cm_device *dev)
{
	return atomic_load(&dev->returns) >= OFTEN && !atomic_load(&dev->removed) &&
	       was_left_just_now(dev) && evr_cm_num_channels();
}
